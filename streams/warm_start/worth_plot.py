"""A picture of what priors are worth."""

from __future__ import annotations

from pathlib import Path

from matplotlib.axes import Axes

from streams.drawing.figure import entitle, figure, save_png
from streams.drawing.inks import LINES, QUIET, RULE
from streams.warm_start.worth import Worth


def draw(worth: Worth, path: Path) -> None:
    """Draw what a budget buys, what a prediction takes off each model's spread, and on how many
    prompts each is the best.
    """
    made, grid = figure(1, 3, width=5.4, height=max(4.2, 0.35 * len(worth.models)))
    frontier, errors, best = grid[0]
    _frontier(frontier, worth)
    _errors(errors, worth)
    _best(best, worth)
    save_png(made, path)


def _frontier(axes: Axes, worth: Worth) -> None:
    entitle(axes, "what a budget buys")
    axes.set(xlabel="budget, $ per request", ylabel="mean reward")
    for one in worth.models:
        if one.mean_reward is not None and one.mean_cost_usd:
            at = one.mean_cost_usd, one.mean_reward
            axes.plot(*at, "o", color=QUIET)
            axes.annotate(
                *(_short(one.model), at),
                xytext=(0, 7),
                textcoords="offset points",
                fontsize=9,
                ha="center",
            )
    if worth.frontier:
        budgets = [bought.budget_usd for bought in worth.frontier]
        mix = [bought.mix for bought in worth.frontier]
        routed = [bought.routed for bought in worth.frontier]
        axes.plot(budgets, mix, "--", color=LINES[8], label="best fixed mix")
        axes.plot(budgets, routed, "-", color=LINES[0], label="routed by these priors")
        axes.legend(loc="lower right")
        axes.set_xscale("log")
    axes.margins(x=0.15, y=0.12)


def _errors(axes: Axes, worth: Worth) -> None:
    entitle(axes, "how well rewards are predicted")
    axes.set(xlabel="held-out error of the reward")
    rewarded = [
        (k, one.reward_spread, one.reward_error)
        for k, one in enumerate(worth.models)
        if one.reward_error is not None and one.reward_spread is not None
    ]
    places, alone, predicted = [list(part) for part in zip(*rewarded, strict=True)] or [[]] * 3
    axes.barh([k - 0.2 for k in places], alone, 0.4, color=RULE, label="its mean alone")
    axes.barh([k + 0.2 for k in places], predicted, 0.4, color=LINES[0], label="by prompt")
    _name(axes, worth)
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))


def _best(axes: Axes, worth: Worth) -> None:
    entitle(axes, "where each is expected to be the best")
    axes.set(xlabel="% of the prompts")
    shares = [100.0 * one.best_on for one in worth.models]
    axes.barh(range(len(shares)), shares, color=LINES[2])
    _name(axes, worth)


def _name(axes: Axes, worth: Worth) -> None:
    """Write the models' names beside their bars, the first on top."""
    axes.set_yticks(range(len(worth.models)), [_short(one.model) for one in worth.models])
    axes.invert_yaxis()
    axes.grid(axis="x")
    axes.grid(False, axis="y")


def _short(model: str) -> str:
    return model.rpartition("/")[2]
