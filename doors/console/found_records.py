"""Find all records of one request: its decision, its bills and labels, its refusals."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from doors.console.bus import Bus
from ground.messages import Record
from ground.traces import TRACEPARENT, trace_of
from schemas import (
    EVENTS,
    CostReported,
    DeadLetter,
    MalformedEvent,
    RequestSubmitted,
    RewardObserved,
    RouteDecided,
    decode,
)
from schemas.event import E

TOPICS = ("requests", "routes", "costs", "rewards", "dlq")
"""Topics whose records may be about a request."""
ESCAPED = frozenset("\"\\/<>&'+`")
"""ASCII characters that JSON writers escape: the first two by RFC 8259, `/` as PHP does, the others
as Go and .NET do. A record about an id with one of them may not hold the id's bytes."""


@dataclass(frozen=True, slots=True)
class Found:
    """The records about a request; bills and labels in order of arrival.

    Attributes:
        trace: the id of its trace, 32 hexadecimal digits; None without a trace.
    """

    decision: RouteDecided | None
    costs: list[CostReported]
    rewards: list[RewardObserved]
    letters: list[DeadLetter]
    request: RequestSubmitted | None
    trace: str | None


async def find(bus: Bus, router_id: str, request_id: str, *, limit: int | None = None) -> Found:
    """Look a request up in its router's topics.

    Args:
        limit: most of a partition's newest records to be read; None: all.
    """
    given = {
        name: await _records(bus, name, router_id, request_id, limit=limit)
        for name in ("requests", "routes", "costs", "rewards")
    }
    # The first answer holds the candidates; a repeat may lack them.
    first = [one for one in given["routes"] if not one[0].repeat] or given["routes"]
    asked = given["requests"]
    traced = [trace for one in (*first[-1:], *asked[-1:]) if (trace := _trace(one[1]))]
    return Found(
        first[-1][0] if first else None,
        [event for event, _ in reversed(given["costs"])],
        [event for event, _ in reversed(given["rewards"])],
        await _dead_letters(bus, router_id, request_id, limit=limit),
        asked[-1][0] if asked else None,
        traced[0] if traced else None,
    )


async def decision_of(bus: Bus, router_id: str, request_id: str) -> RouteDecided | None:
    """Return the decision about a request; None: the topic does not hold the decision."""
    async for record in bus.backwards("routes", router_id):
        if record.value is None or not may_name(record.value, request_id):
            continue
        found = _readable(RouteDecided, record.value)
        if found is not None and (found.router_id, found.request_id) == (router_id, request_id):
            return found
    return None


def _trace(record: Record) -> str | None:
    parent = dict(trace_of(record.headers)).get(TRACEPARENT)
    return None if parent is None else parent.split(b"-")[1].decode()


def may_name(value: bytes, request_id: str) -> bool:
    """Tell whether a JSON text may name a request, without parsing it."""
    return (
        not request_id.isascii()
        or not ESCAPED.isdisjoint(request_id)
        or request_id.encode() in value
    )


async def _records(
    bus: Bus, name: str, router_id: str, request_id: str, *, limit: int | None
) -> list[tuple[Any, Record]]:
    """Return a request's events of one topic with their records, the newest first."""
    found = []
    async for record in bus.backwards(name, router_id, limit=limit):
        if record.value is None or not may_name(record.value, request_id):
            continue
        event: Any = _readable(EVENTS[name], record.value)
        if event is not None and (event.router_id, event.request_id) == (router_id, request_id):
            found.append((event, record))
    return found


async def _dead_letters(
    bus: Bus, router_id: str, request_id: str, *, limit: int | None
) -> list[DeadLetter]:
    found, quoted = [], json.dumps(request_id, ensure_ascii=False).encode()
    async for record in bus.backwards("dlq", router_id, limit=limit):
        if record.value is None or not may_name(record.value, request_id):
            continue
        try:
            letter = DeadLetter.from_headers(record.headers)
        except MalformedEvent:
            continue
        kinds: dict[str, type[RequestSubmitted | CostReported | RewardObserved]] = {
            "requests": RequestSubmitted,
            "costs": CostReported,
            "rewards": RewardObserved,
        }
        # A dead letter holds its source's bytes, whose meaning depends on the topic that they came
        # from.
        kind = kinds.get(bus.name_of(letter.topic))
        event = kind and _readable(kind, record.value)
        # An unreadable dead letter is shown if it has the router's key and holds the id as text.
        if (
            kind is not None and record.key == router_id.encode() and quoted in record.value
            if event is None
            else (event.router_id, event.request_id) == (router_id, request_id)
        ):
            found.append(letter)
    return found


def _readable(kind: type[E], value: bytes) -> E | None:
    try:
        return decode(kind, value)
    except MalformedEvent:
        return None
