"""Measure how long the event loop is blocked."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from streams.service.duties import after

LOOK_EVERY = 0.2
"""Seconds between two looks, which share their wakeups with the timers: a shorter stall is seen if
it lasts beyond the next look."""


async def watch_loop(observe: Callable[[float], object], *, every: float = LOOK_EVERY) -> None:
    """Observe, without end, by how many seconds the event loop wakes too late."""
    clock = asyncio.get_running_loop().time
    while True:
        wait = after(clock(), every) - clock()
        asked = time.perf_counter() + wait
        await asyncio.sleep(wait)
        observe(max(0.0, time.perf_counter() - asked))
