"""Connect the durable table to Faust and Kafka: recovery fills it, a commit writes one record
batch.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import faust
from aiokafka.errors import MessageSizeTooLargeError
from aiokafka.producer.message_accumulator import BatchBuilder
from faust.stores.memory import Store
from faust.types import TP, AppT

from ground.boundary import fatal
from ground.messages import Record
from schemas.dlq import VALUE_OMITTED
from streams.state.table_partition import EPOCH, Changes
from streams.state.tables import States

if TYPE_CHECKING:
    from aiokafka import AIOKafkaProducer
    from aiokafka.structs import RecordMetadata

log = logging.getLogger(__name__)

GZIP = 1
"""aiokafka's number of the codec."""
MAX_BYTES = 2**31 - 1
"""Size limit for a batch of one record: it is sent as it is, the broker says whether it may."""


class BatchTooLarge(Exception):
    """The changes of one batch do not fit into one record batch of the changelog."""

    reason = "batch_too_large"
    retriable = False


class StateTable(faust.Table):  # type: ignore[misc]
    """The table as Faust sees it: it recovers from its changelog, and everything else is up to
    `States`.
    """

    def __init__(self, app: AppT, states: States, **options: object) -> None:
        super().__init__(app, key_type=bytes, value_type=bytes, **options)
        self.states = states

    def _new_store(self) -> Store:
        """Return Faust's own store, which stays empty. Finding it by its URL would search the
        metadata of all packages.
        """
        return Store(self.app.conf.store, self.app, self, loop=self.loop)

    def persisted_offset(self, tp: TP) -> int:
        """Return the last offset contained; recovery reads what follows, all of it for a new
        partition.
        """
        return self.states.recovers_from(tp.partition)

    async def on_rebalance(
        self,
        assigned: set[TP],
        revoked: set[TP],
        newly_assigned: set[TP],
        generation_id: int = 0,
    ) -> None:
        """Drop the partitions that were assigned to other workers."""
        await super().on_rebalance(assigned, revoked, newly_assigned, generation_id)
        self.app.lease.join()
        partitions = sorted(
            tp.partition for tp in assigned if tp.topic == self.changelog_topic_name
        )
        log.info("assigned partitions=%s", partitions)
        await self.states.assign(partitions)

    def restore(self, records: Iterable[Record]) -> None:
        """Apply recovered records; those of lost partitions are skipped."""
        # Faust logs what is raised in its fetching and fetches on.
        with fatal():
            owned = self.states.owned
            for record in records:
                if record.partition in owned:
                    epoch = int(dict(record.headers or ()).get(EPOCH, b"0"))
                    partition = self.states.partition(record.partition)
                    partition.recover(
                        record.key or b"", record.value, offset=record.offset, epoch=epoch
                    )

    async def on_recovery_completed(self, active_tps: set[TP], standby_tps: set[TP]) -> None:
        """Fence the recovered partitions and tell the agents, before the first event flows."""
        await super().on_recovery_completed(active_tps, standby_tps)
        highwaters = self.app.tables.recovery.active_highwaters
        await self.states.recovered({tp.partition: highwaters[tp] + 1 for tp in active_tps})


class RecordBatches:
    """Write record batches with the app's own producer.

    Args:
        app: the Faust app, started.
        limit: bytes of a changelog batch, the topic's `max.message.bytes`.
        may_write: returns while this worker is a member of its group, waits where that is not
            known, and raises when it is none.
    """

    def __init__(
        self, app: AppT, changelog: str, limit: int, *, may_write: Callable[[], Awaitable[None]]
    ) -> None:
        self._app = app
        self._changelog = changelog
        self._limit = limit
        self._may_write = may_write

    async def publish(self, partition: int, changes: Changes, epoch: int) -> int:
        """Write changes as one record batch, all of it or nothing, and return its first record's
        offset.

        Raises:
            BatchTooLarge: they do not fit; nothing was written.
        """
        # Not compressed: the limit is on the content, so that a batch is refused for its size
        # before it is sent.
        batch = BatchBuilder(self._limit, 0)
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
        await self.producer.partitions_for(topic)
        # The partition that a usual send would have chosen for this key.
        partition = self.producer._partition(topic, None, None, None, key, None)
        try:
            await self._send_one(topic, partition, key, value, headers)
        except MessageSizeTooLargeError:
            omitted = [*headers, (VALUE_OMITTED, b"%d" % len(value or b""))]
            await self._send_one(topic, partition, key, None, omitted)

    @property
    def producer(self) -> AIOKafkaProducer:
        """Return aiokafka's producer below Faust's."""
        return self._app.producer._ensure_producer()

    async def _send_one(
        self,
        topic: str,
        partition: int,
        key: bytes | None,
        value: bytes | None,
        headers: Sequence[tuple[str, bytes]],
    ) -> None:
        batch = BatchBuilder(MAX_BYTES, GZIP)
        batch.append(timestamp=None, key=key, value=value, headers=list(headers))
        await self._send(batch, topic, partition)

    async def _send(self, batch: BatchBuilder, topic: str, partition: int) -> RecordMetadata:
        await self._may_write()
        batch.close()  # a closed batch does not linger, and takes nobody else's records
        return await (await self.producer.send_batch(batch, topic, partition=partition))
