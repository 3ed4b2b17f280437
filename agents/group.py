"""A group of events that are applied together, with their record batch and their answers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, field

from agents.context_store import Decided
from agents.parked import Parked
from agents.ports import Ports
from agents.table.pool_notes import Note
from agents.taking.intake import forwarded
from ground.messages import Message, Record
from ground.traces import Headers
from schemas.event import encode
from schemas.headers import EPOCH

Passed = list[tuple[str, int]]
"""A list of the steps passed: (name, nanoseconds since the epoch)."""


@dataclass(slots=True)
class Answers:
    """The messages of a group, delivered once its changes are durable.

    Attributes:
        routes: (router_id, value, the request's trace) for `pb.routes`.
        strays: (message, router_id): events of other partitions, to be forwarded.
        refused: (message, error): refusals that will be the same whenever the event is read.
        refused_later: (parked event, error): refusals that are kept until they are delivered.
        answered_later: parked requests that have their decision, kept until it is delivered.
        repeated: (router_id, document, headers): declarations in force, to be written again.
        leases: (key, value) for `pb.leases`; lost ones are repeated by the clock.
        at: the event that is being applied; it is to blame for what goes wrong.
    """

    routes: list[tuple[str, bytes, Headers]] = field(default_factory=list)
    strays: list[tuple[Message, str]] = field(default_factory=list)
    refused: list[tuple[Message, Exception]] = field(default_factory=list)
    refused_later: list[tuple[Parked, Exception]] = field(default_factory=list)
    answered_later: list[Parked] = field(default_factory=list)
    repeated: list[tuple[str, bytes, Headers]] = field(default_factory=list)
    leases: list[Note] = field(default_factory=list)
    at: Message | None = None

    def __bool__(self) -> bool:
        """Tell whether there is anything to deliver."""
        return bool(
            self.routes
            or self.strays
            or self.refused
            or self.refused_later
            or self.repeated
            or self.leases
        )

    @property
    def delivered(self) -> list[Parked]:
        """Return the parked events whose answers are delivered, to be forgotten with the next
        group."""
        return [parked for parked, _ in self.refused_later] + self.answered_later

    async def deliver(self, ports: Ports, *, epoch: int = -1) -> None:
        """Send all messages, and return when Kafka has them; `epoch` is the partition's owner."""
        produce, topic = ports.produce, ports.topic
        # All are handed over, then awaited together: one round trip a group.
        deliveries = [
            await produce(topic["routes"], value, router_id.encode(), headers=trace)
            for router_id, value, trace in self.routes
        ]
        for message, router_id in self.strays:
            again = forwarded(message)
            deliveries.append(
                await produce(message.topic, message.value, router_id.encode(), headers=again)
            )
        for router_id, document, headers in self.repeated:
            deliveries.append(
                await produce(topic["routers"], document, router_id.encode(), headers=headers)
            )
        for recipient, note in self.leases:
            deliveries.append(
                await produce(
                    topic["leases"],
                    encode(note),
                    recipient.encode(),
                    headers=((EPOCH, b"%d" % epoch),),
                )
            )
        if self.refused or self.refused_later:
            writer = {topic[name]: letters for name, letters in ports.dead_letters.items()}
            for message, error in self.refused:
                deliveries += await writer[message.topic].send(produce, message, error)
            for parked, error in self.refused_later:
                deliveries += await writer[parked.topic].send(produce, parked, error)
        await asyncio.gather(*deliveries)


class Batch:
    """A batch of events of one source topic; its agent's subclass applies them.

    Attributes:
        name: the topic's, without the prefix.
        messages: the events as they were fetched.
        passed: times of its steps before it was in a group.
    """

    __slots__ = ("messages", "passed")
    name: str

    def __init__(self, messages: list[Record]) -> None:
        self.messages = messages
        self.passed: Passed = [("decode", time.time_ns())]

    def preparation(self) -> Coroutine[object, object, None] | None:
        """Return the work to be awaited before the batch can be applied; None for none."""
        return None

    def apply(self, answers: Answers) -> None:
        """Apply the events, in order; what escapes is the fault of the one at `answers.at`."""

    def step(self, name: str) -> None:
        """Note that it goes on to a step."""
        self.passed.append((name, time.time_ns()))


Agents = Mapping[str, Callable[[list[Record]], Batch]]
"""Decoder of each source topic's events, in the order in which they are applied."""


Declare = Callable[[list[Record]], Awaitable[None]]
"""Puts declarations of one partition in force. Raises InternalError."""


@dataclass(slots=True, eq=False)
class Group:
    """Events that are applied together; the group becomes durable as one record batch, and is
    answered then.

    Attributes:
        batches: its source events, a batch a topic.
        changes: its record batch, by key.
        contexts: contexts for the external store.
        passed: times of its steps, of which to decide is the first.
        durable: resolves to true once the record batch is in its place, to false if it never will
            be.
        finished: whether all answers are delivered.
    """

    batches: list[Batch] = field(default_factory=list)
    answers: Answers = field(default_factory=Answers)
    changes: Mapping[bytes, bytes | None] = field(default_factory=dict)
    contexts: list[Decided] = field(default_factory=list)
    passed: Passed = field(default_factory=lambda: [("decide", time.time_ns())])
    durable: asyncio.Future[bool] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )
    finished: bool = False

    def step(self, name: str) -> None:
        """Note that it goes on to a step."""
        self.passed.append((name, time.time_ns()))
