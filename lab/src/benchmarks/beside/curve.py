"""Measures of an entrant: reward over dollars, the area under it, and the regret."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.arena import Array, Rows

PER_DOLLAR = 0.1
"""Reward that a dollar is worth in CodeRouterBench's regret (arXiv:2606.22902)."""


@dataclass(frozen=True, slots=True)
class Point:
    """Mean reward and dollars of an entrant, over all measured requests and over their last half.

    Attributes:
        regret: Σ (the best model's value − the called one's), a value being reward − 0.1·dollars.
    """

    reward: float
    cost: float
    late_reward: float
    late_cost: float
    regret: float

    def at(self, *, late: bool) -> tuple[float, float]:
        """Return dollars and reward a request, of all or of the last half."""
        return (self.late_cost, self.late_reward) if late else (self.cost, self.reward)


def point(rewards: Array, costs: Array, chosen: Rows) -> Point:
    """Return what choices, shape (n,), earn and cost, of outcomes of shape (n, K)."""
    rows = np.arange(len(chosen))
    reward, cost, value = rewards[rows, chosen], costs[rows, chosen], rewards - PER_DOLLAR * costs
    half = slice(len(rows) // 2, None)
    return Point(
        float(reward.mean()),
        float(cost.mean()),
        float(reward[half].mean()),
        float(cost[half].mean()),
        float((value.max(1) - value[rows, chosen]).sum()),
    )


def hull(points: Sequence[tuple[float, float]]) -> tuple[Array, Array]:
    """Return dollars and rewards of the non-decreasing convex hull of points (dollars, reward).

    Mixing two settings by a coin reaches every point between them.
    """
    found: list[tuple[float, float]] = []
    for cost, reward in sorted(points, key=lambda p: (p[0], -p[1])):
        if found and reward <= found[-1][1]:
            continue
        while len(found) > 1 and _below(found[-2], found[-1], (cost, reward)):
            found.pop()
        found.append((cost, reward))
    dollars, rewards = np.array(found).T
    return dollars, rewards


def _below(a: tuple[float, float], b: tuple[float, float], c: tuple[float, float]) -> bool:
    return (b[1] - a[1]) * (c[0] - a[0]) <= (c[1] - a[1]) * (b[0] - a[0])


def reward_at(points: Sequence[tuple[float, float]], dollars: Array) -> Array:
    """Return the hull's reward at some dollars a request.

    Below the least dollars of all points it is lowered in proportion, as an entrant that can't
    spend less has nothing to offer there.
    """
    x, y = hull(points)
    if x[0] > 0.0:
        x, y = np.insert(x, 0, 0.0), np.insert(y, 0, 0.0)
    found: Array = np.interp(dollars, x, y)
    return found


def area(points: Sequence[tuple[float, float]], low: float, high: float) -> float:
    """Return RouterBench's AIQ: the mean reward of the hull between two dollars a request
    (arXiv:2403.12031)."""
    dollars = np.linspace(low, high, 512)
    return float(np.trapezoid(reward_at(points, dollars), dollars) / (high - low))
