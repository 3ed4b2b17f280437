"""Measure how long one waits for a decision: at a rate, beside a backlog, behind the client."""

from __future__ import annotations

import asyncio
import time

from benchmarks.stream_sides import Bench
from benchmarks.streaming import ROUTERS, WARM, Events, bills_and_rewards
from paretobandit_client import Router

CALLERS = 100
"""Tasks of one process that wait for a decision at the same time, at most."""
BESIDE_A_BACKLOG = 100.0
"""Fresh requests a second beside a backlog of bills, for two seconds."""
AT_WORK = 0.5
"""Seconds after which a worker that has just become ready has unpacked its routers."""


async def latencies(
    bench: Bench, rate: float, seconds: float, *, feedback: Events | None, warm: float = WARM
) -> list[int]:
    """Return the milliseconds from request to decision at a rate, with as many bills and rewards of
    known requests where there are some; those of the first seconds, `warm`, do not count.
    """
    before, count = bench.asked + int(rate * warm), int(rate * (warm + seconds))
    sends = [bench.send("requests", bench.more(count), per_second=rate)]
    if feedback is not None:
        bills, rewards = bills_and_rewards(feedback[:count], seed=1)
        revised = [(key, value[:-1] + b',"revision":1}') for key, value in bills]
        sends += [bench.send("costs", revised, per_second=rate)]
        sends += [bench.send("rewards", rewards, per_second=rate)]
    await asyncio.gather(*sends)
    decided = await bench.decided()
    asked = await bench.asked_at()
    return [decided[f"r{i}"] - asked[f"r{i}"] for i in range(before, bench.asked)]


async def calls(bootstrap: str, rate: float, seconds: float) -> list[float]:
    """Return the milliseconds that an application waits for `route()`, many callers at a time."""
    bench = Bench(bootstrap, ROUTERS)
    callers, waited = asyncio.Semaphore(CALLERS), list[float]()
    settings = bench.settings
    await bench.create()

    async def call(router: Router, number: int) -> None:
        async with callers:
            began = time.monotonic()
            await router.route(context=[0.1 * (number % 7)] * 25 + [1.0])
            waited.append(1000 * (time.monotonic() - began))

    with bench.worker():
        await bench.in_force()
        async with (
            Router("router-0", bootstrap=settings.bootstrap, prefix=settings.prefix) as router,
            asyncio.TaskGroup() as group,
        ):
            began = time.monotonic()
            for number in range(int(rate * seconds)):
                if (ahead := began + number / rate - time.monotonic()) > 0:
                    await asyncio.sleep(ahead)
                group.create_task(call(router, number))
    return waited


async def beside_a_backlog(bench: Bench, decided: Events, count: int) -> list[int]:
    """Return the milliseconds from request to decision while a worker that was away has so many
    bills to book first.
    """
    bills, _ = bills_and_rewards(decided, seed=2)
    backlog = [
        (key, value[:-1] + b',"revision":%d}' % (2 + revision))
        for revision in range(1 + count // len(bills))
        for key, value in bills
    ]
    await bench.send("costs", backlog[:count])
    with bench.worker():
        return await latencies(bench, BESIDE_A_BACKLOG, 2.0, feedback=None, warm=AT_WORK)
