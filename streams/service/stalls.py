"""Measure how long the event loop is blocked."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

LOOK_EVERY = 0.05
"""Seconds; a stall is seen to within this."""


async def watch_loop(observe: Callable[[float], object], *, every: float = LOOK_EVERY) -> None:
    """Tell for ever by how many seconds the loop came back later than it was asked to."""
    while True:
        asked = time.perf_counter() + every
        await asyncio.sleep(every)
        observe(max(0.0, time.perf_counter() - asked))
