"""Group the decisions of a partition by router and incarnation: a life from declaration to
removal."""

from __future__ import annotations

import zlib
from collections import Counter
from dataclasses import dataclass, field

import orjson

from router_state.instants import utc
from router_state.record import RequestRecord
from router_state.since import steps_of
from schemas.routes import RouteDecided

Ref = tuple[str, str]
"""router_id and request_id."""


@dataclass(slots=True)
class Ends:
    """The tombstones of routers that `pb.routers` still holds; compaction may have removed others.

    Attributes:
        gone: {router_id: offsets} of tombstones.
        holes: ranges of missing offsets, the end not included.
    """

    gone: dict[str, list[int]] = field(default_factory=dict)
    holes: list[tuple[int, int]] = field(default_factory=list)

    def between(self, router_id: str, after: int, before: int) -> bool:
        """Tell whether a router has a tombstone between two declarations."""
        return any(after < offset < before for offset in self.gone.get(router_id, ()))

    def perhaps_between(self, after: int, before: int) -> bool:
        """Tell whether a record is missing between two declarations, which may have been a
        tombstone."""
        return any(first < before and after + 1 < end for first, end in self.holes)


@dataclass(slots=True)
class Incarnation:
    """The decisions of a router from its declaration until its removal.

    Attributes:
        decisions: request_id and checksum of the answer, by seq.
        config_offset: the highest offset of a declaration that was in force.
        forgotten: ranges of decisions, by seq, that the worker had forgotten; None: not kept.
    """

    decisions: dict[int, tuple[str, int]] = field(default_factory=dict)
    config_offset: int = -1
    forgotten: list[tuple[int, int]] | None = field(default_factory=list)

    def note(self, since: str) -> None:
        """Note the requests that were forgotten in the steps to a decision."""
        if self.forgotten is None or (steps := steps_of(since)) is None:
            self.forgotten = None
            return
        for step in steps:
            if step.kind == "f":
                # Ranges up to here are joined, so that the list stays short.
                self.forgotten = [(0, step.number)]
            elif step.kind == "g":
                self.forgotten += step.seqs

    def has_forgotten(self, seq: int) -> bool:
        """Tell whether the worker may have forgotten a decision."""
        return self.forgotten is None or any(a <= seq <= b for a, b in self.forgotten)


@dataclass(slots=True)
class Answers:
    """The answers to one partition's requests.

    Attributes:
        incarnations: incarnations of each router, the present one last.
        decided: {request: seq} of the present incarnation; `earlier`: requests of earlier
            incarnations.
        billed_to: {request: last offset of pb.costs that the state contained at its decision}.
        asked_again: routers that decided a forgotten request a second time.
        strays: events on this partition that belong to another one; forwarded: events that another
            partition's worker has forwarded to this partition.
    """

    incarnations: dict[str, list[Incarnation]] = field(default_factory=dict)
    decided: dict[Ref, int] = field(default_factory=dict)
    earlier: set[Ref] = field(default_factory=set)
    billed_to: dict[Ref, int] = field(default_factory=dict)
    asked_again: set[str] = field(default_factory=set)
    strays: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    forwarded: Counter[tuple[str, str, str]] = field(default_factory=Counter)


def answer_checksum(route: RouteDecided) -> int:
    """Return a checksum of an answer's fields that repeats have, too."""
    return _checksum(
        route.router_id,
        route.request_id,
        route.seq,
        route.model,
        route.reason.value,
        route.propensity,
        route.expected_reward,
        route.expected_cost_usd,
        route.lambda_t,
        route.config_offset,
        route.decided_at.isoformat(),
    )


def record_checksum(ref: Ref, record: RequestRecord) -> int:
    """Return the checksum that the answer to a request must have."""
    return _checksum(
        *ref,
        record.seq,
        record.model,
        record.reason,
        record.propensity,
        record.expected_reward,
        record.expected_cost_usd,
        record.lambda_t,
        record.config_offset,
        utc(record.decided_at).isoformat(),
    )


def _checksum(*parts: object) -> int:
    return zlib.crc32(orjson.dumps(parts))


def name_of(ref: Ref) -> str:
    """Return the name of a request in findings."""
    return f"router {ref[0]} request {ref[1]}"
