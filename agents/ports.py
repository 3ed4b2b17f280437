"""The connections of a worker's agents to the outside, all made before they start: the durable
table, the source topics, the encoder, the store of contexts, the files that declarations name.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from agents.group import Group
from agents.outbox import Outbox
from agents.refusal_kinds import EncoderUnavailable
from agents.table import Table
from agents.table.router_records import Decided, Ref
from ground.messages import Record
from router_state.config import Prior, ProjectionRef, Vector
from schemas.priors import ReferencedPrior

DecidedAt = Callable[[Ref], float | None]
"""Time at which a request was decided, seconds since the epoch; None if it is forgotten.
"""


Prompt = tuple[str, ProjectionRef | int]
"""A text, and its router's projection, or the router's dimensions if it declares none."""


Encode = Callable[[list[Prompt]], Awaitable[Sequence[Vector | EncoderUnavailable]]]
"""Function that returns for each prompt its context, shape (d,), or the reason why there is
none.
"""


class States(Protocol):
    """The durable table of this worker, see `streams.state.tables.States`."""

    def partition(self, number: int) -> Table: ...

    @property
    def size(self) -> int: ...


class Inbox(Protocol):
    """Records that were fetched of one partition, see `streams.faust.sources.Inbox`. Topics are
    named without the prefix.

    Attributes:
        queues: waiting records of each topic, in order.
        arrived: event that is set when records other than declarations have come.
        declared: event that is set when declarations have come.
    """

    queues: dict[str, deque[Record]]
    arrived: asyncio.Event
    declared: asyncio.Event

    def took(self, name: str, records: Sequence[Record]) -> None:
        """Note that these records were taken from the queue."""
        ...

    def finish(self, name: str, offset: int) -> None:
        """Note that all events before an offset are done."""
        ...


class SourceLog(Protocol):
    """The source topics."""

    def inbox(self, number: int) -> Inbox:
        """Return the records that were fetched of a partition."""
        ...

    def partition_of(self, router_id: str) -> int:
        """Return the partition of a router."""
        ...

    async def read_again(
        self, partition: int, offsets: Iterable[int]
    ) -> Mapping[int, bytes | None]:
        """Return the values of requests by offset; requests that are gone from the log are left
        out.
        """
        ...

    def end_of(self, name: str, partition: int) -> int | None:
        """Return the offset after the last event of a topic, named without the prefix; None while
        that is not known.
        """
        ...

    def hold(self, partitions: frozenset[int]) -> None:
        """Stop fetching bills and rewards of these partitions, and fetch those of all others."""
        ...


class Contexts(Protocol):
    """A store of contexts for a limited time. The changelog holds the contexts that the store
    refused or lost.
    """

    async def put(self, contexts: Sequence[Decided]) -> None:
        """Keep contexts of decisions."""

    async def get(self, refs: Sequence[Ref], decided_at: DecidedAt) -> list[Vector | None]:
        """Return the contexts of decided requests in the order of `refs`; None for a context that
        is gone.
        """


@dataclass(frozen=True, slots=True)
class Encoder:
    """Turn prompts into contexts.

    Attributes:
        encode: function that returns for each prompt a context, shape (d,), or the reason why there
            is none; it works off the event loop.
        projections: checksums of the projections for routers without one of their own, by number of
            dimensions.
    """

    encode: Encode
    projections: Mapping[int, str]


@dataclass(frozen=True, slots=True)
class References:
    """Read the files that declarations name.

    Attributes:
        read_prior: function that reads a prior. Raises WrongPrior.
        check_projection: function that raises WrongProjection if a projection of this name,
            checksum and number of dimensions is not at hand.
    """

    read_prior: Callable[[ReferencedPrior], Awaitable[Prior]]
    check_projection: Callable[[ProjectionRef, int], Awaitable[None]]


class Count(Protocol):
    """Count an outcome for the metrics."""

    def __call__(self, what: str, amount: int = 1) -> None: ...


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one worker, and whether it checks states; see the settings of the same names."""

    batch_size: int = 512
    prompt_bytes: int = 2**20
    models_per_router: int = 64
    routers_per_worker: int = 10_000
    in_flight_per_router: int = 100_000
    requests_per_router: int | None = None
    memory_bytes: int | None = None
    parked_events: int = 10_000
    orphan_wait: float = 60.0
    unknown_router_wait: float = 2.0
    context_ttl: float = 7 * 86_400.0
    changelog_batch_bytes: int = 16 * 2**20
    validate_state: bool = False


@dataclass(frozen=True, slots=True)
class Ports:
    """The connections of a worker's agents to the outside.

    Attributes:
        log: the source topics.
        outbox: the sender of messages, which knows the topics' full names.
        encoder: encoder of prompts; None for a worker without one.
        contexts: external store in which contexts wait for their rewards, or None.
        count: function that counts an outcome.
        finished: function that is called with every finished group of source events.
        rank_of: function that returns the rank of a reward's source.
        clock: function that returns seconds since the epoch.
        leave: function that ends the process, for an error after which nothing may go on.
    """

    states: States
    log: SourceLog
    outbox: Outbox
    encoder: Encoder | None
    references: References
    contexts: Contexts | None
    count: Count
    finished: Callable[[Group], None]
    rank_of: Callable[[str], int]
    clock: Callable[[], float]
    leave: Callable[[BaseException], object]
    limits: Limits = field(default_factory=Limits)
