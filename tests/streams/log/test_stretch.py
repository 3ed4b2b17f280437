"""A stretch of a partition is read to its end, or an error says that it cannot be."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka import TopicPartition

from streams.log.stretch import STALLED_AFTER, bounds, read_stretch

TP = TopicPartition("pb.routes", 0)


class Consumer:
    """A partition with records at some offsets, of which two come with each fetch."""

    def __init__(self, offsets: list[int], *, end: int, away_from: int | None = None) -> None:
        self.offsets, self.end, self.away_from, self.at = offsets, end, away_from, 0
        self.now = 0.0

    def seek(self, tp: TopicPartition, offset: int) -> None:
        self.at = offset

    async def beginning_offsets(self, places: list[TopicPartition]) -> dict[TopicPartition, int]:
        return {TP: self.offsets[0]}

    async def end_offsets(self, places: list[TopicPartition]) -> dict[TopicPartition, int]:
        return {TP: self.end}

    async def position(self, tp: TopicPartition) -> int:
        return self.at

    async def getmany(self, tp: TopicPartition, **options: Any) -> dict[TopicPartition, list[Any]]:
        self.now += 1.0
        if self.away_from is not None and self.at >= self.away_from:
            return {}
        found = [offset for offset in self.offsets if offset >= self.at][:2]
        self.at = found[-1] + 1 if found else self.end
        return {TP: [SimpleNamespace(offset=offset) for offset in found]} if found else {}


async def read(consumer: Any, begin: int, end: int) -> list[int]:
    """Return the offsets that were read."""
    return [
        record.offset
        async for records in read_stretch(consumer, TP, begin, end, clock=lambda: consumer.now)
        for record in records
    ]


@pytest.mark.parametrize(
    ("begin", "end", "found"),
    [(3, 9, [3, 4, 8]), (3, 4, [3]), (5, 5, []), (5, 8, []), (8, 12, [8, 9]), (10, 12, [])],
    ids=["holes", "one", "nothing", "compacted", "a marker at the end", "markers alone"],
)
async def test_what_is_there_is_read(begin: int, end: int, found: list[int]) -> None:
    assert await read(Consumer([3, 4, 8, 9], end=12), begin, end) == found


async def test_brokers_that_are_away_end_the_reading() -> None:
    consumer = Consumer(list(range(9)), end=9, away_from=4)
    with pytest.raises(TimeoutError, match=r"pb\.routes-0 gives nothing at offset 4"):
        await read(consumer, 0, 9)
    assert consumer.now < STALLED_AFTER + 5.0


async def test_bounds_are_the_first_offset_and_the_next() -> None:
    consumer: Any = Consumer([3, 4], end=7)
    assert await bounds(consumer, TP) == (3, 7)
