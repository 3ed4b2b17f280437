"""Replace, in a router's regressions, the sums that it took from its family by newer ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from router_state.arms import Arms
from router_state.changes import Journal
from router_state.config import Vector
from router_state.families.family_evidence import given_sums, own_sums
from router_state.families.family_sums import Sums, sums_of
from router_state.families.outside_sums import OutsideSums, Share, together
from router_state.kernel import SAMPLE_PIECE, Arm, Regression, SharedPrior, conclude_with

PIECE = "\x1ffamily:"
"""Prefix of the names of pieces; the model follows."""

SideSums = Sequence[Mapping[str, bytes]]
"""Sums of rewards and of bills, by model; empty: of none."""


class Exchange:
    """The sums in a router's regressions that are not its own evidence, and their replacement.

    Attributes:
        outside: these sums, by model; met: models that the router has had since it joined.
    """

    __slots__ = ("_arms", "_journal", "met", "outside")

    def __init__(self, arms: Arms, journal: Journal) -> None:
        self._arms, self._journal = arms, journal
        self.outside: dict[str, OutsideSums] = {}
        self.met: set[str] = set()

    @property
    def sides(self) -> list[tuple[SharedPrior, dict[str, Regression]]]:
        """Return the regressions of rewards and of bills by model, each under its shared prior."""
        arms = self._arms
        return [
            (arms.rewards, {arm.name: arm.rewards for arm in arms}),
            (arms.bills, {arm.name: arm.costs.regression for arm in arms if not arm.costs.free}),
        ]

    @property
    def clock(self) -> int:
        """Return the clock of the last reward of any model."""
        return max((arm.rewards.last_update for arm in self._arms), default=0)

    # What a router starts with.

    def meet(self, arm: Arm) -> None:
        """Note the sums with which a new model starts. An earlier model that became free loses its
        sums of bills.
        """
        if arm.name not in self.met:
            self.met.add(arm.name)
            given = [self._given(side, arm) for side in (0, 1)]
            if any(given):
                self._hold(arm.name, OutsideSums(given=given))
        elif arm.costs.free and (held := self.outside.get(arm.name)) is not None:
            self._hold(arm.name, OutsideSums((held.taken[0], None), (held.given[0], None)))

    def _given(self, side: int, arm: Arm) -> Share | None:
        arms = self._arms
        prior, one, detector = (
            (arms.bills, arm.costs.regression, arm.costs.detector)
            if side
            else (arms.rewards, arm.rewards, arm.detector)
        )
        # As in `knows_nothing` of the kernel: any observation has changed the bias's entry.
        if (side and arm.costs.free) or one.array[one.at - 1] == 1.0 / prior.bias_ridge:
            return None
        # Without a residual yet, all that a regression knows was given to it.
        if detector.count == 0 and (whole := given_sums(one, prior)).count > 0.5:
            return Share.given(whole, one)
        return None

    def _hold(self, name: str, held: OutsideSums) -> None:
        self.outside[name] = held
        self._journal.pieces.add(PIECE + name)

    # What a router has itself.

    def own(self, side: int, gamma: float) -> dict[str, Sums]:
        """Return the router's own evidence on each model. Evidence on rewards is discounted up to
        the router's clock, also for models that had no reward of late.

        Args:
            side: 0 for rewards, 1 for bills.
        """
        found, clock = {}, self.clock
        prior, ones = self.sides[side]
        for name, one in ones.items():
            held = self.outside.get(name)
            shares = () if held is None else (held.taken[side], held.given[side])
            left = 1.0 if side else one.left_at(clock, gamma) / one.decay
            found[name] = own_sums(one, prior, *shares).times(left)
        return found

    # What it takes over.

    def give_back(self, gamma: float) -> None:
        """Subtract the family's sums, as far as they are not forgotten yet."""
        self.replace([dict.fromkeys(self.outside, b"")] * 2, gamma)

    def replace(self, sums: SideSums, gamma: float) -> None:
        """Put new sums in place of earlier ones; models that are not named keep theirs."""
        found = [
            {name: self._exchanged(name, side, sums[side].get(name)) for name in ones}
            for side, (_, ones) in enumerate(self.sides)
        ]
        if all(one is None for side in found for one in side.values()):
            return
        clock = self.clock
        for arm in self._arms:
            if arm.suspicion is None:
                arm.rewards.forget(clock, gamma)
        self._take(found)
        for side, (prior, ones) in enumerate(self.sides):
            if any(change is not None for change in found[side].values()):
                added = [
                    None if (change := found[side][name]) is None else self._added(one, *change)
                    for name, one in ones.items()
                ]
                conclude_with(prior, list(ones.values()), added)
        self._arms.sample.left = 0
        self._journal.pieces.add(SAMPLE_PIECE)
        self._journal.jumped = True

    def _exchanged(
        self, name: str, side: int, data: bytes | None
    ) -> tuple[Share | None, bytes] | None:
        """Return the sums that are replaced, and by which; None: nothing changes."""
        held = self.outside.get(name)
        before = None if held is None else held.taken[side]
        return None if data is None or (before is None and not data) else (before, data)

    def _added(self, one: Regression, before: Share | None, data: bytes) -> Vector:
        """Return the sums to add to a regression, less the family's earlier sums."""
        found = sums_of(data, one.d) if data else Sums.none(one.d)
        net = found if before is None else found.less(before.left(one))
        return net.triangle()

    def _take(self, found: Sequence[Mapping[str, tuple[Share | None, bytes] | None]]) -> None:
        """Store the exchanged sums."""
        sides = [ones for _, ones in self.sides]
        for name in self._arms.names:
            changes = [side.get(name) for side in found]
            if changes == [None, None]:
                continue
            held = self.outside.get(name, OutsideSums())
            taken = held.taken
            for side, change in enumerate(changes):
                if change is not None:
                    data = change[1]
                    taken[side] = Share.taken(data, sides[side][name]) if data else None
            self._hold(name, OutsideSums(taken, held.given))

    # Its state.

    def without(self, model: str) -> None:
        """Forget a model."""
        self.met.discard(model)
        if self.outside.pop(model, None) is not None:
            self._journal.pieces.add(PIECE + model)

    def adopt_all(self) -> None:
        """Turn the family's sums into given ones, with which a new router starts."""
        sides = [ones for _, ones in self.sides]
        for name, held in list(self.outside.items()):
            given = held.given
            for side, share in enumerate(held.taken):
                if share is not None:
                    one = sides[side][name]
                    whole = together([share, given[side]], one)
                    given[side] = None if whole is None else Share.given(whole, one)
            if any(held.taken):
                self._hold(name, OutsideSums(given=given))

    @property
    def pieces(self) -> tuple[str, ...]:
        """Return the names of the pieces."""
        return tuple(PIECE + name for name in sorted(self.outside))

    def pack(self, piece: str) -> OutsideSums | None:
        """Return a piece."""
        return self.outside.get(piece.removeprefix(PIECE)) if piece.startswith(PIECE) else None

    def restore(self, piece: Callable[[str], bytes]) -> None:
        """Invert `pack`. Raises DamagedState."""
        self.outside = {}
        for arm in self._arms:
            self.met.add(arm.name)
            if body := piece(PIECE + arm.name):
                self.outside[arm.name] = OutsideSums.read(body, self._arms.d)

    @property
    def is_finite(self) -> bool:
        """Tell whether all counts are finite."""
        shares = [share for one in self.outside.values() for share in (*one.taken, *one.given)]
        return all(share is None or bool(np.isfinite(share.count)) for share in shares)
