"""Define the record of a request: its decision, its bill and its reward."""

from __future__ import annotations

from collections.abc import MutableMapping

from msgspec import Struct

from router_state.cache_price import CachePrice
from router_state.config import Price, Vector
from router_state.kernel import Candidates
from router_state.packing.framing import Json
from router_state.plan import Plan


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
    the calls of a model that is watched, see `outages`. `session_id` is its conversation,
    `before` its request before, and `warm` the tokens of it that each model had in its cache.
    `cache` is what cached input of the decided model cost then. `wait` is what its time counts for
    so far, in the unit of the target. `lost_seconds` is how long attempts that failed took. `kept`
    is what other capabilities keep of it, by their names. `plan` is what may follow the call, and
    what became of that. `unpaced`: the budget of a request does not pay it.
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
    kept: dict[str, Json] = {}
    plan: Plan | None = None
    unpaced: bool = False


PLAIN = Call()
"""A call about which nothing has to be kept."""


class Settlement(Struct, gc=False):
    """The bill of a call; `open`: another call of its plan may have to be paid for."""

    cost_usd: float
    revision: int
    open: bool = False


class Label(Struct, gc=False):
    """The reward of an answer, and the arm's `forgotten` when it was learned (see Arms)."""

    reward: float
    source: str
    rank: int
    revision: int
    forgotten: float


class RequestRecord(Struct, gc=False, eq=False):
    """One decided request. `offset` is where in `pb.requests` it was read; `x` is None where
    another store keeps the context.

    `expired` says that the bill did not come in time, so the commitment stands at its expectation.
    `answered_by` is the model that was called where that was another one than the decided one;
    `price` is that model's then. `input_tokens` is how many its prompt has, where that was said.
    `call` is what else is known of the call, None where there is nothing. `waits` are expected
    seconds of each arm and, where slow calls are counted, the probability of being one, for who
    publishes them, too.
    """

    seq: int
    model: str
    reason: str
    propensity: float
    expected_reward: float
    expected_cost_usd: float
    lambda_t: float
    config_offset: int
    decided_at: float
    offset: int
    price: Price
    x: Vector | None
    candidates: Candidates | None
    applied: Basis | None
    input_tokens: int | None
    bill: Settlement | None = None
    label: Label | None = None
    expired: bool = False
    answered_by: str | None = None
    call: Call | None = None
    waits: tuple[list[float], list[float] | None] | None = None

    @property
    def called(self) -> str:
        """Return the model that answered, or the decided one."""
        # The first bill or reward that names a model tells it.
        return self.answered_by or self.model

    @property
    def is_paced(self) -> bool:
        """Tell whether the budget of a request pays the call."""
        return self.call is None or not self.call.unpaced

    @property
    def plan(self) -> Plan | None:
        """Return what may follow the call, if anything was planned."""
        return None if self.call is None else self.call.plan

    @property
    def is_awaited(self) -> bool:
        """Tell whether a bill is awaited."""
        return not self.expired and (self.bill is None or self.bill.open)

    @property
    def awaited_usd(self) -> float:
        """Return the dollars that are expected of what is awaited."""
        if not self.is_awaited:
            return 0.0
        plan = self.plan
        return self.expected_cost_usd if plan is None else plan.awaited_usd

    @property
    def charged_usd(self) -> float:
        """Return the dollars that it is charged with: bills, verdicts, and what is expected of the
        rest."""
        plan = self.plan
        if plan is None:
            return self.expected_cost_usd if self.bill is None else self.bill.cost_usd
        awaits = self.bill is None or self.is_awaited
        return plan.spent_usd + (plan.awaited_usd if awaits else 0.0)

    @property
    def is_answered(self) -> bool:
        """Tell whether the bill of an answer has come."""
        return self.bill is not None and not (self.call is not None and self.call.unanswered)


Records = MutableMapping[str, RequestRecord]
"""Requests of a router by request_id; who changes one assigns it back."""
