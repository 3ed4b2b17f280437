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
MIN_SAVING = 1e-15


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
        per_dollar = solve_dual(scores, costs, target=self.target_usd)
        self.lambda_t = UNREACHABLE if per_dollar is None else min(per_dollar * budget, UNREACHABLE)
        floor = 0.0 if self.lambda_t == 0.0 else -CREDIT * budget
        self.debt_usd = max(self.debt_usd, floor)


def solve_dual(scores: Matrix, costs: Matrix, *, target: float) -> float | None:
    """Return the smallest λ ≥ 0 at which the rows' winners (largest scores − λ·costs) cost at most `target` on average, or None.

    As λ grows a row's winner steps down the upper hull of its points (cost, score), each step at a λ of its own and with a saving
    of its own. The steps of all rows in order of λ, their savings summed up: exact, O(nK·hull + n·hull·log).

    Args:
        scores, costs: shape (n, K), n ≥ 1, finite.
        target: mean cost per row.
    """
    n, K = scores.shape
    rows = np.arange(0, n * K, K)
    flat_scores, flat_costs = scores.ravel(), costs.ravel()
    at = scores.argmax(1)
    at += rows
    cost = flat_costs[at]
    excess = np.add.reduce(cost).item() - target * n
    if excess <= 0.0:
        return 0.0
    score = flat_scores[at]
    prices, savings = [], []
    for _ in range(K - 1):
        saved = cost[:, None] - costs
        price = (score[:, None] - scores) / np.maximum(saved, MIN_SAVING)
        np.putmask(price, saved < MIN_SAVING, np.inf)
        best = price.argmin(1)
        best += rows
        step = price.ravel()[best]
        moves = step < np.inf
        if not np.count_nonzero(moves):
            break
        np.copyto(at, best, where=moves)
        cheaper = flat_costs[at]
        prices.append(step)
        savings.append(cost - cheaper)
        score, cost = flat_scores[at], cheaper
    if not prices:
        return None
    steps = np.concatenate(prices)
    order = steps.argsort(kind="stable")
    enough = np.concatenate(savings)[order].cumsum().searchsorted(excess * (1.0 - 1e-12))
    if enough >= len(order) or (found := float(steps[order[enough]])) == np.inf:
        return None
    return max(0.0, found)
