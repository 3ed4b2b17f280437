"""Bundle the connections of a worker's agents to the outside, all made before they start."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from agents.group import Group
from agents.interfaces import Contexts, Encoder, References, SourceLog, States
from agents.outbox import Outbox


class Count(Protocol):
    """Count an outcome for the metrics."""

    def __call__(self, what: str, amount: int = 1) -> None: ...


@dataclass(frozen=True, slots=True)
class Meter:
    """Measure what agents do.

    Attributes:
        count: function that counts an outcome.
        finished: function that is called with every finished group of source events.
    """

    count: Count
    finished: Callable[[Group], None]


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
    meter: Meter
    rank_of: Callable[[str], int]
    clock: Callable[[], float]
    leave: Callable[[BaseException], object]
    limits: Limits = field(default_factory=Limits)
