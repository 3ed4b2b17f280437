"""Measure how well a task can be learned in as few answers as the eleven models' tasks have:
Thompson sampling over levels alone, by who is told when the task begins.

uv run python -m benchmarks.elsewhere.short_task
"""

from __future__ import annotations

from pathlib import Path

import click
import numpy as np

from benchmarks.arena import Array
from benchmarks.elsewhere.real import BESIDE, ELEVEN_BUDGETS, eleven
from benchmarks.elsewhere.world import REWARDS_LATE
from benchmarks.report import print_figures, print_table

EXPECTED, DEVIATION = 0.5, 0.15
"""Prior of a model's level before the first reward: about what those of the eleven are."""
SHARES = (0.3, 0.6, 1.0)
"""Deviations that a draw takes; the best of them is shown."""


def regret(rewards: Array, *, share: float, seed: int) -> float:
    """Return by how much less than the best model the last third earns, by the levels of all
    answers.

    Args:
        rewards: shape (n, K), of the models that may be called.
        share: deviations that a draw takes.
    """
    rng = np.random.default_rng([21, seed])
    n, K = rewards.shape
    order, levels = rng.permutation(n), rewards.mean(0)
    noise = float(np.mean(rewards.var(0)))
    total, count = np.zeros(K), np.zeros(K)
    chosen = np.zeros(n, dtype=np.intp)
    for t in range(n):
        known = t - round(REWARDS_LATE)
        if known >= 0:
            total[chosen[known]] += rewards[order[known], chosen[known]]
            count[chosen[known]] += 1.0
        variance = 1.0 / (DEVIATION**-2 + count / noise)
        mean = variance * (EXPECTED * DEVIATION**-2 + total / noise)
        chosen[t] = (mean + share * np.sqrt(variance) * rng.standard_normal(K)).argmax()
    return float(levels.max() - levels[chosen[n - n // 3 :]].mean())


@click.command(help=__doc__)
@click.option("--data", type=click.Path(path_type=Path), default=BESIDE, show_default=True)
@click.option("--seeds", type=click.IntRange(min=1), default=50, show_default=True)
def main(data: Path, seeds: int) -> None:
    judged = eleven(data)
    sources = np.array(judged.sources)
    rows = []
    for task in np.unique(sources).tolist():
        rewards, costs = judged.rewards[sources == task], judged.costs[sources == task].mean(0)
        for budget in ELEVEN_BUDGETS:
            affordable = rewards[:, costs <= budget]
            least = min(
                float(np.mean([regret(affordable, share=share, seed=s) for s in range(seeds)]))
                for share in SHARES
            )
            rows.append(
                {
                    "task": task,
                    "prompts": len(rewards),
                    "budget": budget,
                    "models": affordable.shape[1],
                    "below_the_best": least,
                }
            )
    print_table(
        "Last thirds of tasks: reward below that of the best affordable model",
        tuple(rows[0]),
        [[f"{v:.4g}" if isinstance(v, float) else str(v) for v in row.values()] for row in rows],
    )
    print_figures("short task", {"most": max(row["below_the_best"] for row in rows)}, rows=rows)


if __name__ == "__main__":
    main()
