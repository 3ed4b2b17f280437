"""Define the record of a request: its decision, its bill and its reward."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any, NoReturn, TypeVar

from msgspec import Struct, structs

from router_state.config import Price, Vector
from router_state.errors import UnknownRequest
from router_state.kernel import Candidates
from router_state.packing.framing import Json, converted
from router_state.plan import Plan

K = TypeVar("K")


class Basis(Struct, frozen=True, gc=False):
    """The last events that the state contained at a decision: with the events themselves, enough
    to repeat the decision.

    Last offsets of `pb.costs` and `pb.rewards` (−1: none), the number of expired commitments, and
    the two offsets at the time when the present declaration came in force.
    """

    costs: int
    rewards: int
    expired: int
    declared_costs: int
    declared_rewards: int


class Call(Struct, gc=False, frozen=True, omit_defaults=True):
    """Further facts about the call of a request, if there are any beyond its decision and its
    bill.

    `unanswered`: the bills so far are of failed attempts, which cost `lost_usd` dollars.
        `session_id` is the conversation. `kept` holds what capabilities store about the call, by
        their names. `plan` is the plan of further calls, and its outcome. `unpaced`: the budget of
        a request does not pay the call. `redirected` is the name of the model that answered in
        place of the called one; None: the called model answered.
    """

    unanswered: bool = False
    lost_usd: float = 0.0
    session_id: str | None = None
    kept: dict[str, Any] = {}
    plan: Plan | None = None
    unpaced: bool = False
    redirected: str | None = None


PLAIN = Call()
"""A call without further facts."""


class Settlement(Struct, gc=False):
    """The bill of a call; `open`: another call of the request's plan may still be billed."""

    cost_usd: float
    revision: int
    open: bool = False


NOT_LEARNED = -2000.0
"""Mark of a reward that was not learned, in place of the arm's `forgotten`, which is never
negative.
"""


class Label(Struct, gc=False):
    """The reward of an answer, and the `forgotten` of the arm's regression when it learned the
    reward.
    """

    reward: float
    source: str
    rank: int
    revision: int
    forgotten: float = NOT_LEARNED

    def is_as(self, other: Label) -> bool:
        """Tell whether another label has the same reward, source, rank and revision."""
        return (self.reward, self.source, self.rank, self.revision) == (
            other.reward,
            other.source,
            other.rank,
            other.revision,
        )


class Weighed(Struct, gc=False):
    """The outcome of a reward that came.

    `label` is the label in force from now on; None: no label is in force. `attempt` is the call
    that it is of; None: the reward's own. `news` tells whether the reward changes any label.
    `labels` are all labels of the request, for `Capability.taken`; None: no capability has weighed
    the reward.
    """

    label: Label | None
    news: bool = True
    labels: object = None
    attempt: int | None = None


class RequestRecord(Struct, gc=False, eq=False):
    """One decided request. `offset` is the request's offset in `pb.requests`; `x` is None if
    another store keeps the context.

    `expired`: the bill did not come in time, so the expected cost stays charged. `answered_by` is
        the model that was called if it is not the decided one; `price` is then that model's price.
        `input_tokens` is the number of the prompt's tokens, if it was stated. `call` holds further
        facts about the call; None: there are none. `noted` is what capabilities
        have noted of the request, by their names; it is published, and dropped with the first bill.
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
    noted: dict[str, object] | None = None

    def kept_by(self, name: str, kind: type[K]) -> K | None:
        """Return what a capability has stored about the call; None: nothing. Raises DamagedState.

        Args:
            kind: type of what was stored; a restored record holds it as JSON.
        """
        kept = None if self.call is None else self.call.kept.get(name)
        return kept if kept is None or type(kept) is kind else converted(kept, kind, name)

    def keep(self, name: str, what: Json | Struct) -> None:
        """Store something about the call under a capability's name."""
        call = self.call or PLAIN
        self.call = structs.replace(call, kept={**call.kept, name: what})

    @property
    def called(self) -> str:
        """Return the model that answered, or the decided one."""
        # The first bill or reward that names a model says which one was called.
        return self.answered_by or self.model

    @property
    def is_paced(self) -> bool:
        """Tell whether the budget of a request pays the call."""
        return self.call is None or not self.call.unpaced

    @property
    def plan(self) -> Plan | None:
        """Return the plan of the request; None: only one call was decided."""
        return None if self.call is None else self.call.plan

    @property
    def is_redirected(self) -> bool:
        """Tell whether another model than the called one answered."""
        return self.call is not None and self.call.redirected is not None

    @property
    def is_awaited(self) -> bool:
        """Tell whether a bill is awaited."""
        return not self.expired and (self.bill is None or self.bill.open)

    @property
    def awaited_usd(self) -> float:
        """Return the expected dollars of awaited bills and verdicts."""
        return self.dollars[1]

    @property
    def charged_usd(self) -> float:
        """Return the dollars charged to the request: bills, verdicts, and the expected cost of
        calls whose bill is awaited.
        """
        return self.dollars[0]

    @property
    def dollars(self) -> tuple[float, float]:
        """Return `charged_usd` and `awaited_usd`."""
        plan, expected, bill = self.plan, self.expected_cost_usd, self.bill
        if plan is None:
            charged_usd = expected if bill is None else bill.cost_usd
            return charged_usd, expected if self.is_awaited else 0.0
        awaits = self.is_awaited
        # The expected cost of a request whose bill never came stays charged.
        usd = plan.awaited_usd if awaits or bill is None else 0.0
        return plan.spent_usd + usd, usd if awaits else 0.0

    @property
    def is_answered(self) -> bool:
        """Tell whether the bill of an answer has come."""
        return self.bill is not None and not (self.call is not None and self.call.unanswered)


Records = MutableMapping[str, RequestRecord]
"""Records of a router's requests by request_id; code that changes a record assigns it back."""


def unknown(request_id: str) -> NoReturn:
    """Refuse what comes for a request without a record. Raises UnknownRequest."""
    raise UnknownRequest(f"no decision for request {request_id!r}")
