"""The capability of a family: a router learns from the other members, and reports its own sums."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from msgspec import Struct, to_builtins

from router_state import shared_numbers
from router_state.arms import Arms
from router_state.capability import Capability
from router_state.changes import Journal
from router_state.choice import Choice
from router_state.errors import DamagedState
from router_state.events import OfCapability
from router_state.families.family_declared import FamilyDeclared, OnWire
from router_state.families.family_evidence import shareable
from router_state.families.family_exchange import Exchange
from router_state.families.family_reports import MemberPrior, Model, Report
from router_state.families.family_sums import LEAST_REPORTED, require_usable, sums_of
from router_state.families.outside_sums import OutsideSums
from router_state.kernel import BELIEVED, GROWTH, MEMORY, SAMPLE_PIECE, Arm
from router_state.packing.framing import Json, Whole, converted
from router_state.since import Since

LONG = 3.0 * MEMORY
"""Observations after which reports become no rarer: a member that has learned for long needs little
from the others, and each report costs some milliseconds (benchmarks.family_cost).
"""


class MemberPlace(Struct):
    """The member's place in its family.

    Attributes:
        born: number of the membership; n: number of the last prior that was taken over.
        members, aside, slope, refused: as the family's last prior says.
    """

    born: Whole = -1
    n: Whole = 0
    members: Whole = 0
    aside: bool = False
    slope: float = 1.0
    refused: str = ""


class _Head(Struct):
    place: MemberPlace
    clocks: list[tuple[float, float, float]]


class Family(Capability):
    """The membership of a router in a family.

    Attributes:
        declared: the membership.
        place: its place in the family.
        exchange: the sums in the router's regressions that are not its own.
    """

    __slots__ = ("declared", "exchange", "place")
    name = "family"
    carries = True

    def __init__(self, arms: Arms, journal: Journal) -> None:
        super().__init__(arms, journal)
        self.declared, self.place = FamilyDeclared(""), MemberPlace()
        self.exchange = Exchange(arms, journal)
        # What is left of a sum follows from these; without a family they are not kept.
        for arm in arms:
            _set_clock(arm, (0.0, 0.0, 0.0))

    @classmethod
    def read(cls, wire: OnWire) -> FamilyDeclared | None:
        """See Capability."""
        return FamilyDeclared.read(wire)

    @classmethod
    def document(cls, declared: FamilyDeclared) -> dict[str, object]:
        """See Capability."""
        return declared.document

    @classmethod
    def pack_declared(cls, declared: FamilyDeclared | None) -> Json | None:
        """See Capability."""
        return None if declared is None else declared.pack()

    @classmethod
    def unpack_declared(cls, data: Json | None) -> FamilyDeclared | None:
        """See Capability."""
        return None if data is None else FamilyDeclared.unpack(data)

    @classmethod
    def route_fields(cls, data: Json) -> dict[str, object]:
        """See Capability."""
        return {"family": {"requests": data}}

    def declare(self, declared: FamilyDeclared, *, now: float) -> None:
        """See Capability. A router that leaves a family gives back what it took."""
        if declared.name != self.declared.name or not declared.takes:
            self.exchange.give_back(self.declared.gamma)
            shared_numbers.take(self.arms.sharing, None)
        if declared.name != self.declared.name or self.place.born < 0:
            self.place = MemberPlace(born=self.offset)
        self.place.refused = ""
        self.declared = declared
        for arm in self.arms:
            self.exchange.meet(arm)

    @property
    def outside_sums(self) -> Mapping[str, OutsideSums]:
        """Return the sums that are not the router's own, by model."""
        return self.exchange.outside

    # A decision.

    def instead(self, choice: Choice, chance_of: Callable[[int], float]) -> None:
        """See Capability: the choice stays, and its record says what came from the family."""
        arm = self.arms.all[choice.k]
        outside = self.exchange.outside.get(arm.name)
        if outside is not None and (requests := outside.requests(arm.rewards)) is not None:
            choice.keep(self.name, int(10.0 * requests + 0.5) / 10.0)

    # The member's report.

    def is_due(self, seen: tuple[int, int]) -> bool:
        """Tell whether evidence has grown enough since a report of `seen` observations."""
        return any(
            now >= LEAST_REPORTED and now >= before + max(1.0, GROWTH * min(before, LONG))
            for now, before in zip(self.seen, seen, strict=True)
        )

    @property
    def seen(self) -> tuple[int, int]:
        """Return the number of rewards and bills that were learned so far."""
        return self.arms.rewards.seen, self.arms.bills.seen

    def reported(self, member: str, projection: str, *, left: bool = False) -> Report:
        """Return the member's report."""
        return Report(
            self.declared.name,
            member,
            self.place.born,
            self.place.n,
            self.arms.d,
            projection,
            self.declared.gives,
            self.declared.takes,
            left,
            self.seen,
            (self.arms.rewards.noise, self.arms.bills.noise),
            self.arms.names,
            self._models() if self.declared.gives and not left else {},
        )

    def _models(self) -> dict[str, Model]:
        """Return the evidence of the router itself, without what may be read off single prompts."""
        rewards, bills = (
            shareable(self.exchange.own(side, self.declared.gamma)) for side in (0, 1)
        )
        shared = shared_numbers.packed(self.arms.sharing)
        return {
            name: Model(rewards.get(name, b""), bills.get(name, b""), shared.get(name, {}))
            for name in self.arms.names
            if name in rewards or name in bills or name in shared
        }

    # Sums that the member takes over from its family.

    def applied(self, event: OfCapability, since: Since, *, now: float) -> bool:
        """See Capability. The event holds the family's sums for this member. An event for another
        membership, or older than the last one, changes nothing."""
        if not isinstance(event, MemberPrior) or event.family != self.declared.name:
            return False
        if event.born != self.place.born or event.n <= self.place.n:
            return False
        if self.declared.takes and not event.refused:
            self._take_over(event)
        parted = event.aside and not self.place.aside
        self.place = MemberPlace(
            event.born, event.n, event.members, event.aside, event.slope, event.refused
        )
        if parted:
            evidence = {"family": event.family, "slope": event.slope, "members": event.members}
            self.journal.alert("family_parted", 1.0 - event.slope, evidence, now=now)
        if event.refused:
            evidence = {"family": event.family, "why": event.refused}
            self.journal.alert("family_refused", 1.0, evidence, now=now)
        self.journal.pieces.update(self.pieces or (SAMPLE_PIECE,))
        since.took_over(event.offset)
        return True

    def _take_over(self, event: MemberPrior) -> None:
        """Put the others' sums of some models in place of their earlier sums. Before the first own
        observation σ² is the family's: sums are in units of it. It is at most the first guess, as
        labels come late: until then, wider draws cost more than they find."""
        for prior, estimate in zip((self.arms.rewards, self.arms.bills), event.noise, strict=True):
            if estimate > 0.0 and not prior.seen:
                noise = min(estimate, prior.guess.noise)
                prior.noise, prior.fourth = noise, 3.0 * noise * noise
                prior.noise_count = BELIEVED
                self.journal.pieces.add(prior.name)
        sums: list[dict[str, bytes]] = []
        for side in (0, 1):
            sums.append({name: model.sides[side] for name, model in event.models.items()})
            for data in filter(None, sums[side].values()):
                require_usable(sums_of(data, self.arms.d))
        self.exchange.replace(sums, self.declared.gamma)
        shared = {name: model.shared for name, model in event.models.items()}
        shared_numbers.take(self.arms.sharing, shared)

    # Its state.

    def without(self, model: str) -> None:
        """See Capability."""
        self.exchange.without(model)

    def start_over(self) -> None:
        """See Capability. Sums that the exported router took from its family are given to the new
        router, and are reported to no family."""
        self.place = MemberPlace()
        self.exchange.adopt_all()

    def dropped(self) -> None:
        """See Capability."""
        self.exchange.give_back(self.declared.gamma)
        shared_numbers.take(self.arms.sharing, None)
        super().dropped()

    @classmethod
    def head(cls, one: Family | None) -> dict[str, Json]:
        """See Capability."""
        if one is None:
            return {}
        clocks = [_clock_of(arm) for arm in one.arms]
        return {"family": {"place": to_builtins(one.place), "clocks": clocks}}

    @property
    def pieces(self) -> tuple[str, ...]:
        """See Capability."""
        return self.exchange.pieces

    def pack(self, piece: str) -> OutsideSums | None:
        """See Capability."""
        return self.exchange.pack(piece)

    def restore(self, head: Mapping[str, Json], piece: Callable[[str], bytes]) -> None:
        """See Capability."""
        head_fields = converted(head.get("family"), _Head, "family")
        arms = list(self.arms)
        if len(head_fields.clocks) != len(arms):
            raise DamagedState(f"family: clocks of {len(head_fields.clocks)} of {len(arms)} models")
        self.place = head_fields.place
        for arm, clock in zip(arms, head_fields.clocks, strict=True):
            _set_clock(arm, clock)
        self.exchange.restore(piece)

    def faults(self) -> Iterator[str]:
        """See Capability."""
        if not self.exchange.is_finite:
            yield "the sums from a family"

    def lambda_fields(self, now: float) -> dict[str, object]:
        """See Capability; `schemas.families` has its fields."""
        place, declared = self.place, self.declared
        models = [
            {"model": arm.name, "requests": round(requests, 1)}
            for arm in self.arms
            if (outside := self.outside_sums.get(arm.name)) is not None
            and (requests := outside.requests(arm.rewards)) is not None
        ]
        found = {
            "name": declared.name,
            "gives": declared.gives,
            "takes": declared.takes,
            "members": place.members,
            "taken": place.n,
            "aside": place.aside,
            "models": models,
        }
        return {"family": found | ({"refused": place.refused} if place.refused else {})}


def _clock_of(arm: Arm) -> tuple[float, float, float]:
    """Return the numbers of a model that tell what is left of a sum, and that it does not keep."""
    bills = arm.costs.regression
    return arm.rewards.moved, bills.moved, bills.forgotten


def _set_clock(arm: Arm, clock: tuple[float, float, float]) -> None:
    bills = arm.costs.regression
    arm.rewards.moved, bills.moved, bills.forgotten = clock
