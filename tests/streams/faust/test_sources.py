"""What was fetched waits in order, bounded, and is acknowledged when it is finished; a hole in what
came is found.
"""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from faust.types import TP

from streams.faust.gap_guard import GapGuard, LogCutOff, OffsetGap
from streams.faust.sources import Inbox, Sources

ONE, OTHER = TP("requests", 0), TP("requests", 1)


def records(*offsets: int, size: int = 10) -> list[Any]:
    return [SimpleNamespace(offset=offset, key=b"", value=b"x" * size) for offset in offsets]


class Guarded:
    """A guard whose log holds records in its holes or not and ends somewhere, and whose assignment
    can change.
    """

    def __init__(self, start: int | None, *, holds: bool, end: int = 100) -> None:
        self.generation = 1
        self.guard = GapGuard(
            generation=lambda: self.generation,
            start_at=lambda tp: start,
            holds_records=self._holds,
            end_of=self._end_of,
        )
        self._held, self.end = holds, end

    async def _holds(self, tp: TP, first: int, end: int) -> bool:
        return self._held

    async def _end_of(self, tp: TP) -> int:
        return self.end

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


async def test_records_that_come_again_pass_while_the_log_still_ends_behind_them() -> None:
    guarded = Guarded(3, holds=True)
    await guarded.check(3, 4, 5)
    await guarded.check(4, 5, 6)


async def test_a_log_that_ends_before_what_was_read_is_found() -> None:
    guarded = Guarded(0, holds=True, end=6)
    await guarded.check(0, 1, 2, 3, 4, 5)
    guarded.end = 2
    with pytest.raises(LogCutOff, match="ends at offset 2, but was read up to 6"):
        await guarded.check(0, 1)
    with pytest.raises(LogCutOff, match="but was read up to 3"):
        await Guarded(3, holds=True, end=2).check(0, 1)
    forgotten = Guarded(0, holds=True, end=2)
    forgotten.guard.contained = lambda tp: 4
    with pytest.raises(LogCutOff, match="but was read up to 5"):
        await forgotten.check(0, 1)


class Fed:
    """The inbox of a partition, and a lane that takes what it is told to."""

    def __init__(self, *, max_bytes: int = 1_000_000) -> None:
        self.stopped: list[TP] = []
        self.resumed: list[TP] = []
        self.inbox = Inbox(
            0,
            {name: name for name in ("routers", "requests", "costs")},
            max_bytes=max_bytes,
            stop=self.stopped.append,
            resume=self.resumed.append,
        )

    def take(self, count: int, name: str = "requests") -> list[int]:
        queue = self.inbox.queues[name]
        taken = [queue.popleft() for _ in range(count)]
        self.inbox.took(name, taken)
        return [record.offset for record in taken]


async def test_what_has_come_waits_in_order_by_topic() -> None:
    fed = Fed()
    fed.inbox.put("requests", records(0, 1))
    fed.inbox.put("costs", records(7))
    fed.inbox.put("requests", records(2))
    assert (fed.take(3), fed.take(1, "costs"), len(fed.inbox)) == ([0, 1, 2], [7], 0)


async def test_declarations_and_all_others_are_announced_apart() -> None:
    fed = Fed()
    fed.inbox.put("routers", records(0))
    assert (fed.inbox.declared.is_set(), fed.inbox.arrived.is_set()) == (True, False)
    fed.inbox.put("costs", records(0))
    assert fed.inbox.arrived.is_set()


async def test_only_what_is_finished_is_done() -> None:
    fed = Fed()
    fed.inbox.put("requests", records(0, 1))
    fed.inbox.put("costs", records(7))
    fed.take(1)
    fed.take(1)
    fed.take(1, "costs")
    fed.inbox.finish("requests", 1)
    assert (fed.inbox.offsets, fed.inbox.idle.is_set()) == ({ONE: 1}, False)
    fed.inbox.finish("costs", 8)
    assert not fed.inbox.idle.is_set()
    fed.inbox.finish("requests", 2)
    assert fed.inbox.offsets == {ONE: 2, TP("costs", 0): 8}
    assert fed.inbox.idle.is_set()


async def test_a_full_partition_is_not_fetched_until_half_of_it_is_taken() -> None:
    fed = Fed(max_bytes=5_000)
    fed.inbox.put("requests", records(*range(8), size=1_000))
    fed.inbox.put("costs", records(0))
    assert fed.stopped == [ONE]
    fed.take(4)
    assert fed.resumed == []
    fed.take(4)
    assert fed.resumed == [ONE]


async def test_a_full_partition_that_is_held_waits_until_neither_is_so() -> None:
    first, last = Fed(max_bytes=5_000), Fed(max_bytes=5_000)
    for fed in (first, last):
        fed.inbox.put("requests", records(*range(8), size=1_000))
        fed.inbox.hold(frozenset({"requests"}))
    first.inbox.hold(frozenset())
    assert first.resumed == []
    first.take(8)
    assert first.resumed == [ONE]
    last.take(8)
    assert last.resumed == []
    last.inbox.hold(frozenset())
    assert last.resumed == [ONE]


async def test_what_is_held_is_stopped_anew_after_a_recovery_has_resumed_it() -> None:
    fed, held = Fed(), frozenset({"costs"})
    fed.inbox.hold(held)
    fed.inbox.clear()
    fed.inbox.hold(held)
    assert (fed.stopped, fed.resumed) == ([TP("costs", 0)] * 2, [])


async def test_only_held_partitions_stop() -> None:
    fed = {0: Fed(), 1: Fed()}
    sources = Sources({"costs": "costs"}, lambda number: fed[number].inbox)
    for number in fed:
        sources.inbox(number)
    sources.hold(frozenset({"costs"}), frozenset({1}))
    sources.hold(frozenset({"costs"}), frozenset({0}))
    assert [(len(one.stopped), len(one.resumed)) for one in fed.values()] == [(1, 0), (1, 1)]


async def test_what_is_dropped_is_not_handed_over() -> None:
    fed = Fed()
    fed.inbox.put("requests", records(0, 1))
    fed.inbox.clear()
    assert (len(fed.inbox), fed.inbox.oldest) == (0, None)
    fed.inbox.put("requests", records(5))
    assert fed.take(1) == [5]


async def test_since_when_nothing_was_finished_is_known() -> None:
    fed = Fed()
    assert fed.inbox.oldest is None
    fed.inbox.put("requests", records(0))
    waiting = fed.inbox.oldest
    assert waiting is not None
    fed.take(1)
    assert fed.inbox.oldest == waiting
    fed.inbox.finish("requests", 1)
    assert fed.inbox.oldest is None


async def test_each_partition_has_its_inbox_and_its_offsets() -> None:
    fed = {0: Fed(), 1: Fed()}
    topics = {"requests": "requests", "costs": "costs"}
    sources = Sources(topics, lambda number: fed[number].inbox)
    sources.deliver(ONE, records(0, 1))
    sources.deliver(OTHER, records(5))
    assert (list(sources), sources.unfinished) == (["requests", "costs"], 3)
    fed[0].take(2)
    finished = asyncio.create_task(sources.finished())
    await asyncio.sleep(0)
    assert not finished.done()
    fed[0].inbox.finish("requests", 2)
    await finished
    assert sources.done() == {ONE: 2}
    sources.forget({ONE})
    assert sources.done() == {}
