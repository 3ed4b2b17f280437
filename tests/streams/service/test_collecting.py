"""No garbage collection of a worker looks at everything there is, and what goes is freed."""

from __future__ import annotations

import asyncio
import gc
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from agents.upkeep.sweep import Sweep
from benchmarks.in_memory import InMemory
from benchmarks.streaming import declarations, requests
from streams.service.collecting import (
    THRESHOLDS,
    collect_after_losses,
    collect_everything,
    little_by_little,
)
from streams.settings import Settings

MOST = 10 * THRESHOLDS[0]
"""What a full collection may find: what its own generation, the one below and the youngest hold."""
ROUTERS = 1_000
SETTINGS = Settings(prefix="pb.", app_id="collecting", partitions=2, encoder_backend="none")


@pytest.fixture(scope="module")
def entered() -> Iterator[None]:
    """Collect little by little; its beginning looks at all that tests have imported and are."""
    with little_by_little():
        yield
    gc.freeze()  # as `tests/conftest.py` has left it


@pytest.fixture
def small_steps(entered: None) -> None:
    """Begin a test right after a collection."""
    gc.collect()


class Node:
    """Something that knows others."""

    def __init__(self) -> None:
        self.known: list[Node] = []


@contextmanager
def looked_at() -> Iterator[list[int]]:
    """Note how many containers every collection finds to look at."""
    found: list[int] = []

    def look(phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            found.append(sum(len(gc.get_objects(n)) for n in range(info["generation"] + 1)))

    gc.callbacks.append(look)
    try:
        yield found
    finally:
        gc.callbacks.remove(look)


def test_nothing_is_left_of_it_afterwards() -> None:
    before = gc.get_threshold(), list(gc.callbacks)
    with pytest.raises(KeyError), little_by_little():
        raise KeyError
    assert (gc.get_threshold(), list(gc.callbacks)) == before
    assert gc.get_freeze_count() == 0


@pytest.mark.usefixtures("small_steps")
def test_a_collection_looks_at_what_is_new_only() -> None:
    kept = []
    with looked_at() as found:
        for _ in range(20 * MOST):
            kept.append([])
    assert len(found) > 20 and max(found) < MOST


@pytest.mark.usefixtures("small_steps")
def test_what_was_set_aside_goes_with_its_last_reference() -> None:
    node = Node()
    gc.collect()
    assert gc.get_freeze_count() > 0
    gone = weakref.ref(node)
    del node
    assert gone() is None


@pytest.mark.usefixtures("small_steps")
def test_a_cycle_that_was_set_aside_goes_when_everything_is_looked_at() -> None:
    node = Node()
    node.known.append(node)
    gc.collect()
    gone = weakref.ref(node)
    del node
    gc.collect()
    assert gone() is not None
    collect_everything()
    assert gone() is None


class Rebalances:
    """What a worker hears of rebalances."""

    def __init__(self) -> None:
        self._lost_by: list[Any] = []
        self._recovered_by: list[Any] = []
        self.on_lost, self.on_recovered = self._lost_by.append, self._recovered_by.append

    def rebalance(self, *, lost: frozenset[int] = frozenset()) -> None:
        """Lose some partitions, then recover."""
        if lost:
            self._lost_by[0](lost)
        self._recovered_by[0](frozenset({1}))


@pytest.mark.usefixtures("small_steps")
@pytest.mark.parametrize(("few", "looks"), [(10**9, 2), (0, 0)])
async def test_a_rebalance_that_took_partitions_looks_at_everything_later_where_that_is_soon_done(
    few: int, looks: int
) -> None:
    rebalances = Rebalances()
    collect_after_losses(rebalances, few=few, later=0.01)  # type: ignore[arg-type]
    with looked_at() as found:
        rebalances.rebalance()
        await asyncio.sleep(0.02)
        assert (found, gc.get_count()[0] < THRESHOLDS[0]) == ([], True)
        rebalances.rebalance(lost=frozenset({2}))
        rebalances.rebalance()  # while nothing has been looked at yet
        assert found == []  # the group waits: not now
        await asyncio.sleep(0.02)
        assert len(found) == looks
        rebalances.rebalance()
        await asyncio.sleep(0.02)
        assert len(found) == looks


@pytest.mark.usefixtures("small_steps")
async def test_a_worker_with_many_routers_is_never_looked_at_as_a_whole() -> None:
    with looked_at() as found:
        before = gc.get_freeze_count()
        worker = InMemory(SETTINGS)
        await worker.start()
        await worker.take(worker.fetched("routers", declarations(ROUTERS), at=time.time()))
        asked = requests(2 * ROUTERS, routers=ROUTERS)
        await worker.take(worker.fetched("requests", asked, at=time.time()))
        await Sweep(worker.partitions).round()
        assert max(found) < MOST < gc.get_freeze_count() - before
        # Routers are no cycles: those that go are freed at once, set aside or not.
        engines = [one for at in worker.partitions for one in at.routers._engines.values()]
        gone = [weakref.ref(engine.records) for engine in engines]
        held = gc.get_freeze_count()
        del engines
        worker.partitions.lost(frozenset(range(SETTINGS.partitions)))
        await asyncio.sleep(0.01)  # the lanes' tasks end
        assert len(gone) == ROUTERS and not any(records() for records in gone)
        assert held - gc.get_freeze_count() > MOST
        await worker.stop()
