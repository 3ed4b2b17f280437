"""The capability of a family: a router learns from the others of its family, and tells them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Protocol

import numpy as np
from msgspec import Struct, msgpack, to_builtins

from router_state.arms import Arms
from router_state.capability import Capability
from router_state.changes import Journal
from router_state.choice import Choice
from router_state.config import LIVE, RouterConfig, Vector
from router_state.errors import DamagedState, InvalidConfig, UnusablePrior
from router_state.events import OfCapability
from router_state.families.family_reports import Model, Report, Told
from router_state.families.family_sums import (
    LEAST_TOLD,
    Share,
    Sums,
    bytes_of,
    given_sums,
    own_sums,
    require_usable,
    sums_of,
)
from router_state.kernel import (
    GROWTH,
    MEMORY,
    SAMPLE_PIECE,
    Arm,
    Regression,
    SharedPrior,
    conclude_with,
)
from router_state.packing.framing import Json, Whole, converted
from router_state.since import Since

PIECE = "\x1ffamily:"
"""Prefix of the names of pieces; the model follows."""

LONG = 3.0 * MEMORY
"""Observations after which reports come no more seldom: a member that has learned for long needs
little from the others, and each report costs some milliseconds (benchmarks.family_cost).
"""


class SaidFamily(Protocol):
    """A family as it is declared."""

    name: str
    gives: bool
    takes: bool


class Said(Protocol):
    """A router's declaration."""

    @property
    def family(self) -> SaidFamily | None: ...
    @property
    def gamma(self) -> float | None: ...


class FamilyDeclared(Struct, frozen=True):
    """A membership as declared; `gamma`: what the router forgets by."""

    name: str
    gives: bool = True
    takes: bool = True
    gamma: float = LIVE.gamma

    def check(self, config: RouterConfig) -> None:
        """Raise InvalidConfig where a router can't be a member."""
        if config.profile != "live":
            raise InvalidConfig(
                f"a router of profile {config.profile!r} learns each model apart: a family needs "
                "profile live"
            )


class Held(Struct):
    """The sums of one model that are not the router's own: what it took from its family, and what
    its declaration gave. Each is of rewards and of bills.
    """

    taken: list[Share | None]
    given: list[Share | None]


class Standing(Struct):
    """The member's place in its family.

    Attributes:
        born: number of the membership; n: number of the last prior that was taken over.
        members, aside, slope, refused: as the family told.
    """

    born: Whole = -1
    n: Whole = 0
    members: Whole = 0
    aside: bool = False
    slope: float = 1.0
    refused: str = ""


class _Head(Struct):
    standing: Standing
    clocks: list[tuple[float, float, float]]


class Family(Capability):
    """The membership of a router in a family.

    Attributes:
        declared: the membership.
        standing: its place in the family.
        held: sums that are not the router's own, by model.
    """

    __slots__ = ("declared", "held", "known", "standing")
    name = "family"

    def __init__(self, arms: Arms, journal: Journal) -> None:
        super().__init__(arms, journal)
        self.declared, self.standing = FamilyDeclared(""), Standing()
        self.held: dict[str, Held] = {}
        self.known: set[str] = set()
        # What is left of a sum follows from these; without a family they are not kept.
        for arm in arms:
            _set_clock(arm, (0.0, 0.0, 0.0))

    @classmethod
    def read(cls, said: Said) -> FamilyDeclared | None:
        """See Capability."""
        family = said.family
        if family is None:
            return None
        gamma = LIVE.gamma if said.gamma is None else said.gamma
        return FamilyDeclared(family.name, family.gives, family.takes, gamma)

    @classmethod
    def document(cls, declared: FamilyDeclared) -> dict[str, object]:
        """See Capability."""
        if declared.gives and declared.takes:
            return {"family": declared.name}
        found = {"name": declared.name, "gives": declared.gives, "takes": declared.takes}
        return {"family": found}

    @classmethod
    def pack_declared(cls, declared: FamilyDeclared | None) -> Json | None:
        """See Capability."""
        if declared is None:
            return None
        return [declared.name, declared.gives, declared.takes, declared.gamma]

    @classmethod
    def unpack_declared(cls, kept: Json | None) -> FamilyDeclared | None:
        """See Capability."""
        if kept is None:
            return None
        return FamilyDeclared(*converted(kept, tuple[str, bool, bool, float], "family"))

    @classmethod
    def told(cls, kept: Json) -> dict[str, object]:
        """See Capability."""
        return {"family": {"requests": kept}}

    def declare(self, declared: FamilyDeclared, *, now: float) -> None:
        """See Capability. A router that leaves a family gives back what it took."""
        if declared.name != self.declared.name or not declared.takes:
            self._give_back()
        if declared.name != self.declared.name or self.standing.born < 0:
            self.standing = Standing(born=self.offset)
        self.standing.refused = ""
        self.declared = declared
        for arm in self.arms:
            if arm.name not in self.known:
                self._meet(arm)
            elif arm.costs.free and (held := self.held.get(arm.name)) is not None:
                # A model that became free has forgotten its bills.
                held.taken[1] = held.given[1] = None
                self._changed(arm.name)

    def _meet(self, arm: Arm) -> None:
        """Note what a model starts with, which is not the router's own evidence."""
        self.known.add(arm.name)
        given: list[Share | None] = [None, None]
        sides = (
            (self.arms.rewards, arm.rewards, arm.detector),
            (
                self.arms.bills,
                arm.costs.regression,
                arm.costs.detector,
            ),
        )
        for side, (prior, one, detector) in enumerate(sides):
            # As in `knows_nothing` of the kernel: any observation has changed the bias's entry.
            if (side == 1 and arm.costs.free) or one.array[one.at - 1] == 1.0 / prior.bias_ridge:
                continue
            # Without a residual yet, all that a regression knows was given to it.
            if detector.count == 0 and (whole := given_sums(one, prior)).count > 0.5:
                given[side] = Share.given(whole, one)
        if any(given):
            self.held[arm.name] = Held([None, None], given)
            self._changed(arm.name)

    def _changed(self, name: str) -> None:
        self.journal.pieces.add(PIECE + name)

    def _sides(self) -> list[tuple[SharedPrior, dict[str, Regression]]]:
        arms = self.arms
        return [
            (arms.rewards, {arm.name: arm.rewards for arm in arms}),
            (arms.bills, {arm.name: arm.costs.regression for arm in arms if not arm.costs.free}),
        ]

    # A decision.

    def instead(self, choice: Choice, chance_of: Callable[[int], float]) -> None:
        """See Capability: the choice stays, and its record says what came from the family."""
        arm = self.arms.all[choice.k]
        held = self.held.get(arm.name)
        if held is not None and (taken := held.taken[0]) is not None:
            choice.keep(self.name, int(10.0 * taken.requests(arm.rewards) + 0.5) / 10.0)

    # What the member tells.

    def is_due(self, seen: tuple[int, int]) -> bool:
        """Tell whether evidence has grown enough since a report of `seen` observations."""
        return any(
            now >= LEAST_TOLD and now >= before + max(1.0, GROWTH * min(before, LONG))
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
            self.standing.born,
            self.standing.n,
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
        found: list[dict[str, bytes]] = []
        clock = self._clock()
        for side, (prior, ones) in enumerate(self._sides()):
            own = {name: self._own(name, side, one, prior, clock) for name, one in ones.items()}
            found.append(_tellable(own))
        return {
            name: Model(found[0].get(name, b""), found[1].get(name, b""))
            for name in self.arms.names
            if name in found[0] or name in found[1]
        }

    def _own(self, name: str, side: int, one: Regression, prior: SharedPrior, clock: int) -> Sums:
        held = self.held.get(name)
        shares = () if held is None else (held.taken[side], held.given[side])
        own = own_sums(one, prior, *shares)
        # Evidence on rewards fades by the clock, whenever the model was last rewarded.
        left = one.left_at(clock, self.declared.gamma) / one.decay if side == 0 else 1.0
        return own.times(left)

    def _clock(self) -> int:
        return max((arm.rewards.last_update for arm in self.arms), default=0)

    # What it takes over.

    def applied(self, event: OfCapability, since: Since, *, now: float) -> bool:
        """See Capability. The event is what the family tells; one that is for another membership,
        or older than the last, changes nothing."""
        if not isinstance(event, Told) or event.family != self.declared.name:
            return False
        if event.born != self.standing.born or event.n <= self.standing.n:
            return False
        if self.declared.takes and not event.refused:
            self._take_over(event)
        parted = event.aside and not self.standing.aside
        self.standing = Standing(
            event.born, event.n, event.members, event.aside, event.slope, event.refused
        )
        if parted:
            evidence = {"family": event.family, "slope": event.slope, "members": event.members}
            self.journal.tell("family_parted", 1.0 - event.slope, evidence, now=now)
        if event.refused:
            evidence = {"family": event.family, "why": event.refused}
            self.journal.tell("family_refused", 1.0, evidence, now=now)
        self.journal.pieces.update(self.pieces or (SAMPLE_PIECE,))
        since.took_over(event.offset)
        return True

    def _take_over(self, event: Told) -> None:
        """Put what the others say of some models in place of what they said before."""
        told: list[dict[str, bytes]] = []
        for side in (0, 1):
            told.append({name: model.sides[side] for name, model in event.models.items()})
            for data in filter(None, told[side].values()):
                require_usable(sums_of(data, self.arms.d))
        self._replace(told)

    def _give_back(self) -> None:
        """Take away what is left of what the others said."""
        self._replace([dict.fromkeys(self.held, b"")] * 2)

    def _replace(self, told: list[dict[str, bytes]]) -> None:
        """Put these sums in place of earlier ones, by side and model; empty: of none."""
        found = [
            [self._exchange(name, side, told[side].get(name)) for name in ones]
            for side, (_, ones) in enumerate(self._sides())
        ]
        if all(one is None for side in found for one in side):
            return
        clock, gamma = self._clock(), self.declared.gamma
        for arm in self.arms:
            if arm.suspicion is None:
                arm.rewards.forget(clock, gamma)
        for side, (prior, ones) in enumerate(self._sides()):
            changes = found[side]
            if all(change is None for change in changes):
                continue
            added = []
            for (name, one), change in zip(ones.items(), changes, strict=True):
                added.append(None if change is None else self._added(name, side, one, *change))
            conclude_with(prior, list(ones.values()), added)
        self.arms.sample.left = 0
        self.journal.pieces.add(SAMPLE_PIECE)
        self.journal.jumped = True

    def _exchange(
        self, name: str, side: int, data: bytes | None
    ) -> tuple[Share | None, bytes] | None:
        """Return the sums that are replaced, and by which; None: nothing changes."""
        held = self.held.get(name)
        before = None if held is None else held.taken[side]
        return None if data is None or (before is None and not data) else (before, data)

    def _added(
        self, name: str, side: int, one: Regression, before: Share | None, data: bytes
    ) -> Vector:
        """Return what is to be added to a regression, the earlier sums taken away."""
        found = sums_of(data, one.d) if data else Sums.none(one.d)
        net = found if before is None else found.less(before.left(one))
        held = self.held.setdefault(name, Held([None, None], [None, None]))
        held.taken[side] = Share.taken(data, one) if data else None
        self._changed(name)
        return net.triangle()

    # Its state.

    def without(self, model: str) -> None:
        """See Capability."""
        self.known.discard(model)
        if self.held.pop(model, None) is not None:
            self._changed(model)

    def start_over(self) -> None:
        """See Capability. What the other router took from its family is given to this one, and is
        not told to a family."""
        self.standing = Standing()
        for side, (_, ones) in enumerate(self._sides()):
            for name, one in ones.items():
                if (held := self.held.get(name)) is not None and held.taken[side] is not None:
                    shares = [found for found in (held.taken[side], held.given[side]) if found]
                    held.given[side] = Share.given(_together(shares, one), one)
                    held.taken[side] = None
                    self._changed(name)

    def dropped(self) -> None:
        """See Capability."""
        self._give_back()
        super().dropped()

    @classmethod
    def head(cls, one: Family | None) -> dict[str, Json]:
        """See Capability."""
        if one is None:
            return {}
        clocks = [_clock_of(arm) for arm in one.arms]
        return {"family": {"standing": to_builtins(one.standing), "clocks": clocks}}

    @property
    def pieces(self) -> tuple[str, ...]:
        """See Capability."""
        return tuple(PIECE + name for name in sorted(self.held))

    def pack(self, piece: str) -> bytes | None:
        """See Capability."""
        name = piece.removeprefix(PIECE)
        held = self.held.get(name) if piece.startswith(PIECE) else None
        return None if held is None else msgpack.encode(held)

    def restore(self, head: Mapping[str, Json], piece: Callable[[str], bytes]) -> None:
        """See Capability."""
        kept = converted(head.get("family"), _Head, "family")
        arms = list(self.arms)
        if len(kept.clocks) != len(arms):
            raise DamagedState(f"family: clocks of {len(kept.clocks)} of {len(arms)} models")
        self.standing, self.held = kept.standing, {}
        for arm, clock in zip(arms, kept.clocks, strict=True):
            _set_clock(arm, clock)
            self.known.add(arm.name)
            if body := piece(PIECE + arm.name):
                self.held[arm.name] = self._held_of(body)

    def _held_of(self, body: bytes) -> Held:
        try:
            held = msgpack.decode(body, type=Held)
            for share in (*held.taken, *held.given):
                if share is not None:
                    share.sums(self.arms.d)
        except (ValueError, UnusablePrior) as error:
            raise DamagedState(f"family: {error}") from None
        if len(held.taken) != 2 or len(held.given) != 2:
            raise DamagedState("family: a model has two sides")
        return held

    def faults(self) -> Iterator[str]:
        """See Capability."""
        shares = [share for one in self.held.values() for share in (*one.taken, *one.given)]
        if not all(share is None or np.isfinite(share.count) for share in shares):
            yield "what a family told"

    def lambda_fields(self, now: float) -> dict[str, object]:
        """See Capability; `schemas.families` has its fields."""
        said, declared = self.standing, self.declared
        models = [
            {"model": arm.name, "requests": round(taken.requests(arm.rewards), 1)}
            for arm in self.arms
            if (held := self.held.get(arm.name)) is not None
            and (taken := held.taken[0]) is not None
        ]
        found = {
            "name": declared.name,
            "gives": declared.gives,
            "takes": declared.takes,
            "members": said.members,
            "taken": said.n,
            "aside": said.aside,
            "models": models,
        }
        return {"family": found | ({"refused": said.refused} if said.refused else {})}


def _together(shares: list[Share], one: Regression) -> Sums:
    """Return what is left of several sums in a regression."""
    left = [share.left(one) for share in shares]
    A = np.sum([sums.A for sums in left], axis=0)
    return Sums(A, np.sum([sums.b for sums in left], axis=0))


def _clock_of(arm: Arm) -> tuple[float, float, float]:
    """Return the numbers of a model that tell what is left of a sum, and that it does not keep."""
    bills = arm.costs.regression
    return arm.rewards.moved, bills.moved, bills.forgotten


def _set_clock(arm: Arm, clock: tuple[float, float, float]) -> None:
    bills = arm.costs.regression
    arm.rewards.moved, bills.moved, bills.forgotten = clock


def _tellable(own: Mapping[str, Sums]) -> dict[str, bytes]:
    """Return the sums that may leave a router: of each model those of at least `LEAST_TOLD`
    requests, else only its mean, at the mean context of all the router's requests. Empty where
    all models together have fewer.
    """
    count = sum(one.count for one in own.values())
    if count < LEAST_TOLD:
        return {}
    center = np.sum([one.A[-1] for one in own.values()], axis=0) / count
    found = {}
    for name, one in own.items():
        if one.count >= LEAST_TOLD:
            found[name] = bytes_of(one)
        elif one.count > 0.5:
            mean = Sums(one.count * np.outer(center, center), one.b[-1] * center)
            found[name] = bytes_of(mean)
    return found
