"""What a world pays in hindsight: the best fixed mix, and cross-fitted linear rewards and costs at the best price of a dollar."""

from __future__ import annotations

import numpy as np

from benchmarks.arena import Array, Rows
from benchmarks.elsewhere.world import World
from benchmarks.yardsticks import best_fixed_mix, within_budget

FOLDS = 5
RIDGES = (1.0, 10.0, 100.0, 1e3, 1e4)
MOST_ROWS = 12_000  # of a long world, the measured ones and as many before


def cross_fitted(contexts: Array, outcomes: Array) -> Array:
    """Return linear predictions, shape (n, m), each from the four fifths that it is not in.

    The ridge is, for each outcome, the one with the least held-out error.

    Args:
        contexts: shape (n, d), last entry 1.0; it is not penalised.
        outcomes: shape (n, m).
    """
    n, m = outcomes.shape
    fold = np.random.default_rng(0).permutation(n) % FOLDS
    found = np.empty((len(RIDGES), n, m))
    for held in range(FOLDS):
        known, asked = fold != held, fold == held
        centre, mean = contexts[known, :-1].mean(0), outcomes[known].mean(0)
        X, Y = contexts[known, :-1] - centre, outcomes[known] - mean
        values, vectors = np.linalg.eigh(X.T @ X)
        target, Z = vectors.T @ (X.T @ Y), (contexts[asked, :-1] - centre) @ vectors
        for j, ridge in enumerate(RIDGES):
            found[j, asked] = mean + Z @ (target / (np.maximum(values, 0.0) + ridge)[:, None])
    best = ((found - outcomes) ** 2).mean(1).argmin(0)
    chosen: Array = np.stack([found[j, :, k] for k, j in enumerate(best)], axis=1)
    return chosen


def yardsticks(world: World) -> dict[str, dict[str, tuple[float, float]]]:
    """Return (cost ÷ budget, reward) of the best fixed mix and of the line, by phase; the line knows the phase's every outcome."""
    found = {}
    for name, phase in world.phases.items():
        rows = np.arange(len(world))[phase]
        quality, costs = world.quality[rows], world.costs[rows]
        choices = _linear(world, rows)
        at = np.arange(len(rows))
        found[name] = {
            "best fixed mix": best_fixed_mix(quality, costs, world.budget),
            "hindsight": (float(costs[at, choices].mean()) / world.budget, float(quality[at, choices].mean())),
        }
    return found


def _linear(world: World, rows: Rows) -> Rows:
    """Return the line's choices on these rows of a world, shape (len(rows),)."""
    first = max(0, rows[-1] + 1 - MOST_ROWS) if world.stationary else rows[0]
    fitted = np.arange(min(first, rows[0]), rows[-1] + 1)
    here = np.isin(fitted, rows)
    scale = np.maximum(world.costs[fitted].mean(0), 1e-12)
    rewards = cross_fitted(world.contexts[fitted], world.rewards[fitted])[here]
    expected = cross_fitted(world.contexts[fitted], world.costs[fitted] / scale)[here]
    return within_budget(rewards, np.maximum(expected, 0.05) * scale, world.costs[rows], world.budget)
