"""The decisions of one partition's requests, by the incarnations of their routers."""

from __future__ import annotations

import zlib
from collections import Counter
from dataclasses import dataclass, field

import orjson

from agents.wire import utc
from router_state.record import RequestRecord
from schemas.routes import RouteDecided

Ref = tuple[str, str]
"""router_id and request_id."""


@dataclass(slots=True)
class Incarnation:
    """The decisions of a router from its declaration until it is gone.

    Attributes:
        decisions: by seq: request_id and a checksum of what was answered.
        config_offset: the highest declaration that was in force.
    """

    decisions: dict[int, tuple[str, int]] = field(default_factory=dict)
    config_offset: int = -1


@dataclass(slots=True)
class Answers:
    """The answers to one partition's requests.

    Attributes:
        incarnations: of each router, the present one last.
        decided: {request: seq} of the present incarnation.
        strays, forwarded: events of other partitions, and those that came from there.
    """

    incarnations: dict[str, list[Incarnation]] = field(default_factory=dict)
    decided: dict[Ref, int] = field(default_factory=dict)
    strays: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    forwarded: Counter[tuple[str, str, str]] = field(default_factory=Counter)


def answer_checksum(route: RouteDecided) -> int:
    """Return a number that tells answers apart, whatever a repeat leaves out."""
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
    """Return how a finding names a request."""
    return f"router {ref[0]} request {ref[1]}"
