"""A group of events that are applied together, with their record batch and their answers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from agents.table.parking import Parked
from agents.table.router_records import Decided
from ground.messages import Message, Record
from ground.traces import Headers
from schemas.families import FamilyEstimated
from schemas.kin import KinNoted
from schemas.leases import LeaseNoted

T = TypeVar("T")

Passed = list[tuple[str, int]]
"""A list of the steps passed: (name, nanoseconds since the epoch)."""

Note = tuple[str, LeaseNoted | KinNoted | FamilyEstimated | None]
"""A record between pools or families and their members, or what a family publishes: its key, and
its value; None: the family is gone.
"""


@dataclass(slots=True)
class Answers:
    """The messages of a group, delivered once its changes are durable.

    Attributes:
        routes: (router_id, value, the request's trace) for `pb.routes`.
        strays: (message, router_id): events of other partitions, to be forwarded.
        refused: (message, error): refusals that do not depend on the state, and so will be the same
            whenever the event is read.
        refused_later: (parked event, error): refusals that are kept until they are delivered.
        answered_later: parked requests that are decided, kept until their decision is delivered.
        repeated: (router_id, document, headers): declarations in force, to be written again.
        notes: records for `pb.leases`, `pb.kin` and `pb.families`; lost ones are sent again.
        at: the event that is being applied, to which an error is attributed.
    """

    routes: list[tuple[str, bytes, Headers]] = field(default_factory=list)
    strays: list[tuple[Message, str]] = field(default_factory=list)
    refused: list[tuple[Message, Exception]] = field(default_factory=list)
    refused_later: list[tuple[Parked, Exception]] = field(default_factory=list)
    answered_later: list[Parked] = field(default_factory=list)
    repeated: list[tuple[str, bytes, Headers]] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    at: Message | None = None

    def __bool__(self) -> bool:
        """Tell whether there is anything to deliver."""
        return bool(
            self.routes
            or self.strays
            or self.refused
            or self.refused_later
            or self.repeated
            or self.notes
        )

    @property
    def delivered(self) -> list[Parked]:
        """Return the parked events whose answers are delivered, to be forgotten with the next
        group."""
        return [parked for parked, _ in self.refused_later] + self.answered_later


class Batch:
    """A batch of events of one source topic; its agent's subclass applies them.

    Attributes:
        name: name of the topic, without the prefix.
        messages: the events as they were fetched.
        passed: times of the batch's steps before it joined a group.
    """

    __slots__ = ("messages", "passed")
    name: str

    def __init__(self, messages: list[Record]) -> None:
        self.messages = messages
        self.passed: Passed = [("decode", time.time_ns())]

    def preparation(self) -> Coroutine[object, object, None] | None:
        """Return the work that must be awaited before the batch can be applied; None: none."""
        return None

    def apply(self, answers: Answers) -> None:
        """Apply the events in order. An exception is attributed to the event at `answers.at`."""

    def step(self, name: str) -> None:
        """Note the time at which the batch begins a step."""
        self.passed.append((name, time.time_ns()))


@dataclass(slots=True, eq=False)
class Group:
    """Events that are applied together. A group becomes durable as one record batch; then its
    answers are sent.

    Attributes:
        batches: the group's source events, one batch per topic.
        changes: the group's record batch, by key.
        contexts: contexts for the external store.
        passed: times of the group's steps, of which the first is `decide`.
        durable: resolves to true once the record batch is at its place on the log, to false if it
            never will be.
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
        """Note the time at which the group begins a step."""
        self.passed.append((name, time.time_ns()))


def chunks(items: Iterable[T], weight: Callable[[T], int], *, limit: int) -> Iterator[list[T]]:
    """Yield the items in order, in lists of total weight at most `limit`; an item that weighs more
    stands alone. The changes of one group must fit into one record batch of the changelog.

    Example:
        >>> list(chunks([3, 3, 3, 9, 1], int, limit=6))
        [[3, 3], [3], [9], [1]]
    """
    chunk: list[T] = []
    left = limit
    for item in items:
        size = weight(item)
        if chunk and size > left:
            yield chunk
            chunk, left = [], limit
        chunk.append(item)
        left -= size
    if chunk:
        yield chunk
