"""How many decisions a worker makes per second, state durable, beside a bare Faust agent that
echoes the same events.

    uv run python -m benchmarks.stream [--quick]

Both sides drain a backlog of the same requests (contexts given, 26 numbers) from the same broker,
one after the other, in turns; a rate counts from the first output record to the last, by the times
the producer stamped on them. Then requests come at half of the worker's rate, and the time from
each request's record to its decision's is the latency.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from tempfile import TemporaryDirectory

import numpy as np
import orjson
import psutil
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from benchmarks.report import command, print_figures, print_table
from streams.broker.choose import choose_broker
from streams.log.topics import create_topics
from streams.settings import Settings, load_settings

PARTITIONS = 8
ROUTERS = 64
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
    async with AIOKafkaProducer(bootstrap_servers=bootstrap, linger_ms=5) as producer:
        started, sent = time.monotonic(), []
        for i, (key, value) in enumerate(events):
            if (
                per_second is not None
                and (ahead := i / per_second - (time.monotonic() - started)) > 0
            ):
                await asyncio.sleep(ahead)
            sent.append(await producer.send(topic, value, key=key))
        await asyncio.gather(*sent)


async def stamps(bootstrap: str, topic: str, count: int) -> dict[str, int]:
    """Return the first timestamp, in ms, of each request_id of a topic, once there are `count` of
    them.
    """
    found: dict[str, int] = {}
    async with AIOKafkaConsumer(
        topic, bootstrap_servers=bootstrap, auto_offset_reset="earliest"
    ) as consumer:
        async with asyncio.timeout(240):
            while len(found) < count:
                for records in (await consumer.getmany(timeout_ms=500)).values():
                    for record in records:
                        found.setdefault(orjson.loads(record.value)["request_id"], record.timestamp)
    return found


def measure(child: psutil.Process, cpu_before: float, times: dict[str, int]) -> Drained:
    """Return the rate between the first and the last output record."""
    seconds = (max(times.values()) - min(times.values())) / 1000
    cpu = sum(child.cpu_times()[:2]) - cpu_before
    return Drained(
        (len(times) - 1) / seconds, cpu / len(times) * 1e6, child.memory_info().rss / 1e6
    )


async def drain_echo(bootstrap: str, events: Events) -> Drained:
    """Let the bare agent echo a backlog."""
    name = f"echo-{uuid.uuid4().hex[:8]}"
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    await admin.create_topics([NewTopic(f"{name}-{end}", PARTITIONS, 1) for end in ("in", "out")])
    await admin.close()
    await produce(bootstrap, f"{name}-in", events)
    environment = {
        "ECHO_ID": name,
        "ECHO_IN": f"{name}-in",
        "ECHO_OUT": f"{name}-out",
        "ECHO_PARTITIONS": str(PARTITIONS),
        "KAFKA_BOOTSTRAP": bootstrap,
    }
    with (
        TemporaryDirectory() as folder,
        process(
            ["-m", "benchmarks.stream_echo", "--datadir", folder, "worker", "-l", "error"],
            environment,
        ) as child,
    ):
        times = await asyncio.create_task(stamps(bootstrap, f"{name}-out", len(events)))
        return measure(child, 0.0, times)


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


async def drain_worker(
    bootstrap: str, events: Events, *, seconds: float
) -> tuple[Drained, list[int]]:
    """Let a worker decide a backlog, then requests at half of its rate for some seconds; return the
    latencies in ms as well.
    """
    name = f"bench-{uuid.uuid4().hex[:8]}"
    settings = load_settings(
        bootstrap=bootstrap, prefix=f"{name}.", app_id=name, partitions=PARTITIONS
    )
    await create_topics(settings)
    await produce(bootstrap, settings.topic("routers"), declarations(ROUTERS))
    await produce(bootstrap, settings.topic("requests"), events)
    with process(["-m", "streams.cli", "worker"], worker_environment(settings)) as child:
        times = await stamps(bootstrap, settings.topic("routes"), len(events))
        drained = measure(child, 0.0, times)
        rate = drained.events_per_second / 2
        later = [
            (key, value.replace(b'"request_id":"r', b'"request_id":"late'))
            for key, value in events[: int(rate * seconds)]
        ]
        await produce(bootstrap, settings.topic("requests"), later, per_second=rate)
        decided = await stamps(bootstrap, settings.topic("routes"), len(events) + len(later))
        asked = await stamps(bootstrap, settings.topic("requests"), len(events) + len(later))
    return drained, [decided[i] - asked[i] for i in decided if i.startswith("late")]


async def compare(bootstrap: str, *, events: int, rounds: int, seconds: float) -> None:
    """Run both sides in turns and print what came out."""
    backlog = requests(events)
    echoes, workers, latencies = [], [], []
    for _ in range(rounds):
        echoes.append(await drain_echo(bootstrap, backlog))
        drained, waits = await drain_worker(bootstrap, backlog, seconds=seconds)
        workers.append(drained)
        latencies += waits
    ratio = statistics.median(
        w.events_per_second / e.events_per_second for w, e in zip(workers, echoes, strict=True)
    )
    p50, p99 = np.percentile(latencies, [50, 99])
    columns = ["side", "events/s", "CPU µs/event", "RSS MB"]
    rows = [
        [
            side,
            *(
                statistics.median(getattr(run, name) for run in runs)
                for name in ("events_per_second", "cpu_us_per_event", "rss_mb")
            ),
        ]
        for side, runs in (("bare Faust echo", echoes), ("worker, state durable", workers))
    ]
    print_table(
        f"{events} requests, {rounds} rounds; decisions at half load: p50 {p50:.0f} ms, p99 "
        f"{p99:.0f} ms",
        columns,
        rows,
    )
    rss = max(run.rss_mb for run in workers)
    print_figures("stream", {"echo_ratio": ratio, "p50_ms": p50, "p99_ms": p99, "rss_mb": rss})


def run(quick: bool) -> None:
    """Compare a worker (contexts given, state durable) with a bare Faust echo agent on the same
    broker.
    """
    with choose_broker() as broker:
        events, rounds, seconds = (6_000, 1, 5.0) if quick else (20_000, 3, 20.0)
        asyncio.run(compare(broker.bootstrap, events=events, rounds=rounds, seconds=seconds))


if __name__ == "__main__":
    command(run)()
