"""The dollar dual: the price of a dollar, in reward, at which the last contexts' winners meet the budget."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from router_state.arms import Arms
from router_state.config import Matrix, Vector
from router_state.window import BLOCK, PIECES, Window

EVERY = 8
LEAP = 20.0
HORIZON = 100.0
LEAST, MOST = 0.25, 2.0
CREDIT = 50.0
UNREACHABLE = 1e6
STEP, NEAR, FAR = 1.1, 1e-9, 1e12
PRECISION = 1e-12
MOST_TANGENTS = 100
"""Bounds the tangents of one solution; the most that 40,000 drawn windows of up to 64 arms took was 18."""


@dataclass(slots=True)
class DualPacer:
    """Paces spend by a penalty linear in expected dollars: λ_t·ê/B.

    Attributes:
        lambda_t: dual variable, dimensionless: the reward that one budget's worth of dollars must earn.
        debt_usd: Σ (charged − budget) over the decisions.
        target_usd: mean cost per request that λ_t was last solved for.
        stale: decisions since, with the next one; above `EVERY` it is solved anew.
        window: the contexts to solve over.
    """

    lambda_t: float
    debt_usd: float
    target_usd: float
    stale: int
    window: Window

    @classmethod
    def start(cls, d: int) -> DualPacer:
        """Return a pacer without a history."""
        return cls(0.0, 0.0, 0.0, EVERY, Window(d))

    def charge(self, usd: float, budget: float) -> None:
        """Add to the debt; λ_t answers what moves it by several budgets before the next decision."""
        self.debt_usd += usd
        if abs(usd) > LEAP * budget:
            self.stale = EVERY

    def prepare(self, arms: Arms, x: Vector, budget: float, limited_to: frozenset[str] | None) -> str:
        """Take the next request's context in and solve again if it is time; return the window piece that changed."""
        slot = self.window.push(x, limited_to)
        self.stale += 1
        if self.stale > EVERY or self.window.size < EVERY:
            self.solve(arms, budget)
        return PIECES[slot // BLOCK]

    def solve(self, arms: Arms, budget: float) -> None:
        """Find λ_t anew: the smallest at which the mean cost of the window's winners is within the target.

        The target is the budget, less what is owed and more what was saved, spread over some hundred requests. While the budget
        does not bind no credit is kept, so that a price that comes back is met at once.
        """
        self.stale = 1
        share = 1.0 - self.debt_usd / (HORIZON * budget)
        self.target_usd = budget * min(max(share, LEAST), MOST)
        scores, costs = self.window.candidates(arms)
        per_dollar = solve_dual(scores, costs, target=self.target_usd, start=self.lambda_t / budget)
        self.lambda_t = UNREACHABLE if per_dollar is None else min(per_dollar * budget, UNREACHABLE)
        floor = 0.0 if self.lambda_t == 0.0 else -CREDIT * budget
        self.debt_usd = max(self.debt_usd, floor)


def solve_dual(scores: Matrix, costs: Matrix, *, target: float, start: float = 0.0) -> float | None:
    """Return the smallest λ ≥ 0 at which the rows' winners (largest scores − λ·costs) cost at most `target` on average, or None.

    It is where Σ max(scores − λ·costs) + λ·n·target, convex and piecewise linear, has its minimum. Two tangents, one on either
    side, meet closer to it than where they touch (Kelley 1960), and at it once no piece is left between them: exact, O(nK) each.

    A tangent that comes again is one of the two, up to rounding: then no piece is left either.

    Args:
        scores, costs: shape (n, K), n ≥ 1, finite.
        target: mean cost per row.
        start: where to look first.
    """
    n, K = scores.shape
    rows, ones, values = np.arange(0, n * K, K), np.ones(n), np.empty((n, K))
    flat_scores, flat_costs = scores.ravel(), costs.ravel()
    allowed = target * n
    slack = PRECISION * abs(allowed)

    def tangent(price: float) -> tuple[float, float]:
        """Return the winners' total score, and what they cost beyond the target."""
        np.multiply(costs, -price, values)
        at = np.add(values, scores, values).argmax(1) if price < FAR else costs.argmin(1)
        at += rows
        return flat_scores[at].dot(ones).item(), flat_costs[at].dot(ones).item() - allowed

    low: tuple[float, float] | None = None
    high: tuple[float, float] | None = None
    price, step = min(start, FAR), STEP
    left = MOST_TANGENTS
    while low is None or high is None:
        left -= 1
        line = tangent(price)
        if line[1] > slack:
            if price >= FAR:
                return None
            low, price = line, price * step if price > NEAR else FAR
        else:
            if price <= 0.0:
                return 0.0
            high, price = line, price / step if price > NEAR else 0.0
        step = min(step**4, FAR)
    for _ in range(left):
        price = (low[0] - high[0]) / (low[1] - high[1])
        line = tangent(price)
        bound, scale = low[0] - price * low[1], max(abs(low[0]), abs(price * low[1]))
        if line in (low, high) or line[0] - price * line[1] <= bound + PRECISION * scale:
            break
        if line[1] > slack:
            low = line
        else:
            high = line
    return max(0.0, price)
