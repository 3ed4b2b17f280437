"""Send agents' records as one batch a partition, instead of a future and a queue entry each."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from aiokafka.producer import sender
from aiokafka.producer.message_accumulator import BatchBuilder

from streams.partitioner import choose_partition

if TYPE_CHECKING:
    from aiokafka import AIOKafkaProducer
    from aiokafka.structs import RecordMetadata

CODECS = {"none": 0, "gzip": 1, "lz4": 3, "zstd": 4}
"""Codec numbers of Kafka's record batch format by the names of PB_OUTPUT_COMPRESSION."""
BATCH_BYTES = 512 * 1024
"""Most bytes of records in one batch, before compression: half of what a topic takes by default."""


class ProduceRequest(sender.SendProduceReqHandler):  # type: ignore[misc]
    """One produce request; one at a time is under way to a broker.

    The next request leaves one pass of the event loop after the answer to this one. So it takes
    along what waited for that answer: the answers of a group that is durable now, and the next
    group's record batch.
    """

    async def do(self, node_id: int) -> None:
        """Send the request, and return one pass after the broker's answer was passed on."""
        await super().do(node_id)
        await asyncio.sleep(0)


def answers_join_the_next_request() -> None:
    """Let every producer of this process send its requests as `ProduceRequest` does."""
    sender.SendProduceReqHandler = ProduceRequest


@dataclass(slots=True)
class OpenBatch:
    """Records that go out together, and the task that delivers them."""

    builder: BatchBuilder
    delivery: asyncio.Task[object]


class Outgoing:
    """The outgoing records, collected until their sender waits for delivery; a partition's batches
    go out in order.

    While one batch is on its way, the next one of its partition fills, so batches grow with the
    load.

    Args:
        producer: function that returns aiokafka's started producer.
        may_write: function that returns while this worker is a member of its group, waits while
            that is not known, and raises if it is not.
        codec: a name of `CODECS`.
        batch_bytes: most bytes of records in one batch, before compression.
    """

    def __init__(
        self,
        producer: Callable[[], AIOKafkaProducer],
        *,
        may_write: Callable[[], Awaitable[None]],
        codec: str,
        batch_bytes: int = BATCH_BYTES,
    ) -> None:
        self._producer = producer
        self._may_write = may_write
        self._codec = CODECS[codec]
        self._counts: dict[str, int] = {}
        self._batch_bytes = batch_bytes
        self._filling: dict[tuple[str, int], OpenBatch] = {}
        self._in_order: dict[tuple[str, int], asyncio.Lock] = defaultdict(asyncio.Lock)

    async def send(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None,
        partition: int | None = None,
        headers: Sequence[tuple[str, bytes]] | None = None,
    ) -> Awaitable[object]:
        """Add one record to its partition's batch; return an awaitable of the batch's delivery."""
        if partition is None:
            count = self._counts.get(topic) or await self._count(topic)
            partition = choose_partition(key, count)
        tp = topic, partition
        batch = self._filling.get(tp) or self._begin(tp)
        said = list(headers) if headers else []
        if batch.builder.append(timestamp=None, key=key, value=value, headers=said) is None:
            batch = self._begin(tp)  # the one before is full
            batch.builder.append(timestamp=None, key=key, value=value, headers=said)
        return batch.delivery

    async def _count(self, topic: str) -> int:
        """Return the number of a topic's partitions."""
        count = self._counts[topic] = len(await self._producer().partitions_for(topic))
        return count

    def _begin(self, tp: tuple[str, int]) -> OpenBatch:
        builder = BatchBuilder(self._batch_bytes, self._codec)
        self._filling[tp] = batch = OpenBatch(
            builder, asyncio.create_task(self._deliver(tp, builder))
        )
        return batch

    async def _deliver(self, tp: tuple[str, int], builder: BatchBuilder) -> RecordMetadata:
        # The batch is filled until its turn comes. Behind the lock aiokafka keeps the order: it
        # sends one batch of a partition at a time.
        async with self._in_order[tp]:
            if (filling := self._filling.get(tp)) is not None and filling.builder is builder:
                del self._filling[tp]
            builder.close()
            # Membership is checked now: while the batch was filling, this worker may have left the
            # group.
            await self._may_write()
            delivery = await self._producer().send_batch(builder, tp[0], partition=tp[1])
        return await delivery
