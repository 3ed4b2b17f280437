"""Solve for a floor of rewards, the dual turned around: the highest price of a dollar at which the
last prompts' winners still earn enough (arXiv:2302.01203).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from router_state.arms import Arms
from router_state.config import Matrix
from router_state.kernel import CLOSED, Window
from router_state.periods.spending import Spending

FLOOR_REQUESTS = 128.0
"""Requests over which the floor is to hold on average, the window's length."""
MOST_CORRECTED = 0.05
"""Largest reward by which the target may differ from the floor to make up for the last
requests.
"""
FLOOR_HALVINGS = 40
"""Halvings of the interval of the price's logarithm: the price is then known to one part in
10⁹.
"""
CHEAPEST, FREE = 1e6, 1e-6
"""Ends of the search for the price of a dollar, in rewards per mean cost: at the first the
cheapest arms win, at the second costs hardly count.
"""

LEAST_UNIT = 1e-290
"""Least mean cost in dollars that prices refer to, so that they stay finite."""


class Kept(NamedTuple):
    """Mean expected rewards of the last requests: of the chosen models, and of the best models."""

    reward: float
    best: float


class Met(NamedTuple):
    """The solution of a floor on the last prompts.

    Attributes:
        floor: reward to be met, without the correction for the last requests.
        reward: expected reward of the winners at the price found.
        usd: mean dollars of a request at that price.
    """

    floor: float
    reward: float
    usd: float


def means_of(window: Window, arms: Arms, scores: Matrix) -> Matrix:
    """Return expected rewards, shape (size, K), without the posterior sample. For a closed arm the
    entry of `scores` is returned.
    """
    means, _ = window.options(arms, arms.tokens.slots, drawn=False).arrays()
    return np.where(scores > -0.5 * CLOSED, means, scores)


def meet(spending: Spending, kept: Kept, scores: Matrix, means: Matrix, costs: Matrix) -> Met:
    """Return the cheapest way to meet the floor on these prompts.

    Args:
        scores: scores by which models are chosen, shape (n, K); means: expected rewards; costs:
            expected dollars.
    """
    if spending.min_of_best is None:
        assert spending.min_reward is not None
        floor = lately = spending.min_reward
    else:
        floor = spending.min_of_best * float(means.max(1).mean())
        lately = spending.min_of_best * kept.best
    behind = min(max(lately - kept.reward, -MOST_CORRECTED), MOST_CORRECTED)
    target = floor + (behind if kept.best else 0.0)
    rows = np.arange(len(scores))
    unit = max(float(costs.min(1).mean()) or float(costs.mean()) or 1.0, LEAST_UNIT)

    def at(price: float) -> tuple[float, float]:
        won = (scores - price / unit * costs).argmax(1)
        return float(means[rows, won].mean()), float(costs[rows, won].mean())

    low, high = FREE, CHEAPEST
    found = at(high)
    if found[0] >= target:
        return Met(floor, *found)
    found = at(0.0)
    for _ in range(FLOOR_HALVINGS):
        middle = math.sqrt(low * high)
        earned = at(middle)
        if earned[0] >= target:
            low, found = middle, earned
        else:
            high = middle
    return Met(floor, *found)
