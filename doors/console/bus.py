"""Connect a command to Kafka: send an event, follow a router's records, search its topics
backwards.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, TypeVar

from doors.console.failures import NoAnswer, NoBroker, NotAllowed, NoTopics
from ground.messages import Placed, Record
from schemas import Event, encode

if TYPE_CHECKING:  # imported where they are used: the help of a command needs no Kafka
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

    from streams.settings import Settings

T = TypeVar("T")
FIRST_WINDOW = 256
"""Records read by the first step backwards; each further step reads four times as many."""


class Bus:
    """A connection to Kafka for commands: topics by their short names, records of one router.

    Example:
        async with open_bus(settings, "requests", "routes") as bus:
            placed = await bus.send("requests", event)
    """

    def __init__(
        self, settings: Settings, producer: AIOKafkaProducer, partitions: dict[str, int]
    ) -> None:
        self.settings = settings
        self._producer = producer
        self._partitions = partitions

    async def send(
        self, name: str, event: Event, *, headers: Iterable[tuple[str, bytes]] = ()
    ) -> Placed:
        """Write one event with its router's key and return its place (`partition`, `offset`)."""
        return await self.send_bytes(name, event.router_id, encode(event), headers=headers)

    async def send_bytes(
        self,
        name: str,
        router_id: str,
        value: bytes | None,
        *,
        headers: Iterable[tuple[str, bytes]] = (),
    ) -> Placed:
        """Write one record with a router's key and return its place."""
        topic = self.settings.topic(name)
        placed: Placed = await self._producer.send_and_wait(
            topic, value, key=router_id.encode(), headers=list(headers)
        )
        return placed

    async def send_again(
        self,
        name: str,
        key: bytes | None,
        value: bytes | None,
        *,
        headers: Iterable[tuple[str, bytes]],
    ) -> Placed:
        """Write a record unchanged and return its place."""
        placed: Placed = await self._producer.send_and_wait(
            self.settings.topic(name), value, key=key, headers=list(headers)
        )
        return placed

    async def send_all(self, events: Iterable[tuple[str, Event]]) -> None:
        """Write events with their topics' short names, in order, and wait until all are stored."""
        stored = []
        for name, event in events:
            topic = self.settings.topic(name)
            stored.append(
                await self._producer.send(topic, encode(event), key=event.router_id.encode())
            )
        await asyncio.gather(*stored)

    def places(self, name: str, router_id: str | None) -> list[TopicPartition]:
        """Return the router's partition, or all partitions without a router. Dead letters also need
        all: their key is that of their source.
        """
        from aiokafka import TopicPartition

        topic = self.settings.topic(name)
        # A dead letter keeps the key of its source, which need not be the id of a router.
        if router_id is None or name == "dlq":
            return [TopicPartition(topic, number) for number in range(self._partitions[name])]
        return [TopicPartition(topic, self.home(name, router_id))]

    def home(self, name: str, router_id: str) -> int:
        """Return the number of a router's partition."""
        from streams.partitioner import partition_of

        return partition_of(router_id, self._partitions[name])

    def name_of(self, topic: str) -> str:
        """Return a topic's short name; a topic of others keeps its full name."""
        return topic.removeprefix(self.settings.prefix)

    @asynccontextmanager
    async def follow(self, *names: str, router_id: str | None) -> AsyncIterator[Follower]:
        """Follow topics from now on; every record sent inside the block is seen."""
        async with _consumer(self.settings) as consumer:
            places = [tp for name in names for tp in self.places(name, router_id)]
            consumer.assign(places)
            # The ends are fixed before the caller sends anything, so that even an answer before the
            # first poll is seen.
            for tp, end in (await consumer.end_offsets(places)).items():
                consumer.seek(tp, end)
            yield Follower(self, consumer)

    async def backwards(
        self, name: str, router_id: str | None, *, limit: int | None = None, only: int | None = None
    ) -> AsyncIterator[Record]:
        """Yield a topic's records, or those of one partition, the newest first within each. At most
        `limit` records of a partition are read.
        """
        from streams.log.stretch import bounds

        async with _consumer(self.settings) as consumer:
            for tp in self.places(name, router_id):
                if only is not None and tp.partition != only:
                    continue
                consumer.assign([tp])
                (begin, end), window = await bounds(consumer, tp), FIRST_WINDOW
                if limit is not None:
                    begin = max(begin, end - limit)
                while end > begin:
                    start = max(begin, end - window)
                    for record in reversed(await _between(consumer, tp, start, end)):
                        yield record
                    # Most searches are for recent records; the growing windows reach old ones in a
                    # few steps.
                    end, window = start, window * 4

    async def since(
        self, name: str, partition: int, time_ms: int, *, limit: int
    ) -> AsyncIterator[Record]:
        """Yield a partition's records from a time on, in milliseconds since the epoch: the oldest
        first, at most about `limit`.
        """
        from aiokafka import TopicPartition

        from streams.log.stretch import bounds, read_stretch

        tp = TopicPartition(self.settings.topic(name), partition)
        async with _consumer(self.settings) as consumer:
            consumer.assign([tp])
            first = (await consumer.offsets_for_times({tp: max(time_ms, 0)}))[tp]
            if first is None:  # nothing is as new
                return
            _, end = await bounds(consumer, tp)
            stop = min(end, first.offset + limit)
            async for records in read_stretch(consumer, tp, first.offset, stop):
                for record in records:
                    yield record

    async def at(self, name: str, partition: int, offset: int) -> Record | None:
        """Return the record at a place, or None."""
        from aiokafka import TopicPartition

        from streams.log.stretch import bounds

        place = TopicPartition(self.settings.topic(name), partition)
        async with _consumer(self.settings) as consumer:
            consumer.assign([place])
            begin, end = await bounds(consumer, place)
            found = (
                await _between(consumer, place, offset, offset + 1) if begin <= offset < end else []
            )
        # Where compaction has removed the record, Kafka returns the next one instead.
        return found[0] if found and found[0].offset == offset else None

    async def newest(self, name: str) -> dict[bytes | None, bytes | None]:
        """Return the newest value of every key of a topic; None marks a deleted key."""
        found: dict[bytes | None, bytes | None] = {}
        async for record in self.backwards(name, None):
            found.setdefault(record.key, record.value)
        return found

    async def latest(self, name: str, router_id: str) -> Record | None:
        """Return the newest record with the router's key, or None."""
        async for record in self.backwards(name, router_id):
            if record.key == router_id.encode():
                return record
        return None


class Follower:
    """A consumer that hands out records as they arrive."""

    def __init__(self, bus: Bus, consumer: AIOKafkaConsumer) -> None:
        self._bus = bus
        self._consumer = consumer

    async def arrivals(self, *, within: float = 0.2) -> list[tuple[str, Record]]:
        """Return what arrived, with the topics' short names; empty after `within` seconds without
        any.
        """
        batches = await self._consumer.getmany(timeout_ms=int(within * 1000))
        return [
            (self._bus.name_of(tp.topic), record)
            for tp, records in batches.items()
            for record in records
        ]

    async def until(
        self,
        found: Callable[[str, Record], T | None],
        *,
        seconds: float,
        waited_for: str = "answered",
    ) -> T:
        """Wait for the first record for which `found` returns a value, and return that value.

        Raises:
            NoAnswer: `seconds` have passed.
        """
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            for name, record in await self.arrivals(within=min(left, 0.2)):
                result = found(name, record)
                if result is not None:
                    return result
        raise NoAnswer(seconds, web_port=self._bus.settings.web_port, waited_for=waited_for)


@asynccontextmanager
async def open_bus(settings: Settings, *names: str) -> AsyncIterator[Bus]:
    """Connect to Kafka and check that the topics exist.

    Raises:
        NoBroker: nothing answers at the address.
        NoTopics: a topic does not exist.
        MissingRights, NotAllowed: the user may not do this.
    """
    from aiokafka import AIOKafkaProducer
    from aiokafka.errors import KafkaConnectionError, TopicAuthorizationFailedError

    from streams.log.login_refusal import refusal
    from streams.log.rights_check import require_rights

    try:
        partitions = await partitions_of_topics(settings, names)
    except KafkaConnectionError as error:
        raise NoBroker(settings.bootstrap, await refusal(settings)) from error
    # Room for a declaration that carries the snapshot of another router.
    producer = AIOKafkaProducer(**settings.kafka_auth(), acks="all", max_request_size=16 * 2**20)
    try:
        async with producer:
            yield Bus(settings, producer, partitions)
    # Kafka names only the topic, so each right is asked for to find the missing one.
    except TopicAuthorizationFailedError as error:
        await require_rights(settings, "operator", names=[settings.topic(name) for name in names])
        raise NotAllowed(str(error)) from error


async def partitions_of_topics(settings: Settings, names: Iterable[str]) -> dict[str, int]:
    """Return the topics' partition counts.

    Raises:
        NoTopics: a topic does not exist.
        MissingRights: the user may not see it.
    """
    from streams.log.rights_check import require_rights

    topics = {settings.topic(name): name for name in names}
    present = await topics_seen(settings)
    if missing := [topic for topic in topics if topic not in present]:
        # Kafka lists no topic that the user may not see: a missing right looks like a missing
        # topic.
        await require_rights(settings, "operator", names=missing)
        raise NoTopics(missing, settings.bootstrap)
    return {name: present[topic] for topic, name in topics.items()}


async def topics_seen(settings: Settings) -> dict[str, int]:
    """Return the partition counts of the topics that the user may see."""
    from aiokafka.admin import AIOKafkaAdminClient

    from streams.log.service_topics import counts_of

    admin = AIOKafkaAdminClient(**settings.kafka_auth(), client_id="pbstream")
    try:
        await admin.start()
        return await counts_of(admin)
    finally:
        await admin.close()


@asynccontextmanager
async def _consumer(settings: Settings) -> AsyncIterator[AIOKafkaConsumer]:
    from streams.log.consumer import log_consumer

    async with log_consumer(
        settings, fetch_max_wait_ms=100, max_partition_fetch_bytes=8 * 2**20
    ) as consumer:
        yield consumer


async def _between(
    consumer: AIOKafkaConsumer, tp: TopicPartition, start: int, end: int
) -> list[Record]:
    """Read a partition's records from `start` up to, not including, `end`; compaction may have left
    fewer.
    """
    from streams.log.stretch import read_stretch

    return [
        record async for records in read_stretch(consumer, tp, start, end) for record in records
    ]
