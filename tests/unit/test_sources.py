"""Sources hand lists to agents at once, in order, bounded; a hole in what came is found."""

import asyncio
import itertools
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import pytest
from faust.types import TP

from streams.faust import sources
from streams.faust.gap_guard import GapGuard, OffsetGap
from streams.faust.sources import Source

ONE, OTHER = TP("requests", 0), TP("requests", 1)


def records(*offsets: int, size: int = 10) -> list[Any]:
    return [SimpleNamespace(offset=offset, key=b"", value=b"x" * size) for offset in offsets]


class Guarded:
    """A guard whose log holds records in its holes or not, and whose assignment can change."""

    def __init__(self, start: int | None, *, holds: bool) -> None:
        self.generation = 1
        self.guard = GapGuard(
            generation=lambda: self.generation, start_at=lambda tp: start, holds_records=self._holds
        )
        self._held = holds

    async def _holds(self, tp: TP, first: int, end: int) -> bool:
        return self._held

    async def check(self, *offsets: int) -> None:
        await self.guard.check(ONE, records(*offsets))


async def test_records_that_follow_each_other_pass() -> None:
    guarded = Guarded(3, holds=True)
    await guarded.check(3, 4)
    await guarded.check(5)


@pytest.mark.parametrize("first", [4, 9])
async def test_a_gap_before_the_first_record_is_found(first: int) -> None:
    with pytest.raises(OffsetGap, match="offset 3 was to come"):
        await Guarded(3, holds=True).check(first)


async def test_a_gap_between_batches_is_found() -> None:
    guarded = Guarded(None, holds=True)
    await guarded.check(7)
    with pytest.raises(OffsetGap, match="offset 8 was to come, 10 came"):
        await guarded.check(10)


async def test_a_gap_inside_a_batch_is_found() -> None:
    with pytest.raises(OffsetGap, match="offset 5 was to come, 7 came"):
        await Guarded(3, holds=True).check(3, 4, 7, 8)


async def test_offsets_that_hold_no_record_are_no_gap() -> None:
    await Guarded(3, holds=False).check(5, 8)


async def test_a_new_assignment_starts_where_it_was_told() -> None:
    guarded = Guarded(3, holds=True)
    await guarded.check(3, 4, 5)
    guarded.generation = 2
    await guarded.check(3, 4)


class Fed:
    """A source with an agent that takes a batch when it is told to."""

    def __init__(self, *, most: int = 16, max_bytes: int = 1_000_000) -> None:
        self.full: list[TP] = []
        self.drained: list[TP] = []
        self.source = Source(
            guard=self._pass,
            most=most,
            max_bytes=max_bytes,
            full=self.full.append,
            drained=self.drained.append,
        )
        self._batches: AsyncIterator[list[Any]] = self.source.batches()

    async def _pass(self, tp: TP, batch: list[Any]) -> None:
        return None

    async def take(self) -> list[int]:
        async with asyncio.timeout(5):
            return [record.offset for record in await anext(self._batches)]


async def test_what_has_come_is_handed_over_at_once_in_order() -> None:
    fed = Fed()
    fed.source.put(ONE, records(0, 1))
    fed.source.put(ONE, records(2))
    assert await fed.take() == [0, 1, 2]


async def test_nothing_is_done_before_the_agent_asks_for_more() -> None:
    fed = Fed()
    fed.source.put(ONE, records(0, 1))
    await fed.take()
    assert fed.source.done == {}
    assert not fed.source.idle.is_set()
    fed.source.put(OTHER, records(7))
    await fed.take()
    assert fed.source.done == {ONE: 2}


async def test_batches_grow_under_a_backlog_up_to_a_bound() -> None:
    fed = Fed(most=200)
    fed.source.put(ONE, records(*range(1000)))
    sizes = [len(await fed.take()) for _ in range(4)]
    assert sizes == [64, 128, 200, 200]


async def test_batches_grow_however_long_they_wait_for_kafka_and_shrink_by_their_own_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waited, worked = itertools.count(step=10), iter([0.0, 0.01, 1.0, 1.01, 2.0, 3.0, 4.0])
    clocks = SimpleNamespace(monotonic=lambda: next(waited), thread_time=lambda: next(worked))
    monkeypatch.setattr(sources, "time", clocks)
    fed = Fed(most=200)
    fed.source.put(ONE, records(*range(1000)))
    assert [len(await fed.take()) for _ in range(4)] == [64, 128, 200, 100]


async def test_no_partition_keeps_the_others_waiting() -> None:
    fed = Fed(most=4)
    fed.source.put(ONE, records(*range(100)))
    fed.source.put(OTHER, records(500))
    await fed.take()
    assert 500 in await fed.take()


async def test_a_full_partition_is_not_fetched_until_half_of_it_is_taken() -> None:
    fed = Fed(most=4, max_bytes=5_000)
    fed.source.put(ONE, records(*range(8), size=1_000))
    assert fed.full == [ONE]
    await fed.take()
    assert fed.drained == []
    await fed.take()
    assert fed.drained == [ONE]


async def test_what_is_dropped_is_not_handed_over() -> None:
    fed = Fed()
    fed.source.put(ONE, records(0, 1))
    fed.source.clear()
    fed.source.put(OTHER, records(5))
    assert await fed.take() == [5]


async def test_the_oldest_unfinished_record_is_known() -> None:
    fed = Fed()
    assert fed.source.oldest is None
    fed.source.put(ONE, records(0))
    waiting = fed.source.oldest
    assert waiting is not None
    await fed.take()
    assert fed.source.oldest == waiting
