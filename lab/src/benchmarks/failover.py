"""Measure how long requests wait when workers die, stop or are restarted in turn: three workers,
one broker, nothing else broken.

python -m benchmarks.failover                      # each fault three times, four minutes
python -m benchmarks.failover --times 1 --session 15
"""

from __future__ import annotations

import argparse
import asyncio
import os
import tempfile
import uuid
from pathlib import Path
from typing import Any

import numpy as np

from commands.broker.local import LocalKafka
from streams.log.service_topics import create_topics
from streams.settings import Settings
from tests.chaos.faults import FAULTS, RedisServer, Stage
from tests.chaos.load import Load
from tests.chaos.network import Network
from tests.chaos.session import until
from tests.chaos.watch import WatchedService

ORDER = ("rolling_restart", "worker_stopped", "worker_killed", "worker_gone")
SETTLES_WITHIN = 60.0
Seconds = np.ndarray[Any, np.dtype[np.float64]]


async def waits(service: WatchedService, stage: Stage, fault: str) -> Seconds:
    """Do one fault, and return how long each request waited that was asked meanwhile, seconds."""
    await until(lambda: service.caught_up, SETTLES_WITHIN)
    loop = asyncio.get_running_loop()
    began = loop.time()
    await FAULTS[fault][0](stage)
    undone = loop.time()
    await until(lambda: service.decides_everywhere(undone) and service.caught_up, SETTLES_WITHIN)
    asked = (
        waited
        for partition in service.waited.values()
        for waited in partition.values()
        if waited[0] >= began
    )
    return np.array([(answered or loop.time()) - at for at, answered in asked])


async def measure(times: int, *, rate: float, session: float) -> None:
    """Print a row for each fault: of the longest wait of each round p50 and max, and p99 and p50 of
    all waits.
    """
    with tempfile.TemporaryDirectory() as folder, LocalKafka() as kafka:
        name = f"failover-{uuid.uuid4().hex[:8]}"
        settings = Settings(bootstrap=kafka.bootstrap, prefix=f"{name}.", app_id=name)
        await create_topics(settings)
        service = WatchedService(settings, Path(folder), {"PB_SESSION_TIMEOUT": str(session)})
        await service.start()
        network, redis = Network(kafka), RedisServer(Path(folder))
        stage = Stage(service, kafka, network, redis, np.random.default_rng(1), session)
        load = Load(service, routers=16, per_second=rate, seed=1)
        await stage.set_up(3)
        await load.declare()
        tasks = [asyncio.create_task(load.run()), asyncio.create_task(_poll(service))]
        await until(lambda: len(service.arrivals) == settings.partitions, SETTLES_WITHIN)
        print(
            "| fault | longest wait of a round, s: p50 / max | all waits: p50 / p99 | said twice | "
            "load |\n| --- | --- | --- | --- | --- |",
            flush=True,
        )
        for fault in ORDER:
            twice, rounds = service.duplicates, []
            for _ in range(times):
                await stage.set_up(3)
                rounds.append(await waits(service, stage, fault))
            longest, every = [np.max(one) for one in rounds], np.concatenate(rounds)
            print(
                f"| {fault} | {np.median(longest):.2f} / {np.max(longest):.2f} | "
                f"{np.median(every):.2f} / {np.quantile(every, 0.99):.2f} | "
                f"{service.duplicates - twice} | {os.getloadavg()[0]:.1f} |",
                flush=True,
            )
        load.stop()
        await tasks[0]
        tasks[1].cancel()
        await service.stop()


async def _poll(service: WatchedService) -> None:
    while True:
        await service.poll()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--rate", type=float, default=40.0, help="requests per second")
    parser.add_argument("--session", type=float, default=4.0, help="PB_SESSION_TIMEOUT")
    options = parser.parse_args()
    asyncio.run(measure(options.times, rate=options.rate, session=options.session))
