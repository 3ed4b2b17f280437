"""A picture of what priors are worth."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from streams.warm_start.worth import Worth


def draw(worth: Worth, path: Path) -> None:
    """Draw what a budget buys, what a prediction takes off each model's spread, and on how many
    prompts each is the best.

    Raises:
        ModuleNotFoundError: matplotlib is not installed.
    """
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, (frontier, errors, best) = plt.subplots(
        1, 3, figsize=(16, max(4.2, 0.35 * len(worth.models))), layout="constrained"
    )
    _frontier(frontier, worth)
    names = [_short(one.model) for one in worth.models]
    places = range(len(names))
    rewarded = [(k, one) for k, one in enumerate(worth.models) if one.reward_error is not None]
    errors.barh(
        [k - 0.2 for k, _ in rewarded],
        [one.reward_spread for _, one in rewarded],
        0.4,
        color="#cccccc",
        label="its mean alone",
    )
    errors.barh(
        [k + 0.2 for k, _ in rewarded],
        [one.reward_error for _, one in rewarded],
        0.4,
        color="#1f77b4",
        label="by prompt",
    )
    errors.set(
        yticks=places,
        yticklabels=names,
        xlabel="held-out error of the reward",
        title="how well rewards are predicted",
    )
    errors.invert_yaxis()
    errors.legend(fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    best.barh(places, [100.0 * one.best_on for one in worth.models], color="#2ca02c")
    best.set(
        yticks=places,
        yticklabels=names,
        xlabel="% of the prompts",
        title="where each is expected to be the best",
    )
    best.invert_yaxis()
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _frontier(axis: Any, worth: Worth) -> None:
    axis.set(title="what a budget buys", xlabel="budget, $ per request", ylabel="mean reward")
    for one in worth.models:
        if one.mean_reward is not None and one.mean_cost_usd:
            axis.plot(one.mean_cost_usd, one.mean_reward, "o", color="#7f7f7f")
            at = one.mean_cost_usd, one.mean_reward
            axis.annotate(
                _short(one.model),
                at,
                xytext=(0, 7),
                textcoords="offset points",
                fontsize=8,
                ha="center",
            )
    if worth.frontier:
        budgets = [bought.budget_usd for bought in worth.frontier]
        axis.plot(
            budgets,
            [bought.mix for bought in worth.frontier],
            "--",
            color="#8c564b",
            label="best fixed mix",
        )
        axis.plot(
            budgets,
            [bought.routed for bought in worth.frontier],
            "-",
            color="#1f77b4",
            label="routed by these priors",
        )
        axis.legend(fontsize=8, loc="lower right")
        axis.set_xscale("log")
    axis.margins(x=0.15, y=0.12)


def _short(model: str) -> str:
    return model.rpartition("/")[2]
