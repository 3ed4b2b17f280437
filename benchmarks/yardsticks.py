"""What can be computed instead of played: the best fixed mix of models, and the line that hindsight draws."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from benchmarks.arena import Array
from benchmarks.data import Benchmark
from router_state.cost_model import SPAN
from router_state.dual import solve_dual


def best_fixed_mix(rewards: Array, costs: Array, budget: float) -> tuple[float, float]:
    """Return cost ÷ budget and reward of the best mixture of models within the budget: what a coin can reach.

    Args:
        rewards, costs: shape (n, K); only their means matter.
    """
    points = sorted(zip(costs.mean(0).tolist(), rewards.mean(0).tolist(), strict=True))
    best = points[0] if points[0][0] > budget else max((p for p in points if p[0] <= budget), key=lambda p: p[1])
    for low in points:
        for high in points:
            if low[0] <= budget < high[0]:
                share = (budget - low[0]) / (high[0] - low[0])
                best = max(best, (budget, low[1] + share * (high[1] - low[1])), key=lambda p: p[1])
    return best[0] / budget, best[1]


def hindsight(warm: Benchmark, contexts: Array, rewards: Array, costs: Array, budget: float) -> tuple[float, float]:
    """Return cost ÷ budget and reward of `hindsight_choices`."""
    rows, won = np.arange(len(contexts)), hindsight_choices(warm, contexts, costs, budget)
    return float(costs[rows, won].mean()) / budget, float(rewards[rows, won].mean())


def hindsight_choices(warm: Benchmark, contexts: Array, costs: Array, budget: float) -> npt.NDArray[np.intp]:
    """Return the choices, shape (n,), of linear rewards and costs, fitted on the warm-up prompts with every model's outcome known,
    at the price of a dollar that meets the budget on the measured prompts in hindsight."""
    X = warm.contexts
    normal = X.T @ X + np.eye(X.shape[1])
    scores = contexts @ np.linalg.solve(normal, X.T @ warm.rewards)
    means = warm.costs.mean(0)
    expected = np.clip(contexts @ np.linalg.solve(normal, X.T @ warm.costs), means / SPAN, means * SPAN)
    return within_budget(scores, expected, costs, budget)


def within_budget(scores: Array, expected: Array, costs: Array, budget: float) -> npt.NDArray[np.intp]:
    """Return the choices, shape (n,), of scores less expected costs, at the price of a dollar that meets the budget in hindsight.

    Args:
        scores, expected, costs: shape (n, K): rewards and costs as predicted, costs as billed.
    """
    rows = np.arange(len(scores))

    def choices(per_dollar: float) -> npt.NDArray[np.intp]:
        won: npt.NDArray[np.intp] = (scores - per_dollar * expected).argmax(1)
        return won

    def over(per_dollar: float) -> bool:
        return float(costs[rows, choices(per_dollar)].mean()) > budget

    if not over(0.0):
        return choices(0.0)
    low, high = 0.0, 2.0 * (solve_dual(scores, expected, target=budget / 2.0) or 1e6)
    for _ in range(60):
        middle = (low + high) / 2.0
        low, high = (middle, high) if over(middle) else (low, middle)
    return choices(high)
