"""The capability of incumbents: a share of the requests is answered as before the router came."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import isfinite
from typing import Literal, Protocol

from msgspec import Struct, structs, to_builtins

from router_state.arms import Arms
from router_state.billing import Billing
from router_state.capability import Capability
from router_state.changes import Journal
from router_state.choice import Choice
from router_state.config import Vector
from router_state.errors import DamagedState
from router_state.incumbents.assigning import REASON, ROUTER, Incumbent, model_at
from router_state.incumbents.ramp_guard import BACK, ON, Guard
from router_state.incumbents.ramp_sessions import SessionEvidence, Sums
from router_state.packing.framing import Json, converted
from router_state.plan import Taught
from router_state.record import RequestRecord

SESSIONS = "incumbent_sessions"
"""Name in the head of the sums over a ramp's sessions."""


class Assigned(Struct, frozen=True, array_like=True, omit_defaults=True):
    """The side that answered a request.

    Attributes:
        by: the side that answered, see `assigning`; routed: probability that the router answers.
        model, reason, propensity: what the router had chosen where it did not answer, why, and with
            which probability.
        then: the model that would have followed if the answer of `model` had not passed.
    """

    by: str
    routed: float
    model: str | None = None
    reason: str = ""
    propensity: float = 0.0
    then: str | None = None


class _Head(Struct, array_like=True):
    """The counts and dollars that the head keeps, and the guard of a ramp."""

    answered: int
    billed: int
    spend_usd: float
    guard: Guard | None


class OnWire(Protocol):
    """A router's declaration."""

    router_id: str
    incumbent: str | Mapping[str, float] | None
    mode: str | None
    share: float | None
    by: str | None
    holdout: float | None
    ramp: Sequence[float] | None
    margin: float | None
    budget_usd_per_request: float | None


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

    The budget of a request does not pay the incumbent's calls, whose cost says nothing about the
    router's choices. Budgets of a period, caps and the like count all dollars, whoever spends them.

    Attributes:
        declared: the declaration of the incumbent, with the share that is in force.
        ramp: the shares of the ramp; guard: the step of the ramp that the router is on; by_session:
            whether the present step draws sessions; sessions: the evidence of such a step.
        latest: time of the incumbent's last decision, for alerts alone; it is not stored.
        answered: requests that the incumbent has answered; billed: those of them with a bill.
        spend_usd: Σ of the bills of those requests.
    """

    __slots__ = (
        "answered",
        "billed_count",
        "by_session",
        "declared",
        "guard",
        "latest",
        "ramp",
        "sessions",
        "spend_usd",
    )
    name = "incumbent"
    declaration = Incumbent
    declared: Incumbent

    def __init__(self, arms: Arms, journal: Journal) -> None:
        super().__init__(arms, journal)
        self.ramp: tuple[float, ...] = ()
        self.latest, self.by_session = 0.0, False
        self.sessions = SessionEvidence(journal)
        self.start_over()

    @classmethod
    def read(cls, wire: OnWire) -> Incumbent | None:
        """See Capability."""
        if wire.incumbent is None:
            return None
        mix = {wire.incumbent: 1.0} if isinstance(wire.incumbent, str) else dict(wire.incumbent)
        return Incumbent(
            mix,
            wire.router_id,
            wire.mode == "observe",
            1.0 if wire.share is None else wire.share,
            wire.holdout or 0.0,
            wire.by == "session",
            tuple(wire.ramp or ()),
            wire.margin or 0.0,
            wire.budget_usd_per_request,
        )

    @classmethod
    def document(cls, declared: Incumbent) -> dict[str, object]:
        """See Capability."""
        (first, *others) = declared.mix
        share = (
            {"ramp": list(declared.ramp), "margin": declared.margin}
            if declared.ramp
            else {"share": declared.share}
        )
        return {
            "incumbent": declared.mix if others else first,
            "mode": "observe" if declared.observes else "route",
            "holdout": declared.holdout,
            "by": "session" if declared.by_session else "request",
            **share,
        }

    def declare(self, declared: Incumbent, *, now: float) -> None:
        """See Capability; a ramp that is declared again goes on."""
        if declared.ramp != self.ramp:
            self.guard, self.ramp = Guard(), declared.ramp
            self.sessions.clear()
        elif declared.by_session != self.by_session:
            # Evidence by request says nothing about sessions: the step begins anew.
            self.guard = Guard(self.guard.step)
            self.sessions.clear()
        self.by_session = declared.by_session
        self.declared = declared.at(self.guard.step)

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
        self.latest = record.decided_at
        self.answered += choice.unpaced

    def billed(self, billing: Billing) -> None:
        """See Capability. Bills of an incumbent of an earlier declaration count as well."""
        call = billing.record.call
        if call is not None and call.unpaced:
            self.billed_count += billing.first
            self.spend_usd += billing.cost_usd if billing.first else billing.difference_usd
        elif self.ramp:
            self.guard.bills += billing.first
            self.guard.spend_usd += billing.cost_usd if billing.first else billing.difference_usd

    def judged(self, record: RequestRecord, x: Vector, reward: float) -> Taught | None:
        """See Capability: on a ramp, labels show whether the share goes on or falls back."""
        if self.ramp and (kept := record.kept_by(self.name, Assigned)) is not None:
            self._weigh(record, kept, reward)
        return Taught(x, reward)

    def _weigh(self, record: RequestRecord, one: Assigned, reward: float) -> None:
        """Take a label in as evidence of a ramp's step."""
        declared, guard = self.declared, self.guard
        # What was drawn for nobody compares nothing.
        if not 0.0 < one.routed < 1.0:
            return
        routed = one.by == ROUTER
        term = guard.judged(reward, routed=routed, share=one.routed)
        if declared.by_session:
            session = None if record.call is None else record.call.session_id
            self.sessions.judged(session, term, routed=routed, at=record.decided_at)
        found = guard.leads_to(self._interval(), declared.margin, declared.budget_usd)
        now, top = max(self.latest, record.decided_at), len(self.ramp) - 1
        if found == BACK and guard.step >= 0:
            self._step(guard.step - 1, "fell_back", now=now)
        elif found == ON and guard.step < top:
            self._step(guard.step + 1, "ramped", now=now)

    def _interval(self) -> tuple[float, float] | None:
        """Return the interval of the difference; None: it is too early."""
        guard = self.guard
        if not self.declared.by_session:
            return guard.interval()
        return self.sessions.interval(guard.total, guard.incumbent + guard.router)

    def _step(self, step: int, kind: str, *, now: float) -> None:
        """Put the share of another step in force, with evidence of its own."""
        before, guard = self.declared, self.guard
        low, high = self._interval() or (0.0, 0.0)
        sums = self.sessions.sums
        self.guard = Guard(step)
        self.sessions.clear()
        self.declared = before.at(step)
        evidence = {
            "share_before": before.share,
            "share": self.declared.share,
            "difference_low": low,
            "difference_high": high,
            "margin": before.margin,
            "labels_router": guard.router,
            "labels_incumbent": guard.incumbent,
        }
        if before.by_session:
            evidence |= {"sessions_router": sums.router, "sessions_incumbent": sums.incumbent}
        direction: Literal["up", "down"] = "up" if kind == "ramped" else "down"
        self.journal.alert(kind, self.declared.share, evidence, now=now, direction=direction)

    @classmethod
    def route_fields(cls, kept: Json) -> dict[str, object]:
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
        self.guard = Guard()
        self.sessions.clear()

    @classmethod
    def head(cls, one: Incumbents | None) -> dict[str, Json]:
        """See Capability."""
        if one is None:
            return {}
        guard: Json = to_builtins(one.guard) if one.ramp else None
        found: dict[str, Json] = {cls.name: [one.answered, one.billed_count, one.spend_usd, guard]}
        if one.sessions.sums != Sums():
            found[SESSIONS] = to_builtins(one.sessions.sums)
        return found

    @property
    def pieces(self) -> tuple[str, ...]:
        """See Capability."""
        return self.sessions.known.pieces

    def pack(self, piece: str) -> bytes | None:
        """See Capability."""
        return self.sessions.known.pack(piece)

    def restore(self, head: Mapping[str, Json], piece: Callable[[str], bytes]) -> None:
        """See Capability."""
        if self.name in head:
            found = converted(head[self.name], _Head, "head: incumbent")
            self.answered, self.billed_count = found.answered, found.billed
            self.spend_usd, guard = found.spend_usd, found.guard
            if guard is not None:
                if not -1 <= guard.step < max(len(self.ramp), 1):
                    raise DamagedState("head: the incumbent's ramp has no such step")
                self.guard, self.declared = guard, self.declared.at(guard.step)
        if SESSIONS in head:
            self.sessions.restore(converted(head[SESSIONS], Sums, "head: ramp's sessions"), piece)

    def faults(self) -> Iterator[str]:
        """See Capability."""
        sound = self.answered >= 0 <= self.billed_count and isfinite(self.spend_usd)
        if not (sound and self.guard.is_sound() and self.sessions.is_sound()):
            yield "what the incumbent has answered"

    def lambda_fields(self, now: float) -> dict[str, object]:
        """See Capability."""
        return {
            "incumbent": {
                "routed_share": self.declared.routed,
                "answered": self.answered,
                "billed": self.billed_count,
                "spend_usd": self.spend_usd,
            }
        }
