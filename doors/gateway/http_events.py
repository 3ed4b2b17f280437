"""Check the events of HTTP requests as a worker does, so that refusals over HTTP and Kafka are the
same.
"""

from __future__ import annotations

import uuid
from typing import TypeVar

import orjson
from msgspec import convert

from doors.gateway.called import of_call
from doors.gateway.problems import Problem
from ground.json_values import Document
from paretobandit_client.sent_events import Ask, Cost, Reward, Verdict
from schemas import CostReported, MalformedEvent, RequestSubmitted, RewardObserved, decode
from schemas.event import Event

E = TypeVar("E", bound=Event)
S = TypeVar("S", Ask, Cost, Reward, Verdict)


def asks(router_id: str, bodies: list[bytes]) -> list[Ask]:
    """Return requests; one without an id gets a new one. Raises Problem."""
    named = [_with(of_call(body), before={"request_id": uuid.uuid4().hex}) for body in bodies]
    return [_sent(event, Ask) for event in _checked(RequestSubmitted, router_id, named)]


def costs(router_id: str, bodies: list[bytes]) -> list[Cost]:
    """Return bills. Raises Problem."""
    return [_sent(event, Cost) for event in _checked(CostReported, router_id, bodies)]


def rewards(router_id: str, bodies: list[bytes]) -> list[Reward | Verdict]:
    """Return rewards and verdicts. Raises Problem."""
    return [_judged(event) for event in _checked(RewardObserved, router_id, bodies)]


def _judged(event: RewardObserved) -> Reward | Verdict:
    return _sent(event, Reward) if event.verifier is None else _sent(event, Verdict)


def report_of(event: CostReported | RewardObserved) -> Cost | Reward:
    """Return a bill or a reward, read from another system's payload, in the form in which the
    client sends it.
    """
    return _sent(event, Cost) if isinstance(event, CostReported) else _sent(event, Reward)


def _sent(event: Event, kind: type[S]) -> S:
    """Return an event in the form in which the client sends it: the same fields."""
    return convert(event.model_dump(), kind)


def _with(body: bytes, *, before: Document | None = None, after: Document | None = None) -> bytes:
    """Add fields to a JSON object: those in `before` give way to its own, those in `after` win."""
    # The body is not parsed and written again, so that the schema sees it exactly as sent.
    parts = [orjson.dumps(before or {}), body, orjson.dumps(after or {})]
    return b"{" + b",".join(inner for part in parts if (inner := part[1:-1].strip())) + b"}"


def _checked(schema: type[E], router_id: str, bodies: list[bytes]) -> list[E]:
    """Check every event before the first is sent: a batch is sent as a whole or not at all."""
    events, wrong = [], []
    for index, body in enumerate(bodies):
        try:
            # The path's router wins over the body's, because the key was checked for the path's.
            events.append(decode(schema, _with(body, after={"router_id": router_id})))
        except MalformedEvent as error:
            wrong.append((index, error))
    if wrong:
        each = [
            {"index": index, "reason": error.reason.value, "detail": error.message}
            for index, error in wrong
        ]
        raise Problem.of(wrong[0][1], **({"errors": each} if len(bodies) > 1 else {}))
    return events
