"""Print how well prompts are predicted, which models differ where, and what a budget buys
(`pbstream fit --explain`).
"""

from __future__ import annotations

import json
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

import click

from doors.console.output import console, table
from drawing.numbers import number

if TYPE_CHECKING:
    from studies.warm_start.worth import Worth

MOST_PAIRS = 8
"""Rows of the table of pairs."""
SHOWN = 60  # characters of a prompt


def explain(worth: Worth, report: Path, *, rows: Path | None, quiet: bool) -> None:
    """Print the worth of priors, unless `quiet`. Write the page about it, and the budget at which
    routing gains most.

    Args:
        rows: the file that was fitted.
    """
    from studies.warm_start.worth import sentence
    from studies.warm_start.worth_page import render

    if not quiet:
        _models(worth)
        if worth.told_apart:
            _pairs(worth)
        _frontier(worth)
        click.echo(sentence(worth))
        if rows is not None and worth.most is not None:
            click.echo("What each policy would have done at that budget:")
            told = quote(str(rows)), quote(str(report.parent))
            click.echo(f"  pbstream replay --from {told[0]} --prior {told[1]}")
    report.write_text(render(worth), encoding="utf-8")
    click.echo(f"Report: {report}", err=quiet)
    _budget_file(report.parent).write_text(
        json.dumps({"usd_per_request": worth.most and worth.most.budget_usd}) + "\n",
        encoding="utf-8",
    )


def fitted_budget(folder: Path) -> float | None:
    """Return the budget at which routing gained most when a folder's priors were explained; None:
    not known.
    """
    try:
        found = json.loads(_budget_file(folder).read_text(encoding="utf-8"))["usd_per_request"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return found if isinstance(found, float) and found > 0.0 else None


def _budget_file(folder: Path) -> Path:
    return folder / "budget.json"


def _models(worth: Worth) -> None:
    from studies.warm_start.worth_page import best_on

    columns = (
        "model",
        "reward error",
        "its mean alone",
        "cost error, factor",
        "its mean alone",
        "best on",
        "for example",
    )
    shown = table(*columns, title="Prompts that were held out")
    for one in worth.models:
        examples = "\n".join(
            name[:SHOWN].replace("\n", " ") for name in one.examples if worth.told_apart
        )
        errors = (number(value) for value in (one.reward_error, one.reward_spread))
        factors = (number(value, 2) for value in (one.cost_error, one.cost_spread))
        shown.add_row(one.model, *errors, *factors, best_on(worth, one), examples or "–")
    console().print(shown)


def _pairs(worth: Worth) -> None:
    if not worth.pairs:
        return
    shown = table(
        "model",
        "is above",
        "by",
        "± by prompt",
        "the other is better on",
        title="Which models differ on which prompts",
    )
    for pair in worth.pairs[:MOST_PAIRS]:
        shown.add_row(
            pair.model,
            pair.other,
            f"{pair.difference:.3f}",
            f"{pair.spread:.3f}",
            f"{pair.other_better:.0%}",
        )
    console().print(shown)


def _frontier(worth: Worth) -> None:
    from studies.warm_start.frontier import gain_text
    from studies.warm_start.worth_page import OFF

    if not worth.frontier:
        return
    shown = table(
        "budget, $", "best fixed mix", "routed", "gain", "cost ÷ budget", title="What a budget buys"
    )
    for bought in worth.frontier:
        ratio = f"{bought.routed_cost_usd / bought.budget_usd:.2f}"
        rewards = f"{bought.mix:.3f}", f"{bought.routed:.3f}", gain_text(bought)
        shown.add_row(f"{bought.budget_usd:.2g}", *rewards, ratio)
    shown.caption = OFF
    console().print(shown)
