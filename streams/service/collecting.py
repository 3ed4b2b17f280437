"""Collect garbage a little at a time: no collection looks at everything there is.

Python's full collections look at every container, and nothing else of a worker goes on meanwhile:
with 10,000 routers in memory that is most of a second. Here what a full collection leaves is set
aside (`gc.freeze`), and the next one looks only at what has come since. What was set aside is
still freed with its last reference, as routers and requests are: they hold no cycles. A cycle that
was set aside while it was in use stays until partitions are lost.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

from streams.state.tables import States

#: Containers made, net of those freed, between two collections; then how many collections of one
#: generation may pass before one of the next. A full one looks at some 20,000 containers.
THRESHOLDS = 3_000, 1, 1
#: Containers of which all are looked at once more after a recovery: less than a tenth of a second.
FEW = 200_000


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


def collect_everything_if_few() -> None:
    """Look at everything once, where that is soon done: a group waits for who has recovered."""
    if gc.get_freeze_count() <= FEW:
        collect_everything()


def collect_everything() -> None:
    """Look at everything once, while nothing waits for an answer."""
    gc.unfreeze()
    gc.collect()
    # Python puts a full collection off until a quarter has come of what the last one has left:
    # this one leaves nothing.
    gc.collect()


def collect_after_losses(states: States) -> None:
    """Look at everything after a rebalance that took partitions away. What one has only brought is
    set aside unseen: requests wait for it.
    """
    lost: list[frozenset[int]] = []

    def recovered(owned: frozenset[int]) -> None:
        if lost:
            lost.clear()
            collect_everything()
        else:
            gc.freeze()

    states.on_lost(lost.append)
    states.on_recovered(recovered)


def _set_aside(phase: str, info: dict[str, int]) -> None:
    if phase == "stop" and info["generation"] == 2:
        gc.freeze()
