"""Fetch sessions against a real broker: every record once and in order, whatever happens to the
session.
"""

from __future__ import annotations

import asyncio
import random
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from io import BytesIO
from typing import Any
from uuid import uuid4

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic
from aiokafka.consumer import consumer as client

from commands.broker.choose import LocalKafka
from streams.faust.fetch_session import (
    LAST_EPOCH,
    NO_SESSION,
    Session,
    SessionFetcher,
    SessionRequest,
)
from streams.faust.positions import silence

PARTITIONS = 6


@asynccontextmanager
async def administering(bootstrap: str) -> AsyncIterator[AIOKafkaAdminClient]:
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    try:
        yield admin
    finally:
        await admin.close()


class Reader:
    """A consumer in sessions, what it has read, and what was written."""

    def __init__(self, consumer: AIOKafkaConsumer, producer: AIOKafkaProducer, topic: str) -> None:
        self.consumer, self._producer, self._topic = consumer, producer, topic
        self.read = defaultdict[int, list[int]](list)
        self.written = defaultdict[int, int](int)

    @property
    def session(self) -> Session:
        (found,) = self.consumer._fetcher._sessions.values()
        assert isinstance(found, Session)
        return found

    def tp(self, number: int) -> TopicPartition:
        return TopicPartition(self._topic, number)

    async def write(self, number: int, count: int = 1) -> None:
        for _ in range(count):
            value = b"%d" % self.written[number]
            await self._producer.send_and_wait(self._topic, value, partition=number)
            self.written[number] += 1

    async def take(self) -> None:
        for tp, records in (await self.consumer.getmany(timeout_ms=20)).items():
            assert [int(record.value) for record in records] == [r.offset for r in records]
            self.read[tp.partition] += [record.offset for record in records]

    async def take_all(self) -> None:
        """Read until everything that was written has come, each once and in order."""
        async with asyncio.timeout(60):
            while any(len(self.read[n]) < count for n, count in self.written.items()):
                await self.take()
        assert dict(self.read) == {n: list(range(count)) for n, count in self.written.items()}


@asynccontextmanager
async def reading(
    bootstrap: str, monkeypatch: pytest.MonkeyPatch, *, name: str | None = None
) -> AsyncIterator[Reader]:
    topic = name or f"sessions-{uuid4().hex}"
    if name is None:
        async with administering(bootstrap) as admin:
            await admin.create_topics([NewTopic(topic, PARTITIONS, 1)])
    monkeypatch.setattr(client, "Fetcher", SessionFetcher)
    options = {"auto_offset_reset": "earliest", "fetch_max_wait_ms": 50, "metadata_max_age_ms": 500}
    async with (
        AIOKafkaConsumer(bootstrap_servers=bootstrap, **options) as consumer,
        AIOKafkaProducer(bootstrap_servers=bootstrap, metadata_max_age_ms=500) as producer,
    ):
        assert isinstance(consumer._fetcher, SessionFetcher)
        consumer.assign([TopicPartition(topic, n) for n in range(PARTITIONS)])
        yield Reader(consumer, producer, topic)


def lose_its_number(session: Session) -> None:
    session.number += 1


def lose_its_epoch(session: Session) -> None:
    session.epoch = session.epoch % LAST_EPOCH + 5


@pytest.mark.parametrize("lose", [lose_its_number, lose_its_epoch])
async def test_a_session_that_is_lost_is_begun_again(
    kafka: str, monkeypatch: pytest.MonkeyPatch, lose: Callable[[Session], None]
) -> None:
    async with reading(kafka, monkeypatch) as reader:
        await reader.write(0)
        await reader.take_all()
        first = reader.session.number
        assert first != NO_SESSION
        async with asyncio.timeout(60):
            while reader.session.number in (first, first + 1):
                lose(reader.session)
                await reader.write(0)
                await reader.take_all()
        assert reader.session.number != NO_SESSION


@pytest.mark.parametrize("seed", range(3))
async def test_every_record_comes_once_and_in_order(
    kafka: str, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    chance = random.Random(seed)
    async with reading(kafka, monkeypatch) as reader:
        paused = set[TopicPartition]()

        def pause(number: int) -> None:
            tp = reader.tp(number)
            (paused.discard if tp in paused else paused.add)(tp)
            (reader.consumer.resume if tp not in paused else reader.consumer.pause)(tp)

        def seek(number: int) -> None:
            begin = chance.randint(0, len(reader.read[number]))
            reader.consumer.seek(reader.tp(number), begin)
            del reader.read[number][begin:]

        def narrow(_: int) -> None:
            reader.consumer._fetcher._max_partition_fetch_bytes = chance.choice([200, 5000, 10**6])

        def lose(_: int) -> None:
            chance.choice([lose_its_number, lose_its_epoch])(reader.session)

        await reader.write(0)
        await reader.take_all()
        for _ in range(120):
            await reader.write(chance.randrange(PARTITIONS), chance.randint(1, 5))
            chance.choice([pause, seek, narrow, lose, *[lambda _: None] * 4])(
                chance.randrange(PARTITIONS)
            )
            await reader.take()
        reader.consumer.resume(*paused)
        await reader.take_all()


async def test_an_answer_names_only_what_is_new(
    kafka: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    named: list[set[int]] = []
    decode = SessionRequest.decode

    def noted(self: SessionRequest, data: BytesIO) -> Any:
        answer = decode(self, data)
        named.append({one[0] for _, found in answer.topics for one in found})
        return answer

    monkeypatch.setattr(SessionRequest, "decode", noted)
    async with reading(kafka, monkeypatch) as reader:
        await reader.write(3)
        await reader.take_all()
        assert named[0] == set(range(PARTITIONS))
        named.clear()
        await reader.write(5)
        await reader.take_all()
    assert [one for one in named if one] == [{5}]


async def test_a_leader_that_has_nothing_to_say_is_not_silent(
    kafka: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with reading(kafka, monkeypatch) as reader:
        await reader.write(0)
        await reader.take_all()
        states = reader.consumer._subscription.subscription.assignment
        states.state_value(reader.tp(1)).timestamp = 1
        assert silence(reader.consumer) > 1e6
        async with asyncio.timeout(60):
            while silence(reader.consumer) > 1e6:
                await reader.take()


async def test_partitions_come_and_go(kafka: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with reading(kafka, monkeypatch) as reader:
        for number in range(PARTITIONS):
            await reader.write(number)
        await reader.take_all()
        topic, _ = reader.tp(0)
        async with administering(kafka) as admin:
            await admin.create_partitions({topic: NewPartitions(PARTITIONS + 2)})
        kept = {reader.tp(n): len(reader.read[n]) for n in (1, 2)}
        await reader.consumer._client.force_metadata_update()
        reader.consumer.assign([*kept, reader.tp(PARTITIONS), reader.tp(PARTITIONS + 1)])
        for tp, offset in kept.items():
            reader.consumer.seek(tp, offset)
        await reader._producer.client.force_metadata_update()
        for number in (1, PARTITIONS, PARTITIONS + 1):
            await reader.write(number, 2)
        await reader.take_all()


async def test_an_offset_that_is_gone_is_looked_up_again(
    kafka: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with reading(kafka, monkeypatch) as reader:
        await reader.write(0, 3)
        await reader.write(1, 3)
        await reader.take_all()
        reader.consumer.seek(reader.tp(0), 1_000)
        reader.read[0].clear()  # it is read from the start again
        await reader.write(1)
        await reader.take_all()


async def test_a_broker_that_restarts_or_has_no_room_for_sessions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with LocalKafka() as broker:
        node = broker.nodes[1]
        async with reading(broker.bootstrap, monkeypatch) as reader:
            await reader.write(0)
            await reader.take_all()
            assert reader.session.number != NO_SESSION
            await asyncio.to_thread(broker.stop_node, 1)
            without = "\nmax.incremental.fetch.session.cache.slots=0\n"
            node.config.write_text(node.config.read_text() + without)
            await asyncio.to_thread(broker.start_node, 1)
            for number in range(PARTITIONS):
                await reader.write(number, 2)
            await reader.take_all()
            assert reader.session.number == NO_SESSION
