"""Define the interfaces of agents to the outside, all made before they start."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from agents.context_store import Contexts, Encode
from agents.dead_letters import DeadLetters
from agents.table.request_records import Table
from ground.boundary import Produce
from ground.messages import Record
from router_state.config import Prior, ProjectionRef
from schemas.priors import ReferencedPrior

if TYPE_CHECKING:
    from agents.group import Group


class States(Protocol):
    """The durable table of this worker, see `streams.state.tables.States`."""

    def partition(self, number: int) -> Table: ...

    @property
    def size(self) -> int: ...


class Inbox(Protocol):
    """Records that were fetched of one partition, see `streams.faust.sources.Inbox`; topics go by
    their names without the prefix.

    Attributes:
        queues: what waits of each topic, in order.
        arrived: set when something has come, declarations apart.
        declared: set when declarations have come.
    """

    queues: dict[str, deque[Record]]
    arrived: asyncio.Event
    declared: asyncio.Event

    def took(self, name: str, records: Sequence[Record]) -> None:
        """Note that these were taken from the queue."""
        ...

    def finish(self, name: str, offset: int) -> None:
        """Note that everything before an offset is done."""
        ...


class SourceLog(Protocol):
    """The source topics, beyond the events that were handed to the agents."""

    async def read_again(
        self, partition: int, offsets: Iterable[int]
    ) -> Mapping[int, bytes | None]:
        """Return the values of requests by offset; those that are gone from the log are left
        out."""
        ...

    def end_of(self, name: str, partition: int) -> int | None:
        """Return the offset after the last event of a topic (its name without the prefix), None
        while it is not known."""
        ...

    def hold(self, partitions: frozenset[int]) -> None:
        """Stop the bills and rewards of these partitions, and let those of all others come."""
        ...


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
        topic: full topic names by their short ones.
        inbox: what was fetched of a partition.
        finished: told of every group of source events that is finished.
        produce: hands one record over to be sent.
        dead_letters: the dead letter writer of each source topic, by short name.
        log: the source topics.
        encode: prompts to contexts, each of shape (d,) or why there is none, off the event loop;
            None without an encoder.
        projections: checksums of the projections that `encode` has for routers without one of their
            own, by how many dimensions a context of each has; empty without an encoder.
        check_projection: raises WrongProjection where a projection, declared for so many
            dimensions, is not at hand.
        read_prior: reads a prior from the file that a declaration names.
        contexts: where contexts wait for their rewards outside of the table, or None.
        clock: seconds since the epoch.
        rank_of: rank of a reward's source.
        partition_of: partition of a router.
        leave: ends the process for an error after which nothing may go on.
    """

    topic: Mapping[str, str]
    states: States
    inbox: Callable[[int], Inbox]
    finished: Callable[[Group], None]
    produce: Produce
    dead_letters: Mapping[str, DeadLetters]
    log: SourceLog
    encode: Encode | None
    projections: Mapping[int, str]
    check_projection: Callable[[ProjectionRef, int], Awaitable[None]]
    read_prior: Callable[[ReferencedPrior], Awaitable[Prior]]
    contexts: Contexts | None
    clock: Callable[[], float]
    rank_of: Callable[[str], int]
    partition_of: Callable[[str], int]
    count: Count
    leave: Callable[[BaseException], object]
    limits: Limits = field(default_factory=Limits)
