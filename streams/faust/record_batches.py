"""Write a group's changes to the changelog as one record batch, all of it or nothing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from aiokafka.errors import MessageSizeTooLargeError
from aiokafka.producer.message_accumulator import BatchBuilder

from schemas.dlq import VALUE_OMITTED
from streams.changelog_format import EPOCH, Changes
from streams.faust.outgoing import CODECS
from streams.partitioner import choose_partition

if TYPE_CHECKING:
    from aiokafka import AIOKafkaProducer
    from aiokafka.structs import RecordMetadata

MAX_BYTES = 2**31 - 1
"""Size limit in bytes for a record batch of one record: the broker decides whether to accept it."""


class BatchTooLarge(Exception):
    """The changes of one group do not fit into one record batch of the changelog."""

    reason = "batch_too_large"
    retriable = False


class RecordBatches:
    """Write record batches with the worker's own producer.

    Args:
        producer: gives aiokafka's producer, started.
        changelog: the topic's name.
        limit: bytes of a record batch of the changelog, the topic's `max.message.bytes`.
        may_write: returns while this worker is a member of its group, waits where that is not
            known, and raises when it is none.
    """

    def __init__(
        self,
        producer: Callable[[], AIOKafkaProducer],
        changelog: str,
        limit: int,
        *,
        may_write: Callable[[], Awaitable[None]],
    ) -> None:
        self._producer = producer
        self._changelog = changelog
        self._limit = limit
        self._may_write = may_write

    async def publish(self, partition: int, changes: Changes, epoch: int) -> int:
        """Write changes as one record batch, all of it or nothing, and return its first record's
        offset.

        Raises:
            BatchTooLarge: the changes do not fit; nothing was written.
        """
        # Not compressed: the limit is on the content, so that a batch is refused for its size
        # before it is sent.
        batch = BatchBuilder(self._limit, CODECS["none"])
        headers = [(EPOCH, b"%d" % epoch)]
        for key, value in changes.items():
            if batch.append(timestamp=None, key=key, value=value, headers=headers) is None:
                raise self._too_large(partition, changes)
        # aiokafka takes the first record of a batch, however large it is.
        if batch.size() > self._limit:
            raise self._too_large(partition, changes)
        return int((await self._send(batch, self._changelog, partition)).offset)

    def _too_large(self, partition: int, changes: Changes) -> BatchTooLarge:
        total = sum(len(key) + len(value or b"") for key, value in changes.items())
        return BatchTooLarge(
            f"{len(changes)} changes of partition {partition} have {total} bytes, {self._limit} "
            "fit: lower PB_BATCH_SIZE, or raise PB_CHANGELOG_BATCH_BYTES and max.message.bytes of "
            f"{self._changelog}"
        )

    async def send_large(
        self,
        topic: str,
        *,
        key: bytes | None,
        value: bytes | None,
        headers: Sequence[tuple[str, bytes]],
    ) -> None:
        """Deliver one record of any size, compressed; if the topic refuses it, it is sent without
        its value.
        """
        partitions = await self._producer().partitions_for(topic)
        partition = choose_partition(key, len(partitions))
        try:
            await self._send_one(topic, partition, key, value, headers)
        except MessageSizeTooLargeError:
            omitted = [*headers, (VALUE_OMITTED, b"%d" % len(value or b""))]
            await self._send_one(topic, partition, key, None, omitted)

    async def _send_one(
        self,
        topic: str,
        partition: int,
        key: bytes | None,
        value: bytes | None,
        headers: Sequence[tuple[str, bytes]],
    ) -> None:
        batch = BatchBuilder(MAX_BYTES, CODECS["gzip"])
        batch.append(timestamp=None, key=key, value=value, headers=list(headers))
        await self._send(batch, topic, partition)

    async def _send(self, batch: BatchBuilder, topic: str, partition: int) -> RecordMetadata:
        await self._may_write()
        batch.close()  # a closed batch does not linger, and takes nobody else's records
        return await (await self._producer().send_batch(batch, topic, partition=partition))
