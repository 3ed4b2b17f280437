"""Write the page on the worth of priors."""

from __future__ import annotations

from importlib.metadata import version

from drawing.numbers import number
from drawing.page import Report, Table, page
from studies.warm_start.frontier import gain_text
from studies.warm_start.worth import ModelWorth, Worth, sentence

MOST_PAIRS = 40
"""Rows of the table of pairs."""
OFF = "±: 95 %, paired over prompts, for all budgets together"
"""Caption of the intervals of gains."""


def render(worth: Worth) -> str:
    """Return a page with the reward that each budget buys, the error of each model's predictions,
    and the pairs of models that differ by prompt.
    """
    return page(
        Report(
            title="What these priors are worth",
            answer=sentence(worth),
            notes=[
                f"Measured on prompts that were held out; {OFF}. Made by pbstream "
                f"{version('paretobandit-streams')}."
            ],
            pareto=_frontier(worth) if worth.frontier else None,
            tables=[_bought(worth), _models(worth), *([_pairs(worth)] if worth.told_apart else [])],
        )
    )


def best_on(worth: Worth, model: ModelWorth) -> str:
    """Return the share of prompts on which a model is the best, if more than chance."""
    return f"{model.best_on:.0%}" if worth.told_apart else "–"


def _frontier(worth: Worth) -> dict[str, object]:
    last = len(worth.frontier) - 1
    return {
        "line": [
            _place(one.budget_usd, one.routed, "routed by these priors" if at == last // 2 else "")
            for at, one in enumerate(worth.frontier)
        ],
        "mixes": [[one.budget_usd, one.mix] for one in worth.frontier],
        "models": [_place(one.mean_cost_usd, one.mean_reward, one.model) for one in worth.models],
    }


def _place(cost_usd: float | None, quality: float | None, name: str) -> dict[str, object]:
    return {"cost_usd": cost_usd, "quality": quality, "name": name}


def _bought(worth: Worth) -> Table:
    rows = [
        [
            *(f"{one.budget_usd:.2g}", f"{one.mix:.3f}", f"{one.routed:.3f}"),
            *(gain_text(one), f"{one.routed_cost_usd / one.budget_usd:.2f}"),
        ]
        for one in worth.frontier
    ]
    heads = ["Budget, $ per request", "Best fixed mix", "Routed", "Gain", "Cost ÷ budget"]
    return Table("Budget by budget", "Mean rewards", heads, rows)


def _models(worth: Worth) -> Table:
    rows = [
        [
            *(one.model, number(one.reward_error), number(one.reward_spread)),
            *(number(one.cost_error, 2), number(one.cost_spread, 2), best_on(worth, one)),
            ("; ".join(one.examples) if worth.told_apart else "") or "–",
        ]
        for one in worth.models
    ]
    heads = ["Model", "Reward error", "Its mean alone", "Cost error, factor", "Its mean alone"]
    return Table(
        "How well each model is predicted",
        "Root mean square errors, by prompt and of the model's mean alone",
        [*heads, "Best on", "For example"],
        rows,
        words=(0, 6),
    )


def _pairs(worth: Worth) -> Table:
    rows = [
        [
            *(one.model, one.other, f"{one.difference:.3f}", f"{one.spread:.3f}"),
            f"{one.other_better:.0%}",
        ]
        for one in worth.pairs[:MOST_PAIRS]
    ]
    left = len(worth.pairs) - len(rows)
    caption = "The other one is the better one on some prompts" + (
        f"; {left:,} more pairs are left out here" if left > 0 else ""
    )
    heads = ["Model", "Is above", "By", "± by prompt", "The other is better on"]
    return Table("Which models differ on which prompts", caption, heads, rows, words=(0, 1))
