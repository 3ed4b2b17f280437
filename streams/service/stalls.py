"""Measure how long the event loop is blocked."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

LOOK_EVERY = 0.05
"""Seconds between two looks: how exactly a stall is measured."""


async def watch_loop(observe: Callable[[float], object], *, every: float = LOOK_EVERY) -> None:
    """Observe, without end, the seconds by which the loop wakes later than it was asked to."""
    while True:
        asked = time.perf_counter() + every
        await asyncio.sleep(every)
        observe(max(0.0, time.perf_counter() - asked))
