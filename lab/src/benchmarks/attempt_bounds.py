"""Bound what plans of two calls can gain: by choices that know what all models earn.

    python -m benchmarks.attempt_bounds [--world NAME] [--verifier NAME]

Rewards and costs of all models, and of all plans of two calls, are fitted to the contexts of one
half of the prompts, by ridge regression. They choose on the other half, at the price of a dollar
that meets the budget there. No router learns as much: it sees the answers to one call of a prompt.
Intervals are over halves, drawn anew for each seed, so they say nothing of other prompts.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click
import numpy as np

from benchmarks.arena import Array
from benchmarks.attempt_worlds import VERIFIERS, Judged, passes, world
from benchmarks.attempts import WORLDS
from benchmarks.elsewhere.real import BESIDE, folder_of
from benchmarks.rows import half_width
from benchmarks.yardsticks import SPAN, within_budget

FEE = 0.01
"""Dollars of a verdict, in budgets."""


def bound(judged: Judged, kind: str, seed: int) -> tuple[float, float]:
    """Return the mean reward of choices among models, and among models and plans."""
    n = len(judged.contexts)
    half = np.random.default_rng([54, seed]).permutation(n) < n // 2
    alone, planned = [], []
    rewards, costs = with_plans(judged, kind, seed)
    K = len(judged.models)
    for fitted, other in ((half, ~half), (~half, half)):
        alone.append(_earned(judged, rewards[:, :K], costs[:, :K], fitted, other))
        planned.append(_earned(judged, rewards, costs, fitted, other))
    return float(np.mean(alone)), float(np.mean(planned))


def with_plans(judged: Judged, kind: str, seed: int) -> tuple[Array, Array]:
    """Return rewards and costs of all models and of all plans, shape (n, K²), as expected before
    the verdicts."""
    passed = passes(kind, judged.rewards >= judged.right, np.random.default_rng([52, seed]))
    rewards, costs = list(judged.rewards.T), list(judged.costs.T)
    K, fee = len(rewards), FEE * judged.budget
    for a in range(K):
        goes_on = 1.0 - passed[:, a]
        for b in range(K):
            if a != b:
                rewards.append(passed[:, a] * rewards[a] + goes_on * rewards[b])
                costs.append(costs[a] + fee + goes_on * costs[b])
    return np.array(rewards).T, np.array(costs).T


def _earned(
    judged: Judged, rewards: Array, costs: Array, fitted: np.ndarray, other: np.ndarray
) -> float:
    """Return what options earn on the other half of the prompts."""
    X, Z = judged.contexts[fitted], judged.contexts[other]
    weights = np.linalg.solve(X.T @ X + np.eye(X.shape[1]), X.T)
    means = costs[fitted].mean(0)
    expected = np.clip(Z @ (weights @ costs[fitted]), means / SPAN, means * SPAN)
    scores = Z @ (weights @ rewards[fitted])
    won = within_budget(scores, expected, costs[other], judged.budget)
    return float(rewards[other][np.arange(len(Z)), won].mean())


@click.command()
@click.option("--seeds", default=20, show_default=True)
@click.option("--world", "worlds", multiple=True, type=click.Choice(WORLDS))
@click.option("--verifier", "kinds", multiple=True, type=click.Choice(VERIFIERS[:-2]))
@click.option("--data", type=click.Path(path_type=Path), help="Folder with more data.")
def main(*, seeds: int, worlds: Sequence[str], kinds: Sequence[str], data: Path | None) -> None:
    """Print what models earn, and what models and plans do, where all of them are known."""
    folder = folder_of(data)
    click.echo("| world | verifier | models | with plans | gain |\n" + "| --- " * 5 + "|")
    for name in worlds or WORLDS:
        if folder is None and name in ("eleven", "nine"):
            continue
        for kind in kinds or ("good", "coin", "difficulty alone", "perfect"):
            found = [
                bound(world(name, folder or BESIDE, seed), kind, seed) for seed in range(seeds)
            ]
            click.echo(row(name, kind, found))


def row(name: str, kind: str, found: Sequence[tuple[float, float]]) -> str:
    """Return a row of the table."""
    alone, planned = np.array(found).T
    gains = (100.0 * (planned - alone)).tolist()
    gain = f"{np.mean(gains):+.2f} ± {half_width(gains):.2f}"
    return f"| {name} | {kind} | {alone.mean():.3f} | {planned.mean():.3f} | {gain} |"


if __name__ == "__main__":
    main()
