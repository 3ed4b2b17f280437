"""A family as its owner knows it: the reports of its members, the estimates from them, and the
priors for each member.

A member's prior leaves out that member's own evidence. An estimate takes longer than an event may
take: `estimating` returns a copy that another thread fits, and `take` puts the copy in force.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field

import numpy as np
from msgspec import structs

from router_state.errors import WrongFamily
from router_state.families.family_brought import Brought
from router_state.families.family_estimating import Estimating
from router_state.families.family_fit import ROUNDS
from router_state.families.family_kin import Kin
from router_state.families.family_register import HEAD, MemberEntry, Register, shared
from router_state.families.family_reports import MemberPrior, Model, Report
from router_state.families.family_shared import Known, Shared
from router_state.families.family_sums import Sums, bytes_of, require_usable, sums_of
from router_state.families.sum_bytes import most_size
from router_state.kernel import GROWTH, MEMORY
from router_state.learning.guess import COSTS, REWARDS
from router_state.shared_numbers import bytes_of as packed
from router_state.shared_numbers import numbers_of

MOST_IN_FAMILY = 5_000
"""Most members of a family, as of a pool."""
YOUNG = 200
"""Rewards up to which a member gets each new estimate, and not only after its own reports."""
MOST_PRIOR_BYTES = 100_000
"""Most bytes of sums in one record to a member."""


@dataclass(slots=True, eq=False)
class FamilyOwner(Register):
    """One family.

    Attributes:
        sides: the regressions of rewards and of bills; shared: numbers of capabilities.
        waiting: members to which a prior is to be sent, in order.
        counted: whether the sums of `sides` include all reports.
        due_at: number of observations at which the next estimate is due; reports: number of sums
            that were replaced so far.
    """

    sides: tuple[Kin, Kin] = (Kin(0, REWARDS), Kin(0, COSTS))
    waiting: dict[str, None] = field(default_factory=dict)
    counted: bool = True
    due_at: float = 0.0
    rounds: int = ROUNDS
    reports: int = 0
    shared: Shared = field(default_factory=Shared)

    # Reports of members.

    def take_report(self, report: Report) -> None:
        """Take in a report; one that is older than what is known changes nothing.

        Raises:
            WrongFamily: the member has other contexts than the family, or the family is full.
            UnusablePrior: no observations can have these sums.
        """
        known = self.members.get(report.member)
        if known is not None and (report.born, *report.seen) < (known.born, *known.seen):
            return
        if report.left:
            self._forget(report.member)
            return
        self._admit(report, known)
        for model in report.models.values():
            for data in filter(None, model.sides):
                require_usable(sums_of(data, self.d))
            for data in model.shared.values():
                numbers_of(data)
        entry = known
        if entry is None or entry.born != report.born:
            self._forget(report.member)
            entry = MemberEntry(report.born)
        if entry.gives and not report.gives:
            self._drop_sums(report.member, entry)
        self.members[report.member] = structs.replace(
            entry,
            n=max(entry.n, report.n),
            gives=report.gives,
            takes=report.takes,
            seen=report.seen,
            noise=report.noise,
            names=entry.names if report.names is None else report.names,
        )
        self.changed.add(report.member)
        if report.gives:
            for name, model in report.models.items():
                self._replace_sums(report.member, name, model)
        if report.takes:
            self.waiting[report.member] = None

    def _admit(self, report: Report, known: MemberEntry | None) -> None:
        self._found(report.d, report.projection)
        self._require_same(report.d, report.projection, "the router")
        if known is None and len(self.members) >= MOST_IN_FAMILY:
            raise WrongFamily(
                f"family {self.name} has {MOST_IN_FAMILY:,} members, and no room for more"
            )

    def _found(self, d: int, projection: str) -> None:
        """Begin a family that nobody has joined yet."""
        if self.is_done:
            self.d, self.projection = d, projection
            self.sides = Kin(d, REWARDS), Kin(d, COSTS)
            self.changed.add(HEAD)

    def _require_same(self, d: int, projection: str, what: str) -> None:
        if (d, projection) != (self.d, self.projection):
            raise WrongFamily(
                f"family {self.name} has contexts of {self.d} dimensions of "
                f"{_described(self.projection)}; {what} has {d} of {_described(projection)}: "
                "declare another family"
            )

    def _replace_sums(self, member: str, name: str, model: Model) -> None:
        entry, before = self.members[member], self.sums(member, name)
        self.put(member, name, model)
        if name not in entry.models:
            entry.models = shared((*entry.models, name))
        self._count(member, name, before, model)

    def _count(self, member: str, name: str, before: Model | None, now: Model | None) -> None:
        """Replace a member's sums of a model in the family's sums."""
        self.reports += 1
        if not self.counted:
            return
        for side, kin in enumerate(self.sides):
            old, new = (
                {name: sums_of(one.sides[side], self.d)} if one and one.sides[side] else {}
                for one in (before, now)
            )
            kin.replace(member, old, new)

    def _drop_sums(self, member: str, entry: MemberEntry) -> None:
        for name in entry.models:
            self._count(member, name, self.sums(member, name), None)
            self.put(member, name, None)
        entry.models = ()

    def bring(self, brought: Brought) -> None:
        """Take in another family's sums, in place of sums that were brought before.

        Raises:
            WrongFamily: the other family has other contexts.
            UnusablePrior: no observations can have these sums.
        """
        for _, data in brought.sums():
            require_usable(sums_of(data, brought.d))
        for model in brought.models.values():
            for data in model.shared.values():
                Known.unpack(data)
        self._found(brought.d, brought.projection)
        self._require_same(brought.d, brought.projection, "what was brought")
        for name, model in brought.models.items():
            self.put("", name, model)
        self.brought = (*self.brought, *(one for one in brought.models if one not in self.brought))
        for side, kin in enumerate(self.sides):
            brought.count(kin, side)
        self.shared = Shared.of(self.reported()[2], self.aside, self.brought_numbers)
        self.changed.add(HEAD)
        self.waiting.update((name, None) for name, one in self.members.items() if one.takes)

    def _forget(self, member: str) -> None:
        """Forget a member and its sums."""
        if (entry := self.members.pop(member, None)) is None:
            return
        self._drop_sums(member, entry)
        self.changed.update((member, HEAD))
        self.waiting.pop(member, None)
        for kin in self.sides:
            kin.forget(member)
        self.shared.forget(member)

    # What follows.

    @property
    def is_due(self) -> bool:
        """Tell whether the scatter should be estimated again."""
        count = self.observations
        return count > 0 and count >= self.due_at

    def estimating(self) -> Estimating:
        """Return a copy of the estimates, to be fitted and given to `take`."""
        noise = []
        for side in (0, 1):
            noises = [one.noise[side] for one in self.members.values() if one.models]
            noise.append(float(np.median(noises)) if noises else 0.0)
        sides = deepcopy(self.sides)
        *sums, shared = self.reported()
        return Estimating(
            sides,
            (sums[0], sums[1]),
            shared,
            self.brought_numbers,
            (noise[0], noise[1]),
            self.reports,
            self.rounds,
        )

    def take(self, found: Estimating) -> None:
        """Put fitted estimates in force, and let young members wait for new priors."""
        self.sides, self.shared = found.sides, found.shared
        self.counted = self.reports == found.reports
        counted = min(self.observations, 2.0 * MEMORY * max(len(self.members), 1))
        self.due_at = self.observations + max(1.0, GROWTH * counted)
        self.changed.add(HEAD)
        for name, one in self.members.items():
            if one.takes and one.seen[0] <= YOUNG:
                self.waiting[name] = None

    def recount(self) -> None:
        """Compute the sums anew from all reports."""
        *sides, shared = self.reported()
        self.shared = Shared.of(shared, self.aside, self.brought_numbers)
        for kin, reported in zip(self.sides, sides, strict=True):
            kin.total = {}
            for member, of in reported.items():
                kin.replace(member, {}, {name: sums_of(data, self.d) for name, data in of.items()})
        self.counted = True

    @property
    def aside(self) -> set[str]:
        """Return the members that are left out."""
        return self.sides[0].aside | self.sides[1].aside

    # Priors for members.

    def priors_for(self, member: str) -> list[MemberPrior]:
        """Return the family's sums for a member, in several records if one would be too large."""
        if not self.counted:
            self.recount()
        entry = self.members[member]
        self.changed.add(member)
        self.waiting.pop(member, None)
        models = self._prior_for(member, entry)
        others = sum(1 for name, one in self.members.items() if one.models and name != member)
        aside = member in self.aside
        slope = float(min(kin.slope.get(member, 1.0) for kin in self.sides))
        noise = self.sides[0].reported_noise, self.sides[1].reported_noise
        names, found = list(models), []
        size = max(1, MOST_PRIOR_BYTES // (2 * most_size(self.d)))
        for at in range(0, len(names) or 1, size):
            entry.n += 1
            part = {name: models[name] for name in names[at : at + size]}
            more = at + size < len(names)
            one = MemberPrior(self.name, entry.born, entry.n, part, more, others, aside, slope)
            found.append(structs.replace(one, noise=noise))
        return found

    def _prior_for(self, member: str, entry: MemberEntry) -> dict[str, Model]:
        """Return the family's sums for a member, by model."""
        own_models = {name: self.sums(member, name) for name in entry.models}
        sides = []
        for side, kin in enumerate(self.sides):
            own = {
                name: sums_of(model.sides[side], self.d)
                for name, model in own_models.items()
                if model is not None and model.sides[side]
            }
            sides.append(_written(kin.prior_for(member, own, entry.names)))
        shared = self._shared_for(member, entry)
        return {
            name: Model(sides[0].get(name, b""), sides[1].get(name, b""), shared.get(name, {}))
            for name in entry.names
            if name in sides[0] or name in sides[1] or name in shared
        }

    def _shared_for(self, member: str, entry: MemberEntry) -> dict[str, dict[str, bytes]]:
        """Return the numbers that the others share, by model of the member."""
        numbers = {name: self.shared.numbers_for(member, name) for name in entry.names}
        return {
            name: {subject: packed(shared) for subject, shared in one.items()}
            for name, one in numbers.items()
            if one
        }


def _written(sums: dict[str, Sums]) -> dict[str, bytes]:
    """Return sums as bytes, of those that say anything."""
    return {name: bytes_of(one) for name, one in sums.items() if one.count > 1e-6}


def _described(projection: str) -> str:
    return f"projection {projection[:12]}" if projection else "the workers' own projection"
