"""Decode the parts of a history's events that a replay needs.

A worker has checked each of them before, so they are read without the full schema; one that does
not fit is read again with it, for the reason why.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType
from msgspec.json import Decoder

from ground.json_text import halved
from ground.json_values import Json
from router_state.events import Needs
from router_state.record import Basis
from schemas.costs import MAX_COST_USD, CostReported
from schemas.event import Event, MalformedEvent, decode_keyed
from schemas.prompt_length import input_tokens, is_wordless
from schemas.quick import Usage
from schemas.reasons import Reason
from schemas.requests import RequestSubmitted
from schemas.rewards import RewardObserved, subject_of
from schemas.routes import RouteDecided
from studies.history.records import NO_JSON, Record


class Metadata(Struct, frozen=True, gc=False):
    """The part of a request's metadata that is read; `outcomes` is unchecked."""

    outcomes: Json = None


class Request(Struct, frozen=True, gc=False):
    """A request."""

    router_id: str
    request_id: str
    context: list[float] | None = None
    prompt: str | None = None
    allowed_models: list[str] | None = None
    max_price_per_1k: float | None = None
    input_tokens: int | None = None
    metadata: Metadata | None = None
    needs: Needs | None = None
    session_id: str | None = None
    session_budget_usd: float | None = None

    def __post_init__(self) -> None:
        # Of the full schema's checks only the bias matters: without it the core would refuse the
        # context.
        if self.context is not None and self.context[-1:] != [1.0]:
            raise ValueError("a context ends with the bias 1.0")

    @property
    def is_wordless(self) -> bool:
        """Tell whether it was decided on the mean context."""
        return self.context is None and is_wordless(self.prompt, self.needs)

    @property
    def tokens(self) -> int | None:
        """Return the input tokens of its call, as the worker took them."""
        return input_tokens(self.input_tokens, self.prompt)


class RecordedCandidate(Struct, frozen=True, gc=False):
    """One model as a decision saw it; one that was ruled out says less."""

    model: str
    mean: float | UnsetType = UNSET
    bonus: float | UnsetType = UNSET
    penalty: float | UnsetType = UNSET
    score: float | UnsetType = UNSET
    expected_cost_usd: float | UnsetType = UNSET
    excluded: str | None = None


class Contained(Basis, frozen=True, gc=False):
    """The events that the state contained, and their order where it is said."""

    request: int | None = None
    since: str | None = None


class Decision(Struct, frozen=True, gc=False):
    """A decision."""

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
    decided_at: datetime
    repeat: bool
    applied: Contained | None = None
    candidates: list[RecordedCandidate] | None = None

    @property
    def at(self) -> float:
        """Return when it was made, in seconds since the epoch."""
        return self.decided_at.timestamp()


class RecordedBill(Struct, Usage, frozen=True, gc=False):
    """A bill in dollars, or in tokens."""

    router_id: str
    request_id: str
    cost_usd: Annotated[float, Meta(ge=0.0, le=MAX_COST_USD)] | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    revision: int = 0
    model: str | None = None
    status: str | None = None
    retry_after_seconds: float | None = None
    cached_input_tokens: int | None = None
    latency_ms: float | None = None
    first_token_ms: float | None = None

    def __post_init__(self) -> None:
        if self.cost_usd is None and self.tokens is None:
            raise ValueError("neither dollars nor tokens")


class Reward(Struct, frozen=True, gc=False):
    """A reward."""

    router_id: str
    reward: Annotated[float, Meta(ge=0.0, le=1.0)]
    source: str
    revision: int = 0
    model: str | None = None
    request_id: str | None = None
    session_id: str | None = None

    def __post_init__(self) -> None:
        if self.request_id is None and self.session_id is None:
            raise ValueError("neither request nor session")

    @property
    def subject(self) -> str:
        """Return what was judged, see `RewardObserved.subject`."""
        return subject_of(self.request_id, self.session_id)


_REQUEST: Callable[[Any], Request] = Decoder(Request).decode


def _request(value: bytes | None) -> Request:
    try:
        return _REQUEST(value)
    except NO_JSON:
        # As a worker reads it: half of a character in a prompt is replaced.
        if value is None or (found := halved(value)) is None:
            raise
        return _REQUEST(found[1])


READERS: dict[str, Callable[[Any], Any]] = {
    "requests": _request,
    "routes": Decoder(Decision).decode,
    "costs": Decoder(RecordedBill).decode,
    "rewards": Decoder(Reward).decode,
}
"""Fast decoders of each topic's records, which check types and bounds only."""
UNREADABLE = (*NO_JSON, TypeError)  # of a value that is None
SCHEMAS: dict[str, type[Event]] = {
    "requests": RequestSubmitted,
    "routes": RouteDecided,
    "costs": CostReported,
    "rewards": RewardObserved,
}
"""Full schema of each topic, which tells why a record cannot be read."""


def reason_of(topic: str, record: Record) -> Reason:
    """Return why a worker would refuse a record that can't be read."""
    try:
        decode_keyed(SCHEMAS[topic], key=record.key, value=record.value)
    except MalformedEvent as error:
        return error.reason
    return Reason.MALFORMED_EVENT
