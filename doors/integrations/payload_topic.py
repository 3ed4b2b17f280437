"""Read other systems' payloads from a Kafka topic, and write their costs and rewards as events."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Collection
from contextlib import suppress
from dataclasses import dataclass

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.abc import ConsumerRebalanceListener
from aiokafka.structs import TopicPartition

from doors.integrations.convert import Converted, convert
from doors.integrations.payload_items import Finder
from doors.integrations.remembered import Remembered
from ground.messages import Record
from schemas import MalformedEvent, encode
from schemas.dlq import INGEST, DeadLetter
from streams.settings import Settings

log = logging.getLogger(__name__)
LARGEST_BYTES = 16 * 2**20
"""Largest payload, in bytes; its dead letter may be twice that."""
REREAD = 1000
"""Records of a partition that are read again before its first new record, because later records go
on with their requests and scores; nothing of them is sent again."""


@dataclass(slots=True)
class Ingested:
    """Counts of a run: records read, events written, records of which something was refused, items
    refused, and items passed over because they hold no bill and no label that is wanted."""

    records: int = 0
    events: int = 0
    refused_records: int = 0
    refused: int = 0
    passed_over: int = 0


class Rewinding(ConsumerRebalanceListener):  # type: ignore[misc]
    """Let a consumer begin some records before its group's committed offset.

    Attributes:
        done: the first offset of each partition that the group has not done.
    """

    def __init__(self, consumer: AIOKafkaConsumer) -> None:
        self._consumer = consumer
        self.done: dict[TopicPartition, int] = {}

    async def on_partitions_revoked(self, revoked: Collection[TopicPartition]) -> None:
        """Do nothing: what was read was committed."""

    async def on_partitions_assigned(self, assigned: Collection[TopicPartition]) -> None:
        """Begin some records before the committed offset, to remember what they hold."""
        # Fetching would begin meanwhile at the committed offset, before what is to be remembered.
        self._consumer.pause(*assigned)
        try:
            first = await self._consumer.beginning_offsets(list(assigned)) if assigned else {}
            for tp in assigned:
                done = await self._consumer.committed(tp)
                if done is not None:
                    self.done[tp] = done
                    self._consumer.seek(tp, max(first[tp], done - REREAD))
        finally:
            self._consumer.resume(*assigned)


class Ingest:
    """A run that converts the payloads of one topic into events.

    The offset of a payload is committed once Kafka has its events. So nothing is lost, and events
    that are written again after a crash count once. Items that cannot be mapped go to the dead
    letter topic. A payload without any item that can be mapped goes there byte for byte.

    Args:
        scores: names of the scores that become rewards; empty: a payload's only score does.

    Attributes:
        done: the counts so far.
    """

    def __init__(
        self,
        settings: Settings,
        finder: Finder,
        *,
        topic: str,
        group: str,
        scores: Collection[str] = (),
    ) -> None:
        self._settings = settings
        self._finder = finder
        self._scores = scores
        self._remembered = Remembered()
        self._warned = False
        self._topic = topic
        self._group = group
        self.done = Ingested()

    async def run(self, stop: asyncio.Event) -> None:
        """Read until told to stop.

        Raises:
            KafkaError: Kafka did not store some events; the offsets of their payloads are not
                committed.
        """
        auth = self._settings.kafka_auth()
        options = {
            "group_id": self._group,
            "enable_auto_commit": False,
            # A new group begins with what is already there; events that were reported before change
            # nothing.
            "auto_offset_reset": "earliest",
        }
        async with (
            AIOKafkaProducer(
                **auth, acks="all", enable_idempotence=True, max_request_size=2 * LARGEST_BYTES
            ) as producer,
            AIOKafkaConsumer(
                **auth, **options, max_partition_fetch_bytes=LARGEST_BYTES
            ) as consumer,
        ):
            rewinding = Rewinding(consumer)
            consumer.subscribe([self._topic], listener=rewinding)
            while not stop.is_set():
                batches = await consumer.getmany(timeout_ms=200)
                deliveries: list[Awaitable[object]] = []
                ends: dict[TopicPartition, int] = {}
                for tp, records in batches.items():
                    done = rewinding.done.get(tp, 0)
                    for record in records:
                        if record.offset < done:
                            self._look_at(record)
                        else:
                            deliveries += await self._take(record, producer)
                            ends[tp] = record.offset + 1
                if ends:
                    # Each delivery is awaited: `flush` waits as well, but raises nothing for
                    # refused records.
                    await asyncio.gather(*deliveries)
                    await consumer.commit(ends)

    async def _take(self, record: Record, producer: AIOKafkaProducer) -> list[Awaitable[object]]:
        """Send the events of a record; return their deliveries."""
        self.done.records += 1
        try:
            found = self._converted(record)
        except MalformedEvent as error:
            self.done.refused += 1
            self.done.refused_records += 1
            return [await self._keep(record, record.value, error, producer)]
        self._note(record, found)
        deliveries: list[Awaitable[object]] = [
            await producer.send(
                self._settings.topic(one.topic),
                encode(one.event),
                key=one.event.router_id.encode(),
            )
            for one in found.taken
        ]
        if found.refused:
            first = found.refused[0].error
            deliveries.append(await self._keep(record, found.letter, first, producer))
        return deliveries

    def _converted(self, record: Record) -> Converted:
        headers = {
            name.lower(): value.decode(errors="replace")
            for name, value in record.headers
            if value is not None
        }
        return convert(
            record.value,
            self._finder,
            headers=headers,
            remembered=self._remembered,
            scores=self._scores,
        )

    def _look_at(self, record: Record) -> None:
        """Remember the content of a record whose events were sent before."""
        with suppress(MalformedEvent):
            self._converted(record)

    def _note(self, record: Record, found: Converted) -> None:
        self.done.events += len(found.taken)
        self.done.refused += len(found.refused)
        self.done.refused_records += bool(found.refused)
        self.done.passed_over += found.passed_over
        if (
            found.passed_over
            and not self._warned
            and (unmet := self._remembered.unmet(self._scores))
        ):
            self._warned = True
            log.warning("%s:%d:%d: %s", record.topic, record.partition, record.offset, unmet)
        place = record.topic, record.partition, record.offset
        for one in found.refused:
            log.warning("%s:%d:%d, item %d refused: %s", *place, one.index, one.error)
        for warning in found.warnings:
            log.warning("%s:%d:%d, %s", *place, warning)

    async def _keep(
        self, record: Record, value: bytes | None, error: Exception, producer: AIOKafkaProducer
    ) -> Awaitable[object]:
        """Send refused items, or a whole payload, to the dead letter topic."""
        letter: Awaitable[object] = await producer.send(
            self._settings.topic("dlq"), value, key=record.key, headers=_letter(record, error)
        )
        return letter


def _letter(record: Record, error: Exception) -> list[tuple[str, bytes]]:
    letter = DeadLetter.of(
        error, topic=record.topic, partition=record.partition, offset=record.offset, stage=INGEST
    )
    return letter.headers()
