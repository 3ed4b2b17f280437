"""Access the topics that a history is played into, for the player of one router."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterator
from types import TracebackType
from typing import Any, NamedTuple, Self

import orjson
from aiokafka import AIOKafkaProducer, TopicPartition

from ground.messages import Raw
from ground.messages import Record as KafkaRecord
from schemas.dlq import SOURCE_TOPIC, DeadLetter
from schemas.event import MalformedEvent, encode
from schemas.routers import RouterDeclared
from schemas.topic_roles import SOURCES
from streams.partitioner import partition_of
from streams.settings import Settings
from studies.history.kafka_reader import batches, bounds_of, consumer_of
from studies.simulate.player_ledger import Sent

MAX_ANSWERS = 1000
"""Most records of one poll."""


class Answer(NamedTuple):
    """A decision, or with None a refusal."""

    request_id: str
    model: str | None


class DeclarationRefused(Exception):
    """The workers of the target refuse the router."""


class Target:
    """Write a router's events, read its answers from the beginning.

    Args:
        settings: of the workers that decide.

    Attributes:
        config_offset: the last declaration that a worker has put in force since this was opened;
            −1: none yet.
    """

    def __init__(self, settings: Settings, router_id: str) -> None:
        self.settings = settings
        self._router_id = router_id
        self._key = router_id.encode()
        self._number = partition_of(router_id, settings.partitions)
        self._router: Any = None
        self._offset = self._was_in_force = self._declared = -1
        self._sent: list[Awaitable[object]] = []
        self.config_offset = -1

    async def __aenter__(self) -> Self:
        self._producer = AIOKafkaProducer(
            **self.settings.kafka_auth(), acks="all", linger_ms=2, max_request_size=16 * 2**20
        )
        self._answers = consumer_of(self.settings)
        await self._producer.start()
        await self._answers.start()
        # Fetches the topic's metadata, so that the first event is not held up by it.
        await self._producer.partitions_for(self.settings.topic("requests"))
        self._answers.assign([self._place("routes"), self._place("dlq"), self._place("lambda")])
        await self._answers.seek_to_beginning(self._place("routes"), self._place("dlq"))
        # Acknowledgements of earlier declarations say nothing about this player's.
        await self._answers.seek_to_end(self._place("lambda"))
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._answers.stop()
        await self._producer.stop()

    async def read_back(self) -> Sent:
        """Read which events of the router stand in the topics, and its declaration."""
        sent = Sent()
        for topic in SOURCES:
            place = self._place(topic)
            begin, end = (await bounds_of(self._answers, [place]))[place]
            async for batch in batches(self.settings, place, begin, end):
                for record in batch:
                    if record.key != self._key:
                        continue
                    if topic == "routers":
                        self._router = None if record.value is None else orjson.loads(record.value)
                        self._offset = record.offset
                    elif (request_id := _request_id(record)) is not None:
                        sent.add(topic, request_id)
        place = self._place("lambda")
        begin, end = (await bounds_of(self._answers, [place]))[place]
        async for batch in batches(self.settings, place, begin, end):
            for record in batch:
                if record.key == self._key and record.value is not None:
                    self._was_in_force = orjson.loads(record.value)["config_offset"]
        return sent

    def declares(self, router: RouterDeclared) -> bool:
        """Tell whether this is the router's declaration on the topic, and in force: a worker may
        have refused it, or not have read it."""
        taken_up = max(self._was_in_force, self.config_offset) >= self._offset
        return taken_up and bool(orjson.loads(self._value(router)) == self._router)

    async def declare(self, router: RouterDeclared) -> int:
        """Write a declaration; return its offset, which `config_offset` shows once it is in
        force.
        """
        value = self._value(router)
        written = await self._producer.send_and_wait(
            self.settings.topic("routers"), value, key=self._key
        )
        self._router = orjson.loads(value)
        self._offset = self._declared = int(written.offset)
        return self._offset

    async def send(self, topic: str, request_id: str, fields: dict[str, object]) -> None:
        """Write an event."""
        body = orjson.dumps({"router_id": self._router_id, "request_id": request_id, **fields})
        self._sent.append(
            await self._producer.send(self.settings.topic(topic), body, key=self._key)
        )

    async def flush(self) -> None:
        """Wait until Kafka has the written records. Raises KafkaError if it does not get them."""
        # Each by itself: the producer's `flush` raises for none that Kafka refused.
        sent, self._sent = self._sent, []
        await asyncio.gather(*sent)

    async def answers(self, seconds: float) -> list[Answer]:
        """Return the router's next answers; wait for the first one at most this many seconds."""
        found = await self._answers.getmany(timeout_ms=int(seconds * 1000), max_records=MAX_ANSWERS)
        return [
            answer
            for records in found.values()
            for record in records
            for answer in self._answer(record)
        ]

    def _answer(self, record: KafkaRecord) -> Iterator[Answer]:
        if record.key != self._key or record.value is None:
            return
        if record.topic == self.settings.topic("lambda"):
            self.config_offset = max(
                self.config_offset, orjson.loads(record.value)["config_offset"]
            )
        elif record.topic == self.settings.topic("routes"):
            decision = orjson.loads(record.value)
            yield Answer(decision["request_id"], decision["model"])
        # A dead letter of a bill answers no request.
        elif dict(record.headers).get(SOURCE_TOPIC) == self.settings.topic("requests").encode():
            request_id = _request_id(record)
            if request_id is not None:
                yield Answer(request_id, None)
        else:
            self._require_taken_up(record)

    def _require_taken_up(self, record: KafkaRecord) -> None:
        """Raise DeclarationRefused if this is the dead letter of the player's last declaration."""
        try:
            letter = DeadLetter.from_headers(record.headers)
        except MalformedEvent:
            return
        source = self.settings.topic("routers"), self._number, self._declared
        if (letter.topic, letter.partition, letter.offset) == source:
            raise DeclarationRefused(
                f"workers of {self.settings.prefix} refuse router {self._router_id}, "
                f"{letter.reason}: {letter.message}"
            )

    def _value(self, router: RouterDeclared) -> bytes:
        return encode(router.model_copy(update={"router_id": self._router_id}))

    def _place(self, topic: str) -> TopicPartition:
        return TopicPartition(self.settings.topic(topic), self._number)


def _request_id(record: Raw) -> str | None:
    """Return the request_id of an event, None if it can't be read."""
    try:
        request_id = orjson.loads(record.value or b"")["request_id"]
    except (orjson.JSONDecodeError, TypeError, KeyError):
        return None
    return request_id if isinstance(request_id, str) else None
