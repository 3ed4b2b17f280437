"""Read single offsets of the log: tell holes in the log from holes in the delivery, and read
values again.
"""

import asyncio
from collections.abc import Iterable

from aiokafka import AIOKafkaConsumer, TopicPartition

from ground.messages import Record
from streams.log.consumer import log_consumer
from streams.log.stretch import bounds
from streams.settings import Settings

ANSWER_WITHIN = 30.0
"""Seconds to wait for one record; after them the record counts as missing."""
READ_THROUGH = 1_000
"""Most records that are read rather than skipped by a seek."""


class LogProbe:
    """A reader of single offsets with a consumer of its own, outside of any group, made when first
    needed.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._consumer: AIOKafkaConsumer | None = None
        self._one_at_a_time = asyncio.Lock()

    async def holds_records(self, tp: tuple[str, int], start: int, end: int) -> bool:
        """Tell whether the partition has a record with start ≤ offset < end; compaction and markers
        leave none.
        """
        async with self._one_at_a_time:
            consumer, tp = await self._assigned(tp)
            consumer.seek(tp, start)
            try:
                async with asyncio.timeout(ANSWER_WITHIN):
                    return int((await consumer.getone(tp)).offset) < end
            except TimeoutError:
                # The record at `end` was delivered and is gone by now, and so is everything before
                # it.
                return False

    async def end_of(self, tp: tuple[str, int]) -> int:
        """Return the offset behind the last record of a partition."""
        async with self._one_at_a_time:
            consumer, own = await self._assigned(tp)
            return int((await consumer.end_offsets([own]))[own])

    async def values_at(
        self, tp: tuple[str, int], offsets: Iterable[int]
    ) -> dict[int, bytes | None]:
        """Return the values of records that were delivered before, by offset; records that
        retention has deleted are left out.

        Raises:
            TimeoutError, KafkaError: the brokers do not answer.
        """
        found: dict[int, bytes | None] = {}
        record: Record | None = None
        async with self._one_at_a_time:
            consumer, tp = await self._assigned(tp)
            first, end = await bounds(consumer, tp)
            for offset in sorted(offset for offset in offsets if first <= offset < end):
                # A seek drops what was fetched ahead, so a near offset is reached faster by reading
                # on.
                if record is None or offset - record.offset > READ_THROUGH:
                    consumer.seek(tp, offset)
                    record = None
                async with asyncio.timeout(ANSWER_WITHIN):
                    while record is None or record.offset < offset:
                        record = await consumer.getone(tp)
                if record.offset == offset:
                    found[offset] = record.value
        return found

    async def stop(self) -> None:
        """Close the consumer."""
        if self._consumer is not None:
            await self._consumer.stop()

    async def _assigned(self, tp: tuple[str, int]) -> tuple[AIOKafkaConsumer, TopicPartition]:
        if self._consumer is None:
            self._consumer = await self._connect()
        own = TopicPartition(*tp)  # the client takes no other tuple, Faust's included
        self._consumer.assign([own])
        return self._consumer, own

    async def _connect(self) -> AIOKafkaConsumer:
        consumer = log_consumer(self._settings)
        await consumer.start()
        return consumer
