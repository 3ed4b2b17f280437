"""The level of variants: what a model's other variants say of one of them.

θ_v = θ_m + δ_v, θ_m = θ_0 + γ_m: a variant's coefficients scatter around its model's, and these
around the shared ones. The variance of both together is that of a model in the shared prior, R⁻¹;
the part `within` of the variance is the variants' own. With G = R ÷ (1 − within) and
W = R ÷ within, the other variants say of θ_m, with their evidence A, b,

    J = Σ W − W(A + W)⁻¹W,   h = Σ W(A + W)⁻¹b                    (Lindley and Smith 1972),

and so of θ_v, with R·θ_0 as its prior, P = (W⁻¹ + (J + G)⁻¹)⁻¹ with mean (J + G)⁻¹(h + G·θ_0). What
that is beyond the prior is added to the variant's regression as evidence.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from router_state.families.family_evidence import own_sums
from router_state.families.family_sums import Sums
from router_state.families.outside_sums import Share
from router_state.kernel import Regression, SharedPrior, conclude_with

GROWTH = 0.16
"""Share by which evidence grows between two exchanges, as between two estimates."""


class Level:
    """The level of one kind of regressions, rewards or bills, of one router.

    Attributes:
        groups: names of the variants of each model, the model's own among them.
        within: part of the variance between models that is between variants of one.
    """

    def __init__(self, groups: Sequence[Sequence[str]], within: float) -> None:
        self.groups, self.within = groups, within
        self.taken: dict[str, Share] = {}
        self.due_at = 1.0

    def exchange(
        self, prior: SharedPrior, ones: Mapping[str, Regression], only: Collection[str] = ()
    ) -> bool:
        """Let variants take over what the others say, where evidence has grown.

        Args:
            only: those that take anything over; none: all.
        """
        if prior.seen < self.due_at:
            return False
        self.due_at = max(prior.seen * (1.0 + GROWTH), prior.seen + 1.0)
        named = [name for group in self.groups for name in group if name in ones]
        sums = {name: own_sums(ones[name], prior, self.taken.get(name)) for name in named}
        added: dict[str, Sums] = {}
        for group in self.groups:
            there = [name for name in group if name in ones]
            for name in [name for name in there if not only or name in only]:
                others = [sums[other] for other in there if other != name]
                found = self._told(prior, others)
                before = self.taken.get(name)
                added[name] = found if before is None else found.less(before.left(ones[name]))
                self.taken[name] = Share.given(found, ones[name])
        packed = [added[name].triangle() if name in added else None for name in ones]
        conclude_with(prior, list(ones.values()), packed)
        return True

    def _told(self, prior: SharedPrior, others: Sequence[Sums]) -> Sums:
        R, mean = prior.ridges, prior.mean
        if not others or self.within >= 1.0:
            return Sums.none(prior.d)
        W, G = R / self.within, R / (1.0 - self.within)
        J, h = np.diag(G), G * mean
        for one in others:
            V = np.linalg.inv(one.A + np.diag(W))
            J = J + np.diag(W) - W[:, None] * V * W
            h = h + W * (V @ one.b)
        C = np.linalg.inv(J)
        P = np.linalg.inv(np.diag(1.0 / W) + C)
        P = (P + P.T) / 2.0
        return Sums(P - np.diag(R), P @ (C @ h) - R * mean)
