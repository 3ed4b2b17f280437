"""Define what a record of a request holds beside its numbers."""

from __future__ import annotations

from collections.abc import MutableMapping

from msgspec import Struct

from router_state.cache_price import CachePrice
from router_state.kernel import Label, RequestRecord, Settlement


class Candidates(Struct, frozen=True, gc=False):
    """Every arm that was looked at; `excluded` says why an arm could not be chosen.

    `terms` are mean, bonus and expected cost in dollars of the first arm, of the second, and so on:
    one list a decision is what a busy router can afford. Decisions may share `penalty` and
    `excluded`: they are only read.
    """

    models: tuple[str, ...]
    terms: list[float]
    penalty: list[float]
    excluded: list[str | None]

    @property
    def mean(self) -> list[float]:
        """Return the expected rewards."""
        return self.terms[0::3]

    @property
    def bonus(self) -> list[float]:
        """Return the exploration bonuses."""
        return self.terms[1::3]

    @property
    def expected_cost_usd(self) -> list[float]:
        """Return the expected costs in dollars."""
        return self.terms[2::3]

    def score(self, k: int) -> float:
        """Return mean + bonus − penalty of row k."""
        return self.terms[3 * k] + self.terms[3 * k + 1] - self.penalty[k]


class Choice(Struct, frozen=True, gc=False):
    """The chosen arm, the reason, the propensity, and the uncertainty (see
    `RequestRecord.unsure`)."""

    k: int
    reason: str
    propensity: float = 1.0
    unsure: list[float] | None = None


class Basis(Struct, frozen=True, gc=False):
    """The last events that the state contained when it decided: with the events themselves, enough
    to decide again.

    Last offsets of `pb.costs` and `pb.rewards` (−1: none), how many commitments had expired, and
    the same two offsets when the declaration in force had come in force.
    """

    costs: int
    rewards: int
    expired: int
    declared_costs: int
    declared_rewards: int


class Call(Struct, gc=False, frozen=True, omit_defaults=True):
    """Further facts about the call of a request, if it was not simply made and answered.

    `unanswered`: its bills so far are of attempts that failed, and cost `lost_usd`. `nth` numbers
    the calls of a model that is watched, see `availability`. `session_id` is its conversation,
    `before` its request before, and `warm` the tokens of it that each model had in its cache.
    `cache` is what cached input of the decided model cost then. `wait` is what its time counts for
    so far, in the unit of the target. `lost_seconds` is how long attempts that failed took.
    """

    unanswered: bool = False
    lost_usd: float = 0.0
    nth: int = 0
    session_id: str | None = None
    warm: dict[str, int] = {}
    before: str | None = None
    cache: CachePrice | None = None
    wait: float | None = None
    lost_seconds: float = 0.0


Records = MutableMapping[str, RequestRecord]
"""Requests of a router by request_id; who changes one assigns it back."""
__all__ = [
    "Basis",
    "Call",
    "Candidates",
    "Choice",
    "Label",
    "Records",
    "RequestRecord",
    "Settlement",
]
