"""Read a range of offsets of one partition."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable

from aiokafka import AIOKafkaConsumer, ConsumerRecord, TopicPartition

STALLED_AFTER = 30.0
"""Seconds without progress after which the brokers are taken to be away; electing a partition's
next leader takes some of them."""


async def bounds(consumer: AIOKafkaConsumer, tp: TopicPartition) -> tuple[int, int]:
    """Return a partition's first offset, and the offset of its next record."""
    first = (await consumer.beginning_offsets([tp]))[tp]
    return int(first), int((await consumer.end_offsets([tp]))[tp])


async def read_stretch(
    consumer: AIOKafkaConsumer,
    tp: TopicPartition,
    begin: int,
    end: int,
    *,
    clock: Callable[[], float] = time.monotonic,
    **options: object,
) -> AsyncIterator[list[ConsumerRecord]]:
    """Yield a partition's records with begin ≤ offset < end, as they are fetched; compaction,
    retention and markers leave fewer, perhaps none.

    Args:
        consumer: started, assigned to the partition alone.
        options: of `getmany`.

    Raises:
        TimeoutError: the position did not move for 30 s.
    """
    consumer.seek(tp, begin)
    position, moved_at = begin, clock()
    while position < end:
        found = await consumer.getmany(tp, **{"timeout_ms": 500, **options})
        # Not the last record's offset: behind it may be markers and what compaction took.
        before, position = position, await consumer.position(tp)
        if position > before:
            moved_at = clock()
        elif clock() - moved_at > STALLED_AFTER:
            raise TimeoutError(f"{tp.topic}-{tp.partition} gives nothing at offset {position}")
        yield [record for record in found.get(tp, ()) if record.offset < end]
