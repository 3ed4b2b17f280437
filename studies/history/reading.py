"""Decode a history's records: source events as workers decode them, and those fields of decisions
that a replay needs.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from msgspec import UNSET, Struct, UnsetType
from msgspec.json import Decoder

from router_state.record import Basis
from schemas.event import Event, MalformedEvent, decode
from schemas.quick import Bill, Request, Reward, reader_of
from schemas.reasons import Reason
from schemas.routes import RouteDecided
from studies.history.records import NO_JSON


class RecordedCandidate(Struct, frozen=True, gc=False):
    """One model as a decision saw it, in the order of `Candidates.rows`. A number that the recorded
    decision lacks is not compared with the replay's.
    """

    model: str
    mean: float | UnsetType = UNSET
    bonus: float | UnsetType = UNSET
    penalty: float | UnsetType = UNSET
    score: float | UnsetType = UNSET
    expected_cost_usd: float | UnsetType = UNSET
    excluded: str | None = None


class Contained(Basis, frozen=True, gc=False):
    """The events that the state contained; `since` gives their order, where it is known."""

    request: int | None = None
    since: str | None = None


class RecordedChoice(Struct, frozen=True, gc=False):
    """The router's choice where the incumbent answered; `then` would have followed `model`."""

    model: str
    reason: str
    propensity: float
    then: str | None = None


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
    routed_by: str | None = None
    routed_share: float | None = None
    would_route: RecordedChoice | None = None
    label_wanted: bool | None = None
    label_probability: float | None = None

    @property
    def at(self) -> float:
        """Return when it was made, in seconds since the epoch."""
        return self.decided_at.timestamp()


_DECISION = Decoder(Decision).decode


def _decision(value: bytes | None) -> Decision:
    try:
        return _DECISION(value or b"")
    except NO_JSON:
        decode(RouteDecided, value)
        # The schema reads more than a replay: integers beyond 64 bits, halves of characters.
        raise MalformedEvent(
            Reason.MALFORMED_EVENT, "the decision cannot be replayed: a number is too large"
        ) from None


# Keys are compared elsewhere, as those of one router come by the thousand.
READERS: dict[str, Callable[[bytes | None], Event | Decision]] = {
    "requests": reader_of(Request),
    "routes": _decision,
    "costs": reader_of(Bill),
    "rewards": reader_of(Reward),
}
"""Readers of the values of each topic's records, which raise MalformedEvent."""
