"""Compute yardsticks: the best fixed mix of models, and linear predictions in hindsight."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from benchmarks.arena import Array
from benchmarks.data import Benchmark
from studies.warm_start.lines import best_fixed_mix, within_budget

__all__ = ["best_fixed_mix", "hindsight", "hindsight_choices", "within_budget"]
# times a model's mean cost that a prompt is expected to cost at most, and the other way round
SPAN = 3.0


def hindsight(
    warm: Benchmark, contexts: Array, rewards: Array, costs: Array, budget: float
) -> tuple[float, float]:
    """Return cost ÷ budget and reward of `hindsight_choices`."""
    rows, won = np.arange(len(contexts)), hindsight_choices(warm, contexts, costs, budget)
    return float(costs[rows, won].mean()) / budget, float(rewards[rows, won].mean())


def hindsight_choices(
    warm: Benchmark, contexts: Array, costs: Array, budget: float
) -> npt.NDArray[np.intp]:
    """Return the choices, shape (n,), of linear rewards and costs, fitted on the warm-up prompts
    with every model's outcome known, at the price of a dollar that meets the budget on the measured
    prompts in hindsight.
    """
    X = warm.contexts
    normal = X.T @ X + np.eye(X.shape[1])
    scores = contexts @ np.linalg.solve(normal, X.T @ warm.rewards)
    means = warm.costs.mean(0)
    expected = np.clip(
        contexts @ np.linalg.solve(normal, X.T @ warm.costs), means / SPAN, means * SPAN
    )
    return within_budget(scores, expected, costs, budget)
