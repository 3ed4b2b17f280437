"""Define what agents need of the outside: the durable table, the source topics, the encoder, the
store of contexts, and the files that declarations name.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from agents.refusal_kinds import EncoderUnavailable
from ground.messages import Record
from router_state.config import Prior, ProjectionRef, Vector
from schemas.priors import ReferencedPrior

Ref = tuple[str, str]
"""router_id and request_id."""

DecidedAt = Callable[[Ref], float | None]
"""Time at which a request was decided, seconds since the epoch; None if it is forgotten.
"""

Decided = tuple[Ref, float, Vector]
"""A request, the time of its decision, and its context, shape (d,)."""

Prompt = tuple[str, ProjectionRef | int]
"""A text, and its router's projection, or the router's dimensions if it declares none."""

Encode = Callable[[list[Prompt]], Awaitable[Sequence[Vector | EncoderUnavailable]]]
"""Function that returns for each prompt its context, shape (d,), or the reason why there is
none.
"""


class Table(Protocol):
    """The records of one partition, see `streams.state.table_partition.Partition`."""

    number: int
    owned: bool
    open: bool
    epoch: int
    records: dict[bytes, bytes]

    def writing(self) -> AbstractContextManager[None]: ...

    def take(self) -> Mapping[bytes, bytes | None]: ...

    def roll_back(self) -> None: ...

    async def write(self, changes: Mapping[bytes, bytes | None]) -> None: ...

    def get(self, key: bytes) -> bytes | None: ...

    def put(self, key: bytes, value: bytes) -> None: ...

    def delete(self, key: bytes) -> None: ...

    def set_all(self, values: Mapping[bytes, bytes | None]) -> None: ...


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
