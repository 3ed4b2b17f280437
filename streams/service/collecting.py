"""Collect garbage in small steps, so that no collection looks at all objects.

Python's full collections look at every container, and nothing else of a worker goes on meanwhile:
with 10,000 routers in memory that is most of a second. Here what a full collection leaves is set
aside (`gc.freeze`), and the next one looks only at what has come since. What was set aside is
still freed with its last reference, as routers and requests are: they hold no cycles. A cycle that
was set aside while it was in use stays until partitions are lost.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterator
from contextlib import contextmanager

from streams.state.tables import States

THRESHOLDS = 3_000, 1, 1
"""Containers made, net of those freed, between two collections; then how many collections of one
generation may pass before one of the next. A full one looks at some 20,000 containers."""
FEW = 200_000
"""Most containers for which all are looked at once after a rebalance: that takes about a tenth of
a second.
"""
LATER = 10.0
"""Seconds from a recovery until that look: by then waiting requests are decided, or another
rebalance came.
"""


@contextmanager
def little_by_little() -> Iterator[None]:
    """Set aside what every full collection leaves, in this whole process, until the end."""
    before = gc.get_threshold()
    gc.callbacks.append(_set_aside)
    collect_everything()
    gc.set_threshold(*THRESHOLDS)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.callbacks.remove(_set_aside)
        gc.unfreeze()


def collect_everything() -> None:
    """Run one full collection while nothing waits for an answer."""
    gc.unfreeze()
    gc.collect()
    # Python puts a full collection off until a quarter has come of what the last one has left:
    # this one leaves nothing.
    gc.collect()


def collect_after_losses(states: States, *, few: int = FEW, later: float = LATER) -> None:
    """Run one full collection after a rebalance that took partitions away, once waiting events are
    done, if that is quick. Until then the collector passes over the present objects.
    """
    lost: list[frozenset[int]] = []
    waiting: list[asyncio.TimerHandle] = []

    def recovered(owned: frozenset[int]) -> None:
        gc.freeze()
        while waiting:
            waiting.pop().cancel()
        if lost:
            waiting.append(asyncio.get_running_loop().call_later(later, look))

    def look() -> None:
        lost.clear()
        if gc.get_freeze_count() <= few:
            collect_everything()

    states.on_lost(lost.append)
    states.on_recovered(recovered)


def _set_aside(phase: str, info: dict[str, int]) -> None:
    if phase == "stop" and info["generation"] == 2:
        gc.freeze()
