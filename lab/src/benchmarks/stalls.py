"""Measure how long the event loop is held while a worker sweeps and publishes.

uv run python -m benchmarks.stalls [--requests 10000] [--models 64]
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

from agents.publishing.publish import publish
from agents.table import keys
from agents.upkeep.sweep import Sweep
from streams.service.collecting import little_by_little
from streams.settings import Settings
from tests.audit_world import World

HOME = "busy"
CONTEXT = [0.1] * 25 + [1.0]


def declared(router_id: str, models: int) -> dict[str, Any]:
    """Return a declaration of so many models."""
    prices = {"input_price_per_m": 0.5, "output_price_per_m": 1.5, "onboarding_pulls": 0}
    names = {f"model-{number}": prices for number in range(models)}
    return {"router_id": router_id, "models": names, "budget_usd_per_request": 6.62e-4}


async def stalls(work: Callable[[], Awaitable[object]]) -> tuple[float, float]:
    """Return the most CPU time that one pass of the event loop took while some work is done, and
    that of all, in milliseconds.

    CPU time, as the machine may have other things to do.
    """
    longest, last, done = 0.0, time.process_time(), False

    async def watch() -> None:
        nonlocal longest, last
        while not done:
            await asyncio.sleep(0)
            now = time.process_time()
            longest, last = max(longest, now - last), now

    watching = asyncio.create_task(watch())
    await asyncio.sleep(0)
    began, longest = time.process_time(), 0.0
    await work()
    took, done = time.process_time() - began, True
    await watching
    return 1000 * longest, 1000 * took


async def measure(*, requests: int, models: int, routers: int) -> None:
    """Print a line for each kind of work."""
    world = World(Settings(partitions=1))
    await world.start()
    await world.send("routers", declared(HOME, models))
    for number in range(requests):
        await world.send(
            "requests", {"router_id": HOME, "request_id": f"r-{number}", "context": CONTEXT}
        )
    for number in range(routers):
        await world.send("routers", declared(f"router-{number}", 3))
    worker = world.worker
    for name, seconds in (("expire", 1000.0), ("forget", 8 * 86_400.0)):
        worker.clock.now += seconds
        longest, took = await stalls(lambda: Sweep(worker.partitions).round())
        print(
            f"{name:8} {requests:6} requests of {models} models: longest stall {longest:6.1f} "
            f"ms, all of it {took:8.0f} ms"
        )
    worker[0].news.routers = set(worker[0].routers)
    longest, took = await stalls(lambda: publish(worker.partitions))
    print(
        f"{'publish':8} {routers:6} routers: longest stall {longest:6.1f} ms, all of it "
        f"{took:8.0f} ms"
    )
    left = sum(raw[:1] == keys.REQUEST for raw in worker.table(0))
    assert left == 0, f"{left} requests are left"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--models", type=int, default=64)
    parser.add_argument("--routers", type=int, default=1000)
    with little_by_little():
        asyncio.run(measure(**vars(parser.parse_args())))
