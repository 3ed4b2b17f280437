"""The soak: one worker at half of the load that it sustains; memory, latency and lag over time,
their plot and a judgement.

python -m benchmarks.soak                    # 30 minutes
python -m benchmarks.soak --minutes 10
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import sys
import tempfile
import time
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from aiokafka import TopicPartition
from aiokafka.admin import AIOKafkaAdminClient

from benchmarks.trend import trend
from commands.broker.local import LocalKafka
from router_state.kernel import WINDOW
from streams.log.service_topics import create_topics
from streams.settings import Settings
from studies.audit.run import audit
from studies.audit.topic_reading import KafkaTopics
from tests.chaos.faults import RedisServer
from tests.chaos.load import Load
from tests.chaos.session import until
from tests.chaos.watch import WatchedService
from tests.integration.service import SOURCES, Worker

DOCS = Path(__file__).parents[2] / "docs"
ROUTERS, PARTITIONS, BURST, EVERY = 64, 8, 2_000, 5.0
REMEMBERED = 60.0
DRAINS_WITHIN = 30.0
TOLERANCE = {"memory_mb": 0.05, "redis_mb": 0.05, "p50_ms": 0.25, "p99_ms": 0.5, "lag": 0.5}
"""Most growth from the first third to the last one, as a share."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One look at the service.

    Attributes:
        seconds: since the steady load began.
        memory_mb, redis_mb: resident memory of the worker and of Redis.
        p50_ms, p99_ms: from a request's way to Kafka until its decision came back.
        lag: events that the worker has not committed.
        answered: decisions per second.
    """

    seconds: float
    memory_mb: float
    redis_mb: float
    p50_ms: float
    p99_ms: float
    lag: float
    answered: float


@asynccontextmanager
async def soaked(
    bootstrap: str, folder: Path
) -> AsyncIterator[tuple[WatchedService, Worker, RedisServer]]:
    """Run one worker with short memories, so that what is remembered and what is forgotten balance
    within minutes.
    """
    name = f"soak-{uuid.uuid4().hex[:8]}"
    settings = Settings(bootstrap=bootstrap, prefix=f"{name}.", app_id=name, partitions=PARTITIONS)
    await create_topics(settings)
    redis = RedisServer(folder)
    redis.start()
    environment = {
        "PB_REDIS_URL": redis.url,
        "PB_CONTEXT_TTL": str(REMEMBERED),
        "PB_ORPHAN_WAIT": "20",
    }
    service = WatchedService(settings, folder, environment)
    await service.start()
    polling = asyncio.create_task(_poll(service))
    try:
        worker = await service.ready(service.worker(instance="soaked"))
        yield service, worker, redis
    finally:
        polling.cancel()
        await service.stop()
        redis.stop()


async def _poll(service: WatchedService) -> None:
    while True:
        await service.poll()


async def sustainable(service: WatchedService) -> float:
    """Return how many requests per second, with their bills and labels, the worker takes from a
    backlog.
    """
    load = Load(service, routers=ROUTERS, per_second=1e9, seed=7, name="burst")
    await load.declare()
    started = time.monotonic()
    sending = asyncio.create_task(load.run())
    await service.until(lambda: load.number >= BURST, "a backlog", poll=False)
    load.stop()
    await sending
    await service.until(
        lambda: not any(service.owed(load).values()), "the end of the backlog", poll=False
    )
    return load.number / (time.monotonic() - started)


class Watch:
    """Look at a soaked service now and then."""

    def __init__(
        self,
        service: WatchedService,
        worker: Worker,
        redis: RedisServer,
        admin: AIOKafkaAdminClient,
    ) -> None:
        self._service = service
        self._pids = worker.process.pid, redis.process.pid if redis.process is not None else 0
        self._admin = admin
        self._since = time.monotonic()
        self._looked = self._since
        self.samples: list[Sample] = []

    async def look(self) -> None:
        """Take one sample."""
        waits = np.array(self._service.take_waits() or [np.nan]) * 1000.0
        now = time.monotonic()
        answered = float(np.isfinite(waits).sum()) / (now - self._looked)
        p50, p99 = np.percentile(waits, (50, 99))
        worker, redis = (_resident_mb(pid) for pid in self._pids)
        self.samples.append(
            Sample(
                now - self._since,
                worker,
                redis,
                float(p50),
                float(p99),
                await self._lag(),
                answered,
            )
        )
        self._looked = now

    async def _lag(self) -> float:
        settings = self._service.settings
        places = [
            TopicPartition(settings.topic(name), number)
            for name in SOURCES
            for number in range(settings.partitions)
        ]
        ends = await self._service.consumer.end_offsets(places)
        committed = await self._admin.list_consumer_group_offsets(settings.app_id)
        return float(
            sum(ends[tp] - max(0, committed[tp].offset if tp in committed else 0) for tp in places)
        )


def warm_up(rate: float) -> float:
    """Return after how many seconds of so many requests per second nothing fills up any more:
    requests are forgotten as fast as they come, and of nearly every router the last contexts are
    known.
    """
    return max(2.0 * REMEMBERED, 1.25 * WINDOW * ROUTERS / rate)


def _resident_mb(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    return (
        int(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1])
        / 1024.0
    )


async def soak(minutes: float, rate: float | None, seed: int) -> dict[str, Any]:
    """Run it, and return samples, trends and what the audit said."""
    with tempfile.TemporaryDirectory() as folder, LocalKafka(full_jit=True) as kafka:
        async with soaked(kafka.bootstrap, Path(folder)) as (service, worker, redis):
            sustained = await sustainable(service)
            rate = rate or sustained / 2.0
            load = Load(service, routers=ROUTERS, per_second=rate, seed=seed)
            await load.declare()
            loading = asyncio.create_task(load.run())
            admin = AIOKafkaAdminClient(bootstrap_servers=kafka.bootstrap)
            await admin.start()
            service.take_waits()
            watch = Watch(service, worker, redis, admin)
            while watch.samples[-1].seconds < minutes * 60.0 if watch.samples else True:
                await asyncio.sleep(EVERY)
                await watch.look()
            load.stop()
            await loading
            await admin.close()
            await until(lambda: not any(service.owed(load).values()), DRAINS_WITHIN)
            ended_early = not worker.running
            worker.terminate()
            await service.until(lambda: not worker.running, "an orderly end", poll=False)
            violations = await asyncio.to_thread(_violations, service.settings)
    samples = watch.samples
    steady = [sample for sample in samples if sample.seconds >= warm_up(rate)]
    trends = {
        name: trend([one.seconds for one in steady], [getattr(one, name) for one in steady])
        for name in TOLERANCE
    }
    return {
        "minutes": minutes,
        "sustainable": sustained,
        "rate": rate,
        "warm_up": warm_up(rate),
        "requests": load.number,
        "owed": service.owed(load),
        "violations": violations | ({"worker_ended": 1} if ended_early else {}),
        "trends": {
            name: asdict(found) | {"growth": found.growth} for name, found in trends.items()
        },
        "flat": {name: found.is_flat(tolerance=TOLERANCE[name]) for name, found in trends.items()},
        "samples": [asdict(sample) for sample in samples],
    }


def _violations(settings: Settings) -> dict[str, int]:
    with KafkaTopics(settings) as topics:
        return dict(audit(topics, settings).as_json()["violations"])


def main() -> int:
    """Run, write soak.json, soak.md and soak.png into lab/docs/; return 1 if anything was not
    flat, or broken.
    """
    from benchmarks.soak_report import draw, report

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument(
        "--rate",
        type=float,
        help="requests per second; default: half of what a backlog is worked off with",
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--docs", type=Path, default=DOCS, help="where the report goes")
    arguments = parser.parse_args()
    found = asyncio.run(soak(arguments.minutes, arguments.rate, arguments.seed))
    found |= {
        "cores": os.cpu_count(),
        "system": platform.system(),
    }
    (arguments.docs / "soak.json").write_text(json.dumps(found) + "\n", encoding="utf-8")
    (arguments.docs / "soak.md").write_text(report(found), encoding="utf-8")
    draw(found, arguments.docs / "soak.png")
    print(report(found))
    return (
        0
        if all(found["flat"].values())
        and not found["violations"]
        and not any(found["owed"].values())
        else 1
    )


if __name__ == "__main__":
    sys.exit(main())
