"""The capability of incumbents: a share of the requests is answered as before the router came."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from math import isfinite
from typing import Protocol

from msgspec import Struct, structs, to_builtins

from router_state.arms import Arms
from router_state.billing import Billing
from router_state.capability import Capability
from router_state.changes import Journal
from router_state.choice import Choice
from router_state.incumbents.assigning import REASON, ROUTER, Incumbent, model_at
from router_state.packing.framing import Json, converted
from router_state.record import RequestRecord


class Assigned(Struct, frozen=True, array_like=True, omit_defaults=True):
    """The side that answered a request.

    Attributes:
        by: one of those of `assigning`; routed: probability that the router answers.
        model, reason, propensity: what the router had chosen where it did not answer, why, and with
            which probability.
        then: the model that was to follow if that one's answer did not pass.
    """

    by: str
    routed: float
    model: str | None = None
    reason: str = ""
    propensity: float = 0.0
    then: str | None = None


class Said(Protocol):
    """A router's declaration."""

    router_id: str
    incumbent: str | Mapping[str, float] | None
    mode: str | None
    share: float | None
    by: str | None
    holdout: float | None


def _share(choice: Choice, routed: float, beside: float) -> None:
    """Set the probability of what the router answered, where it answers a share of the requests.

    Args:
        beside: probability that the incumbent calls the same model.
    """
    plan = choice.plan
    if plan is None:
        choice.propensity = routed * choice.propensity + beside
        return
    # The incumbent has no plans, but may make the same first call.
    choice.propensity *= routed
    first = min(routed * plan.first_propensity + beside, 1.0)
    choice.plan = structs.replace(plan, first_propensity=first)


class Incumbents(Capability):
    """The incumbent of a router.

    The budget of a request does not pay its calls: what they cost says nothing about the router's
    choices. Budgets of a period, caps and the like are dollars, whoever spends them.

    Attributes:
        declared: what the router says of it.
        answered: requests that it has answered; billed: those of them with a bill.
        spend_usd: Σ of their bills.
    """

    __slots__ = ("answered", "billed_count", "declared", "spend_usd")
    name = "incumbent"
    declared: Incumbent

    def __init__(self, arms: Arms, journal: Journal) -> None:
        super().__init__(arms, journal)
        self.start_over()

    @classmethod
    def read(cls, said: Said) -> Incumbent | None:
        """See Capability."""
        if said.incumbent is None:
            return None
        mix = {said.incumbent: 1.0} if isinstance(said.incumbent, str) else dict(said.incumbent)
        return Incumbent(
            mix,
            said.router_id,
            said.mode == "observe",
            1.0 if said.share is None else said.share,
            said.holdout or 0.0,
            said.by == "session",
        )

    @classmethod
    def document(cls, declared: Incumbent) -> dict[str, object]:
        """See Capability."""
        (first, *others) = declared.mix
        return {
            "incumbent": declared.mix if others else first,
            "mode": "observe" if declared.observes else "route",
            "share": declared.share,
            "holdout": declared.holdout,
            "by": "session" if declared.by_session else "request",
        }

    @classmethod
    def pack_declared(cls, declared: Incumbent | None) -> Json | None:
        """See Capability."""
        return None if declared is None else to_builtins(declared)

    @classmethod
    def unpack_declared(cls, kept: Json | None) -> Incumbent | None:
        """See Capability."""
        return None if kept is None else converted(kept, Incumbent, "incumbent")

    def declare(self, declared: Incumbent, *, now: float) -> None:
        """See Capability."""
        self.declared = declared

    def instead(self, choice: Choice, chance_of: Callable[[int], float]) -> None:
        """See Capability: the incumbent answers, if the request was drawn for it.

        Where the incumbent may not be called, the router answers, and the request is no part of the
        comparison.
        """
        declared, request, row = self.declared, choice.request, self.arms.row
        open_to = {name: choice.excluded[row[name]] is None for name in declared.mix if name in row}
        mix = declared.among(open_to)
        if not mix:
            choice.keep(self.name, to_builtins(Assigned(ROUTER, 1.0)))
            return
        session = request.session_id if declared.by_session else None
        by, place = declared.drawn(request.request_id if session is None else session)
        routed = declared.routed
        if by == ROUTER:
            other = mix.get(self.arms.names[choice.k], 0.0)
            choice.keep(self.name, to_builtins(Assigned(by, routed)))
            _share(choice, routed, (1.0 - routed) * other)
            return
        own, name, plan = self.arms.names[choice.k], model_at(mix, place), choice.plan
        then = None if plan is None or len(plan.steps) < 2 else plan.steps[1].model
        found = Assigned(by, routed, own, choice.why, choice.propensity, then)
        choice.keep(self.name, to_builtins(found))
        k = row[name]
        # Whichever way the model may have come by.
        by_router = routed * (choice.propensity if k == choice.k else chance_of(k))
        choice.k, choice.why, choice.plan, choice.unpaced = k, REASON, None, True
        choice.propensity = min(by_router + (1.0 - routed) * mix[name], 1.0)

    def decided(self, choice: Choice, record: RequestRecord) -> None:
        """See Capability."""
        self.answered += choice.unpaced

    def billed(self, billing: Billing) -> None:
        """See Capability; a bill of another declaration's incumbent counts as well."""
        call = billing.record.call
        if call is not None and call.unpaced:
            self.billed_count += billing.first
            self.spend_usd += billing.cost_usd if billing.first else billing.difference_usd

    @classmethod
    def told(cls, kept: Json) -> dict[str, object]:
        """See Capability."""
        one = converted(kept, Assigned, "incumbent")
        found: dict[str, object] = {"routed_by": one.by, "routed_share": one.routed}
        if one.model is not None:
            own: dict[str, object] = {
                "model": one.model,
                "reason": one.reason,
                "propensity": one.propensity,
            }
            if one.then is not None:
                own["then"] = one.then
            found["would_route"] = own
        return found

    def start_over(self) -> None:
        """See Capability."""
        self.answered, self.billed_count, self.spend_usd = 0, 0, 0.0

    @classmethod
    def head(cls, one: Incumbents | None) -> dict[str, Json]:
        """See Capability."""
        return {} if one is None else {cls.name: [one.answered, one.billed_count, one.spend_usd]}

    def restore(self, head: Mapping[str, Json], piece: Callable[[str], bytes]) -> None:
        """See Capability."""
        if self.name in head:
            found = converted(head[self.name], tuple[int, int, float], "head: incumbent")
            self.answered, self.billed_count, self.spend_usd = found

    def faults(self) -> Iterator[str]:
        """See Capability."""
        if not (self.answered >= 0 <= self.billed_count and isfinite(self.spend_usd)):
            yield "what the incumbent has answered"

    def standing(self, now: float) -> dict[str, object]:
        """See Capability."""
        return {
            "incumbent": {
                "routed_share": self.declared.routed,
                "answered": self.answered,
                "billed": self.billed_count,
                "spend_usd": self.spend_usd,
            }
        }
