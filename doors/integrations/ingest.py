"""Read other systems' payloads from a Kafka topic, and write their costs and rewards as events."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable
from dataclasses import dataclass

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

from doors.integrations.convert import Finder, convert
from doors.integrations.found import Unconvertible
from ground.messages import Record
from schemas import MalformedEvent, encode
from schemas.dlq import INGEST, DeadLetter
from streams.settings import Settings

log = logging.getLogger(__name__)
LARGEST_BYTES = 16 * 2**20
"""Largest payload, in bytes; its dead letter may be twice that."""


@dataclass(slots=True)
class Ingested:
    """Counts of a run: records read, events written, records refused."""

    records: int = 0
    events: int = 0
    refused: int = 0


class Ingest:
    """A run that converts the payloads of one topic. Offsets are committed once Kafka has the
    events of their payloads: nothing is lost, and events written again after a crash count once. A
    payload that cannot be mapped goes to the dead letter topic, byte for byte.

    Attributes:
        done: the counts so far.
    """

    def __init__(self, settings: Settings, finder: Finder, *, topic: str, group: str) -> None:
        self._settings = settings
        self._finder = finder
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
                self._topic, **auth, **options, max_partition_fetch_bytes=LARGEST_BYTES
            ) as consumer,
        ):
            while not stop.is_set():
                batches = await consumer.getmany(timeout_ms=200)
                deliveries = [
                    delivery
                    for records in batches.values()
                    for record in records
                    for delivery in await self._take(record, producer)
                ]
                if batches:
                    # Each delivery is awaited: `flush` waits as well, but raises nothing for
                    # refused records.
                    await asyncio.gather(*deliveries)
                    await consumer.commit()

    async def _take(self, record: Record, producer: AIOKafkaProducer) -> list[Awaitable[object]]:
        """Send the events of a record; return their deliveries."""
        self.done.records += 1
        headers = {
            name: value.decode(errors="replace")
            for name, value in record.headers
            if value is not None
        }
        try:
            events = convert(record.value, self._finder, headers=headers)
        except (Unconvertible, MalformedEvent) as error:
            self.done.refused += 1
            letter = await producer.send(
                self._settings.topic("dlq"),
                record.value,
                key=record.key,
                headers=_letter(record, error),
            )
            return [letter]
        self.done.events += len(events)
        return [
            await producer.send(
                self._settings.topic(name), encode(event), key=event.router_id.encode()
            )
            for name, event in events
        ]


def _letter(record: Record, error: Exception) -> list[tuple[str, bytes]]:
    letter = DeadLetter.of(
        error, topic=record.topic, partition=record.partition, offset=record.offset, stage=INGEST
    )
    return letter.headers()
