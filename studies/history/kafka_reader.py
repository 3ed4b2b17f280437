"""Read ranges of offsets without side effects: no group, no commit, no producer, no new topic."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Coroutine, Iterable, Iterator
from typing import Self, TypeVar

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient

from ground.boundary import undoing
from ground.messages import Record as KafkaRecord
from streams.log.consumer import log_consumer
from streams.log.service_topics import counts_of
from streams.log.stretch import read_stretch
from streams.settings import Settings
from studies.history.records import NO_HEADERS, Record

T = TypeVar("T")
Bounds = dict[TopicPartition, tuple[int, int]]
RECORDS_AT_ONCE = 5000
"""Most records of a partition that wait in memory."""
LOOK_AGAIN_MS = 1000
"""Milliseconds of one fetch; then the reader checks whether the end was compacted away."""


def consumer_of(settings: Settings) -> AIOKafkaConsumer:
    """Return a consumer that belongs to no group, not yet started."""
    return log_consumer(settings, fetch_max_wait_ms=100, max_partition_fetch_bytes=8 * 2**20)


async def counts_in(settings: Settings) -> dict[str, int]:
    """Return how many partitions each topic has that is there."""
    admin = AIOKafkaAdminClient(**settings.kafka_auth(), client_id="pbstream-history")
    try:
        await admin.start()
        return await counts_of(admin)
    finally:
        await admin.close()


async def bounds_of(consumer: AIOKafkaConsumer, places: Iterable[TopicPartition]) -> Bounds:
    """Return the first and the next offset of each partition."""
    wanted = list(places)
    begins, ends = await consumer.beginning_offsets(wanted), await consumer.end_offsets(wanted)
    return {place: (begins[place], ends[place]) for place in wanted}


async def batches(
    settings: Settings, place: TopicPartition, begin: int, end: int
) -> AsyncIterator[list[Record]]:
    """Read a partition's records from `begin` up to, not including, `end`."""
    if begin >= end:
        return
    async with consumer_of(settings) as consumer:
        consumer.assign([place])
        async for records in read_stretch(
            consumer, place, begin, end, timeout_ms=LOOK_AGAIN_MS, max_records=RECORDS_AT_ONCE
        ):
            yield [record_of(record) for record in records]


def record_of(found: KafkaRecord) -> Record:
    """Return a consumer's record as a history holds it."""
    headers = (
        # A header may have no value at all.
        {name: (value or b"").decode(errors="replace") for name, value in found.headers}
        if found.headers
        else NO_HEADERS
    )
    return Record(found.offset, found.timestamp / 1000.0, found.key, found.value, headers)


class KafkaReader:
    """A reader for synchronous code; not to be used inside an event loop."""

    def __init__(self, settings: Settings) -> None:
        client = logging.getLogger("aiokafka")
        client.setLevel(max(client.level, logging.ERROR))  # a command may have it quieter
        self.settings = settings
        # The reader has its own event loop, so that a merge of many partitions can be a plain
        # iterator.
        self._loop = asyncio.new_event_loop()
        self._open: list[AsyncIterator[list[Record]]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def close(self) -> None:
        """End readings that go on, and close the event loop."""
        for reading in list(self._open):
            self._end(reading)
        self._loop.close()

    def run(self, work: Coroutine[object, None, T]) -> T:
        """Wait for a coroutine and return what it returns."""
        return self._loop.run_until_complete(work)

    def look(self, work: Coroutine[object, None, T]) -> T:
        """Run a look-up at construction; if the look-up fails, close the reader."""
        with undoing(self.close):
            return self.run(work)

    def records(self, topic: str, partition: int, begin: int, end: int) -> Iterator[Record]:
        """Read a partition of a topic, by its full name, from `begin` up to, not including,
        `end`.
        """
        reading = batches(self.settings, TopicPartition(topic, partition), begin, end)
        self._open.append(reading)
        try:
            while (batch := self.run(_next(reading))) is not None:
                yield from batch
        finally:
            self._end(reading)

    def _end(self, reading: AsyncIterator[list[Record]]) -> None:
        # An unfinished generator may be collected long after `close`, or while another one waits,
        # so `close` ends it.
        if reading in self._open and not self._loop.is_running():
            self._open.remove(reading)
            self.run(reading.aclose())  # type: ignore[attr-defined]


async def _next(reading: AsyncIterator[list[Record]]) -> list[Record] | None:
    return await anext(reading, None)
