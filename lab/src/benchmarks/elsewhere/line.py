"""Compute yardsticks of a world in hindsight: the best fixed mix, and cross-fitted linear rewards
and costs at the best price of a dollar.
"""

from __future__ import annotations

import numpy as np

from benchmarks.arena import Rows
from benchmarks.elsewhere.world import World
from benchmarks.yardsticks import within_budget
from studies.warm_start.lines import best_fixed_shares, held_out

MOST_ROWS = 12_000  # of a long world, the measured ones and as many before


def yardsticks(world: World) -> dict[str, dict[str, tuple[float, float]]]:
    """Return (cost ÷ budget, reward) of the best fixed mix and of the line, by phase; they know the
    phase's every outcome, or the mix those of the requests that it is chosen on.
    """
    found = {}
    for name, phase in world.phases.items():
        rows = np.arange(len(world))[phase]
        quality, costs = world.quality[rows], world.costs[rows]
        choices = _linear(world, rows)
        at = np.arange(len(rows))
        chosen_on = world.mixed_on.get(name, phase)
        shares = best_fixed_shares(world.quality[chosen_on], world.costs[chosen_on], world.budget)
        found[name] = {
            "best fixed mix": (
                float(costs.mean(0) @ shares) / world.budget,
                float(quality.mean(0) @ shares),
            ),
            "hindsight": (
                float(costs[at, choices].mean()) / world.budget,
                float(quality[at, choices].mean()),
            ),
        }
    return found


def _linear(world: World, rows: Rows) -> Rows:
    """Return the line's choices on these rows of a world, shape (len(rows),)."""
    first = max(0, rows[-1] + 1 - MOST_ROWS) if world.stationary else rows[0]
    fitted = np.arange(min(first, rows[0]), rows[-1] + 1)
    here = np.isin(fitted, rows)
    scale = np.maximum(world.costs[fitted].mean(0), 1e-12)
    rewards = held_out(world.contexts[fitted], world.rewards[fitted])[here]
    expected = held_out(world.contexts[fitted], world.costs[fitted] / scale)[here]
    return within_budget(
        rewards, np.maximum(expected, 0.05) * scale, world.costs[rows], world.budget
    )
