"""Compute the reward that budgets buy with these priors and with the best fixed mix, with
intervals.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from drawing.numbers import number
from ground.files.array_folder import Array
from studies.warm_start.gains import corrected, half_widths
from studies.warm_start.lines import best_fixed_shares, within_budget
from studies.warm_start.observations import Observations

POINTS = 15
"""Budgets of the curve, between the cheapest and the dearest model."""
LEAST_SHARE = 0.05  # of a model's mean cost that any prompt is expected to cost
ROUNDING = 1e-9
"""Largest difference of a mean reward between two equal sums."""


@dataclass(frozen=True, slots=True)
class Bought:
    """The reward that a budget in dollars per request buys: by the best fixed mix of models, and by
    routing with these priors.

    `off`: half of the 95 % interval of the gain, `routed` less `mix`; the intervals of all budgets
    hold together.
    """

    budget_usd: float
    mix: float
    routed: float
    routed_cost_usd: float
    off: float

    @property
    def gain(self) -> float:
        """Return what routing earns more than the best fixed mix."""
        return self.routed - self.mix


def gain_text(bought: Bought) -> str:
    """Return a gain with its interval, as text."""
    return f"{number(bought.gain, signed=True)} ± {number(bought.off)}"


def gains_of(
    observed: Observations, scores: Array, rewarded: list[int]
) -> tuple[tuple[Bought, ...], bool | None]:
    """Return what budgets buy, and whether choosing by prompt gains anything beyond chance."""
    if len(rewarded) < 2:
        return (), None
    found, differences = _frontier(observed, scores)
    # Without a budget as well, which is all that can be asked where bills are missing.
    rewards = corrected(observed.rewards, scores)[:, rewarded]
    won = scores[:, rewarded].argmax(1)
    best = int(rewards.mean(0).argmax())
    differences.append(rewards[np.arange(len(rewards)), won] - rewards[:, best])
    together = np.column_stack(differences)
    off = half_widths(together)
    frontier = [replace(one, off=float(width)) for one, width in zip(found, off, strict=False)]
    return tuple(frontier), bool((together.mean(0) > off + ROUNDING).any())


def _frontier(observed: Observations, scores: Array) -> tuple[list[Bought], list[Array]]:
    """Return what budgets from the cheapest model's cost to the dearest one's buy, where every
    model has rewards and bills; and by prompt what routing earns more than the best fixed mix.
    """
    if not (
        np.isfinite(observed.rewards).any(0).all() and np.isfinite(observed.costs).any(0).all()
    ):
        return [], []
    scale = np.maximum(np.nanmean(observed.costs, axis=0), 1e-12)
    # Scaled by each model's mean, so that one ridge suits all prices, and bounded away from 0,
    # where a line may be negative.
    expected = np.maximum(observed.held_out(observed.costs / scale), LEAST_SHARE) * scale
    rewards = corrected(observed.rewards, scores)
    costs = corrected(observed.costs, expected)
    means = costs.mean(0)
    if means.max() <= 0.0:
        return [], []
    # A free model would begin the curve at 0, which a logarithmic axis can't show.
    low = max(float(means.min()), 1e-4 * float(means.max()))
    at = np.arange(len(observed))
    found, differences = [], []
    for budget in np.geomspace(low, float(means.max()), POINTS).tolist():
        won = within_budget(scores, expected, costs, budget)
        shares = best_fixed_shares(rewards, costs, budget)
        routed, mix = rewards[at, won], rewards @ shares
        found.append(
            Bought(budget, float(mix.mean()), float(routed.mean()), float(costs[at, won].mean()), 0)
        )
        differences.append(routed - mix)
    return found, differences
