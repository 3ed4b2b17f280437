"""The parts that benchmarks on a broker share: events to send, processes to run, and when records
came.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import orjson
import psutil
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

from streams.settings import Settings

PARTITIONS = 8
ROUTERS = 64
TICK = 0.001
"""Seconds between two looks at which events are due, where they come at a rate: a timer for each
would take a core that the worker and the broker need."""
AT_ONCE = 16
"""Events after which a sender that is late lets its producer send."""
WARM = 2.0
"""Seconds at a rate before events count: the first records of a topic make a broker map the files
of their indexes, which holds its threads for a tenth of a second, whoever reads them."""
DRAINED_WITHIN = 600
"""Seconds, also where other work is on the machine."""
MODELS = {"small": (0.1, 0.1), "middle": (0.5, 1.5), "large": (1.25, 10.0)}

Events = list[tuple[bytes, bytes]]


@dataclass(frozen=True, slots=True)
class Drained:
    """One side's run over a backlog."""

    events_per_second: float
    cpu_us_per_event: float
    rss_mb: float


def requests(count: int, *, routers: int = ROUTERS, start: int = 0) -> Events:
    """Return (key, value) of requests r`start`, … with random contexts, over so many routers in
    random order.
    """
    rng = np.random.default_rng(start)
    contexts = rng.normal(size=(count, 26))
    contexts[:, -1] = 1.0
    homes = [f"router-{i}" for i in rng.permutation(count) % routers]
    return [
        (
            home.encode(),
            orjson.dumps(
                {"router_id": home, "request_id": f"r{start + i}", "context": context.tolist()}
            ),
        )
        for i, (home, context) in enumerate(zip(homes, contexts, strict=True))
    ]


def declarations(routers: int) -> Events:
    """Return (key, value) of the declarations of so many routers, three models and a budget
    each.
    """
    models = {
        name: {"input_price_per_m": i, "output_price_per_m": o, "onboarding_pulls": 0}
        for name, (i, o) in MODELS.items()
    }
    homes = [f"router-{i}" for i in range(routers)]
    return [
        (
            home.encode(),
            orjson.dumps({"router_id": home, "models": models, "budget_usd_per_request": 6.62e-4}),
        )
        for home in homes
    ]


@contextmanager
def process(arguments: list[str], environment: Mapping[str, str]) -> Iterator[psutil.Process]:
    """Run a Python program beside this one, with one thread for linear algebra; end it with
    SIGTERM.
    """
    child = subprocess.Popen(
        [sys.executable, *arguments],
        env={**os.environ, **environment, "OPENBLAS_NUM_THREADS": "1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield psutil.Process(child.pid)
    finally:
        child.terminate()
        child.wait(30)


async def produce(
    bootstrap: str, topic: str, events: Events, *, per_second: float | None = None
) -> None:
    """Send events, at a rate or as fast as they go."""
    linger_ms = 5 if per_second is None else 0
    async with AIOKafkaProducer(bootstrap_servers=bootstrap, linger_ms=linger_ms) as producer:
        started, sent = time.monotonic(), deque[asyncio.Future[object]]()
        for i, (key, value) in enumerate(events):
            if per_second is not None:
                ahead = started + i / per_second - time.monotonic()
                if ahead > 0 or i % AT_ONCE == 0:
                    await asyncio.sleep(max(TICK, ahead) if ahead > 0 else 0)
            sent.append(await producer.send(topic, value, key=key))
            # Not all of them at the end: a list of some 50,000 futures holds the event loop for a
            # tenth of a second, and what was stamped before that leaves after it.
            while sent and sent[0].done():
                sent.popleft().result()
        for future in sent:
            await future


async def stamps(bootstrap: str, topic: str, count: int) -> dict[str, int]:
    """Return the first timestamp, in ms, of each request_id of a topic, once there are `count` of
    them.
    """
    found: dict[str, int] = {}
    async with AIOKafkaConsumer(
        topic, bootstrap_servers=bootstrap, auto_offset_reset="earliest"
    ) as consumer:
        async with asyncio.timeout(DRAINED_WITHIN):
            while len(found) < count:
                for records in (await consumer.getmany(timeout_ms=500)).values():
                    for record in records:
                        found.setdefault(orjson.loads(record.value)["request_id"], record.timestamp)
    return found


def bills_and_rewards(events: Events, *, seed: int = 0) -> tuple[Events, Events]:
    """Return a bill and a reward of each of some requests."""
    rng = np.random.default_rng(seed)
    bills, rewards = [], []
    costs, values = rng.lognormal(-8.0, 0.5, len(events)), rng.uniform(size=len(events))
    for (key, value), cost, reward in zip(events, costs, values, strict=True):
        asked = orjson.loads(value)
        whose = {"router_id": asked["router_id"], "request_id": asked["request_id"]}
        bills.append((key, orjson.dumps({**whose, "cost_usd": float(cost)})))
        judged = {**whose, "reward": float(reward), "source": "judge"}
        rewards.append((key, orjson.dumps(judged)))
    return bills, rewards


def measure(child: psutil.Process, cpu_before: float, times: dict[str, int]) -> Drained:
    """Return the rate between the first and the last output record."""
    seconds = (max(times.values()) - min(times.values())) / 1000
    cpu = sum(child.cpu_times()[:2]) - cpu_before
    return Drained(
        (len(times) - 1) / seconds, cpu / len(times) * 1e6, child.memory_info().rss / 1e6
    )


def worker_environment(settings: Settings) -> dict[str, str]:
    """Return the variables of a worker of these topics that takes contexts only."""
    return {
        "PB_BOOTSTRAP": settings.bootstrap,
        "PB_PREFIX": settings.prefix,
        "PB_APP_ID": settings.app_id,
        "PB_ENCODER_BACKEND": "none",
        "PB_WEB_PORT": "0",
        "PB_UNKNOWN_ROUTER_WAIT": "120",
    }
