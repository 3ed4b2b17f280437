"""A history in Kafka, read only: no group, no commit, no producer, no topic is created."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Iterator
from types import TracebackType
from typing import Any, Self, TypeVar

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient

from streams.replay.records import SOURCES, Record
from streams.settings import Settings

T = TypeVar("T")
AT_ONCE = 2000
PATIENCE_MS = 30_000


class MissingTopics(Exception):
    """The topics of the history are not in this Kafka."""


class KafkaHistory:
    """The topics of a prefix up to now; what is written later is not seen. To be used where no event loop runs.

    Args:
        settings: address and prefix.

    Raises:
        MissingTopics: there is no topic of requests under the prefix.
    """

    def __init__(self, settings: Settings) -> None:
        logging.getLogger("aiokafka").setLevel(logging.ERROR)
        self._settings = settings
        self._loop = asyncio.new_event_loop()
        try:
            self._bounds = self._run(self._look())
        except BaseException:
            self._loop.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._loop.close()

    def partitions(self) -> list[int]:
        """Return the partitions of requests."""
        return sorted(number for topic, number in self._bounds if topic == "requests")

    def read(self, topic: str, partition: int) -> Iterator[Record]:
        """Return a partition's records, oldest first."""
        begin, end = self._bounds.get((topic, partition), (0, 0))
        if begin >= end:
            return
        place = TopicPartition(self._settings.topic(topic), partition)
        consumer = self._run(self._open(place, begin))
        try:
            position = begin
            while position < end:
                batch = self._run(self._next(consumer, place))
                position = self._run(consumer.position(place))
                for record in batch:
                    if record.offset >= end:
                        return
                    headers = {name: value.decode(errors="replace") for name, value in record.headers} if record.headers else {}
                    yield Record(record.offset, record.timestamp / 1000.0, record.key, record.value, headers)
        finally:
            self._run(consumer.stop())

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._loop.run_until_complete(work)

    async def _next(self, consumer: AIOKafkaConsumer, place: TopicPartition) -> list[Any]:
        batches = await consumer.getmany(place, timeout_ms=PATIENCE_MS, max_records=AT_ONCE)
        return list(batches.get(place, ()))

    async def _open(self, place: TopicPartition, begin: int) -> AIOKafkaConsumer:
        consumer = AIOKafkaConsumer(
            **self._settings.kafka_auth(), enable_auto_commit=False, fetch_max_wait_ms=100, max_partition_fetch_bytes=8 * 2**20
        )
        await consumer.start()
        consumer.assign([place])
        consumer.seek(place, begin)
        return consumer

    async def _look(self) -> dict[tuple[str, int], tuple[int, int]]:
        """Return first and next offset of every partition of the topics that exist."""
        admin = AIOKafkaAdminClient(**self._settings.kafka_auth(), client_id="pbstream-replay")
        try:
            await admin.start()
            # All topics are asked for: asking by name would create a missing one where the broker allows that.
            present = {topic["topic"]: len(topic["partitions"]) for topic in await admin.describe_topics()}
        finally:
            await admin.close()
        names = {self._settings.topic(name): name for name in SOURCES}
        if self._settings.topic("requests") not in present:
            raise MissingTopics(f"topic {self._settings.topic('requests')} does not exist: PB_PREFIX names the history's prefix")
        places = [TopicPartition(full, number) for full in names if full in present for number in range(present[full])]
        consumer = AIOKafkaConsumer(**self._settings.kafka_auth(), enable_auto_commit=False)
        async with consumer:
            begins, ends = await consumer.beginning_offsets(places), await consumer.end_offsets(places)
        return {(names[tp.topic], tp.partition): (begins[tp], ends[tp]) for tp in places}
