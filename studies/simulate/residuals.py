"""Compute the interval of a doubly robust estimate, from the residuals of every call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from router_state.config import Vector
from studies.simulate.moments import reach

HELD = 5.0
"""Cases that the weights of all of a policy's models count for in those of one."""


@dataclass(slots=True)
class Residuals:
    """Sums of a policy's weights w, and of residuals e of what history called.

    The doubly robust estimate of n cases is off by Σ(w − 1)e ÷ n, with the residuals of the
    policy's models. A term's mean square is (1/p − 1)e² and its mean cube (1/p² − 3/p + 2)e³. Few
    calls have a weight, and a prompt that is dear may be none of them. So e is taken from every
    call, whatever model history called, in the units of the policy's model there; the means of w²
    and w³ stand for 1/p and 1/p².

    Attributes:
        weights: Σ w⁰, w¹, w² and w³ by the policy's model.
        powers: Σ e² and e³ by the policy's model and history's.
    """

    weights: dict[str | None, Vector] = field(default_factory=dict)
    powers: dict[tuple[str | None, str], Vector] = field(default_factory=dict)

    def add(
        self, choices: Sequence[str | None], called: Sequence[str], weights: Vector, off: Vector
    ) -> None:
        """Add n cases: their models in the policy and in history, their weights and their
        residuals, each of shape (n,)."""
        pairs: dict[tuple[str | None, str], list[int]] = {}
        for at, pair in enumerate(zip(choices, called, strict=True)):
            pairs.setdefault(pair, []).append(at)
        for pair, rows in pairs.items():
            w, e = weights[rows], off[rows]
            before = self.weights.get(pair[0], np.zeros(4))
            self.weights[pair[0]] = before + (w ** np.arange(4.0)[:, None]).sum(axis=1)
            powers = np.array([e @ e, (e * e) @ e])
            self.powers[pair] = self.powers.get(pair, np.zeros(2)) + powers

    def half_width(self, units: Mapping[str, float]) -> float:
        """Return half of the 95 % interval of the mean.

        Args:
            units: the unit of each model's residuals. A residual of the called model is scaled to
                the unit of the policy's model. Terms of a model without a unit are left out.
        """
        if not self.weights:
            return 0.0
        total = np.sum(list(self.weights.values()), axis=0)
        n, squares, cubes = float(total[0]), 0.0, 0.0
        for (choice, called), powers in self.powers.items():
            # A model that is free says nothing of bills.
            if not units.get(called):
                continue
            ratio = units.get(choice or "", 0.0) / units[called]
            mine, (e2, e3) = self.weights[choice], powers.tolist()
            _, _, w2, w3 = ((mine + HELD * total / n) / (mine[0] + HELD)).tolist()
            squares += max(w2 - 1.0, 0.0) * e2 * ratio**2
            cubes += (w3 - 3.0 * w2 + 2.0) * e3 * ratio**3
        return reach(squares, cubes) / n
