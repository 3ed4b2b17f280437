"""Measure steady traffic, in which a router's bill and reward come before its next request.

Estimates are due after nearly every event of a young router, and each group of events is small.
"""

from __future__ import annotations

import asyncio
import time

from benchmarks.stream_sides import Bench, cpu_seconds
from benchmarks.streaming import bills_and_rewards

FIRST = 2
"""Rounds before the clock starts: every router has made decisions by then."""
ROUNDS = 30
"""Most rounds that count: a round of few routers is soon over."""
IDLE = 5.0
"""Seconds in which nothing happens, to tell what a worker takes all the same."""


async def steady(bootstrap: str, routers: int, events: int) -> float:
    """Return a worker's CPU in µs an event, less what it takes when idle.

    In each round every router has a request, then its bill and its reward.

    Args:
        events: how many of each kind count, at least; one round at least.
    """
    bench = Bench(bootstrap, routers)
    await bench.create()
    rounds = min(max(events // routers, 1), ROUNDS)
    with bench.worker() as (child, _):
        await bench.in_force()
        for _ in range(FIRST):
            await _round(bench)
        began, before = time.monotonic(), cpu_seconds(child)
        for _ in range(rounds):
            await _round(bench)
        seconds, taken = time.monotonic() - began, cpu_seconds(child) - before
        before = cpu_seconds(child)
        await asyncio.sleep(IDLE)
        idle = (cpu_seconds(child) - before) / IDLE
    # Most of a round passes until it is told that all is settled.
    return 1e6 * max(taken - idle * seconds, 0.0) / (3 * rounds * routers)


async def _round(bench: Bench) -> None:
    asked = bench.more(bench.routers)
    await bench.send("requests", asked)
    await bench.decided()
    bills, rewards = bills_and_rewards(asked)
    await asyncio.gather(bench.send("costs", bills), bench.send("rewards", rewards))
    await bench.settled(bench.asked)
