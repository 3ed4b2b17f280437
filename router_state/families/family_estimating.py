"""Estimate a family in another thread: an estimate takes longer than an event may take."""

from __future__ import annotations

from dataclasses import dataclass, field

from router_state.families.family_fit import ROUNDS, fit
from router_state.families.family_kin import Kin
from router_state.families.family_register import MemberNumbers, MemberSums
from router_state.families.family_shared import Shared
from router_state.families.family_sums import sums_of
from router_state.shared_numbers import Packed

FIRST_ROUNDS = 4 * ROUNDS
"""Steps of an estimate that begins from nothing and is the only one."""


@dataclass(slots=True, eq=False)
class Estimating:
    """A copy of a family's estimates, which another thread improves.

    Attributes:
        sides: estimates from rewards and from bills.
        reported: sums that members had reported when the copy was made, of rewards and of bills.
        numbers: numbers of capabilities that members had shared by then.
        brought: the same of another family, see `family_shared.Known`.
        noise: σ² of rewards and of bills.
        shared: the family's estimate from `numbers` and `brought`.
        reports: the owner's counter `reports` when the copy was made.
    """

    sides: tuple[Kin, Kin]
    reported: tuple[MemberSums, MemberSums]
    numbers: MemberNumbers
    brought: dict[str, Packed]
    noise: tuple[float, float]
    reports: int
    rounds: int
    shared: Shared = field(default_factory=Shared)

    def run(self) -> None:
        """Fit the estimates to the reports, in some 10 ms for 50 members with 3 models each."""
        for kin, reported, noise in zip(self.sides, self.reported, self.noise, strict=True):
            sums = {
                member: {model: sums_of(data, kin.d) for model, data in of.items()}
                for member, of in reported.items()
            }
            fit(kin, sums, noise=noise or kin.noise, rounds=self.rounds)
        aside = self.sides[0].aside | self.sides[1].aside
        self.shared = Shared.of(self.numbers, aside, self.brought)
