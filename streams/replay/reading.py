"""Events of a history, as far as a replay needs them.

A worker has checked each of them before, so they are read without the full schema; one that does not fit is read again with it, for
the reason why.
"""

from __future__ import annotations

from datetime import datetime
from operator import itemgetter
from typing import Any, NamedTuple

import orjson

from schemas.costs import CostReported
from schemas.event import Event, MalformedEvent, decode
from schemas.reasons import Reason
from schemas.requests import RequestSubmitted
from schemas.rewards import RewardObserved
from schemas.routes import RouteDecided
from streams.replay.records import Record


class Applied(NamedTuple):
    """What the state contained at a decision, see `pb.routes`."""

    costs: int
    rewards: int
    expired: int
    declared_costs: int
    declared_rewards: int


class Request(NamedTuple):
    """A request; `outcomes` is what its metadata says of every model, unchecked."""

    router_id: str
    request_id: str
    context: list[float] | None
    prompt: str | None
    allowed_models: list[str] | None
    max_price_per_1k: float | None
    outcomes: Any


class Decision(NamedTuple):
    """A decision; `candidates` as on the wire."""

    router_id: str
    request_id: str
    model: str
    seq: int
    reason: str
    propensity: float
    expected_reward: float
    expected_cost_usd: float
    lambda_t: float
    config_offset: int
    at: float
    applied: Applied | None
    candidates: list[dict[str, Any]] | None
    repeat: bool


class Bill(NamedTuple):
    """A bill in dollars, or in tokens."""

    router_id: str
    request_id: str
    cost_usd: float | None
    tokens: tuple[int, int] | None
    revision: int


class Reward(NamedTuple):
    """A reward."""

    router_id: str
    request_id: str
    reward: float
    source: str
    revision: int


SCHEMAS: dict[str, type[Event]] = {
    "requests": RequestSubmitted,
    "routes": RouteDecided,
    "costs": CostReported,
    "rewards": RewardObserved,
}


_APPLIED = itemgetter(*Applied._fields)


def read(topic: str, record: Record) -> Request | Decision | Bill | Reward:
    """Return the event of a record.

    Raises:
        MalformedEvent: it can't be read, with the reason that a worker would give.
    """
    value = record.value
    try:
        body: Any = orjson.loads(value) if isinstance(value, bytes) else value
        if record.key is not None and record.key != body["router_id"].encode():
            raise ValueError("wrong key")
        event: Request | Decision | Bill | Reward = READERS[topic](body)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        decode(SCHEMAS[topic], value if value is None or isinstance(value, bytes) else orjson.dumps(value))
        raise MalformedEvent(Reason.MALFORMED_EVENT, f"{type(error).__name__}: {error}") from None
    return event


def _request(body: Any) -> Request:
    context, metadata = body.get("context"), body.get("metadata")
    if context is not None and context[-1] != 1.0:
        raise ValueError("no bias")
    return Request(
        body["router_id"],
        body["request_id"],
        context,
        body.get("prompt"),
        body.get("allowed_models"),
        body.get("max_price_per_1k"),
        None if metadata is None else metadata.get("outcomes"),
    )


def _decision(body: Any) -> Decision:
    applied = body.get("applied")
    return Decision(
        body["router_id"],
        body["request_id"],
        body["model"],
        body["seq"] + 0,
        body["reason"],
        body["propensity"] + 0.0,
        body["expected_reward"] + 0.0,
        body["expected_cost_usd"] + 0.0,
        body["lambda_t"] + 0.0,
        body["config_offset"] + 0,
        datetime.fromisoformat(body["decided_at"]).timestamp(),
        None if applied is None else Applied._make(_APPLIED(applied)),
        body.get("candidates"),
        body["repeat"],
    )


def _bill(body: Any) -> Bill:
    cost, into, out = body.get("cost_usd"), body.get("input_tokens"), body.get("output_tokens")
    if cost is None and (into is None or out is None):
        raise ValueError("no bill")
    if cost is not None and not 0.0 <= cost <= 1000.0:
        raise ValueError("out of range")
    return Bill(
        body["router_id"], body["request_id"], cost, None if into is None or out is None else (into, out), body.get("revision", 0)
    )


def _reward(body: Any) -> Reward:
    reward = body["reward"]
    if not 0.0 <= reward <= 1.0:
        raise ValueError("out of range")
    return Reward(body["router_id"], body["request_id"], reward, body["source"], body.get("revision", 0))


READERS: dict[str, Any] = {"requests": _request, "routes": _decision, "costs": _bill, "rewards": _reward}
