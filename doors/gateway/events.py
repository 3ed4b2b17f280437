"""Check the events of HTTP requests as a worker does, so that refusals over HTTP and Kafka are the
same.
"""

from __future__ import annotations

import uuid
from typing import TypeVar

import orjson

from doors.gateway.called import of_call
from doors.gateway.problems import Problem
from ground.json_values import Document
from paretobandit_client.events import Ask, Cost, Needs, Reward
from schemas import CostReported, MalformedEvent, RequestSubmitted, RewardObserved, decode
from schemas.event import Event

E = TypeVar("E", bound=Event)


def asks(router_id: str, bodies: list[bytes]) -> list[Ask]:
    """Return requests; one without an id gets a new one. Raises Problem."""
    named = [_with(of_call(body), before={"request_id": uuid.uuid4().hex}) for body in bodies]
    return [
        Ask(
            router_id=router_id,
            request_id=event.request_id,
            prompt=event.prompt,
            context=event.context,
            allowed_models=event.allowed_models,
            max_price_per_1k=event.max_price_per_1k,
            input_tokens=event.input_tokens,
            metadata=event.metadata,
            session_id=event.session_id,
            session_budget_usd=event.session_budget_usd,
            needs=None if event.needs is None else Needs(**event.needs.model_dump()),
        )
        for event in _checked(RequestSubmitted, router_id, named)
    ]


def costs(router_id: str, bodies: list[bytes]) -> list[Cost]:
    """Return bills. Raises Problem."""
    return [_cost(event) for event in _checked(CostReported, router_id, bodies)]


def rewards(router_id: str, bodies: list[bytes]) -> list[Reward]:
    """Return rewards. Raises Problem."""
    return [_reward(event) for event in _checked(RewardObserved, router_id, bodies)]


def _cost(event: CostReported) -> Cost:
    return Cost(
        router_id=event.router_id,
        request_id=event.request_id,
        cost_usd=event.cost_usd,
        input_tokens=event.input_tokens,
        output_tokens=event.output_tokens,
        model=event.model,
        revision=event.revision,
        status=event.status,
        retry_after_seconds=event.retry_after_seconds,
        latency_ms=event.latency_ms,
        first_token_ms=event.first_token_ms,
        cached_input_tokens=event.cached_input_tokens,
    )


def _reward(event: RewardObserved) -> Reward:
    return Reward(
        router_id=event.router_id,
        request_id=event.request_id or "",
        session_id=event.session_id if event.request_id is None else None,
        reward=event.reward,
        source=event.source,
        model=event.model,
        revision=event.revision,
        observed_at=event.observed_at,
    )


def report_of(event: CostReported | RewardObserved) -> Cost | Reward:
    """Return a bill or a reward of another system's payload as it is sent."""
    return _cost(event) if isinstance(event, CostReported) else _reward(event)


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
