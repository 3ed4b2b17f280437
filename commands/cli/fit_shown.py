"""Print the result of `pbstream fit` and the commands to type next."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

import click

from doors.console.output import console, table

if TYPE_CHECKING:
    from streams.settings import Settings
    from studies.warm_start.fit import FitSummary
    from studies.warm_start.projecting import Chosen


def figures(summary: FitSummary, folder: Path, settings: Settings) -> dict[str, object]:
    """Return the result of a fit as JSON's types, which programs read."""
    return {
        "folder": str(folder.absolute()),
        "prompts": summary.prompts,
        "dimensions": summary.dimensions,
        "rewards": dict(summary.rewards),
        "mean_reward": dict(summary.mean_reward),
        "costs": dict(summary.costs),
        "mean_cost_usd": dict(summary.mean_cost_usd),
        **_projection(summary, settings),
    }


def _projection(summary: FitSummary, settings: Settings) -> dict[str, object]:
    from streams.encoder.encoder_choice import variables_of

    chosen = summary.chosen
    if chosen is None:
        return {"kept_variance": None}
    return {
        "projection": chosen.kind,
        "kept_variance": chosen.kept,
        "held_out_errors": {str(count): error for count, error in chosen.errors.items()},
        "settings": variables_of(settings),
    }


def show(summary: FitSummary, folder: Path, settings: Settings, *, from_history: bool) -> None:
    """Print the result of a fit and the commands to type next."""
    from streams.encoder.encoder_choice import variables_of

    columns = ("model", "judged prompts", "mean reward", "bills", "mean cost, $")
    shown = table(*columns, title=f"{summary.prompts:,} prompts, {summary.dimensions} dimensions")
    for model in dict.fromkeys((*summary.rewards, *summary.costs)):
        judged, billed = summary.rewards.get(model), summary.costs.get(model)
        rewards = (
            ("–", "–") if judged is None else (f"{judged:,}", f"{summary.mean_reward[model]:.3f}")
        )
        costs = (
            ("–", "–") if billed is None else (f"{billed:,}", f"{summary.mean_cost_usd[model]:.3g}")
        )
        shown.add_row(model, *rewards, *costs)
    console().print(shown)
    if summary.chosen is not None:
        click.echo(_told(summary.chosen))
        click.echo("Next:")
        variables = {**variables_of(settings), "PB_PRIORS_PATH": str(folder.resolve().parent)}
        told = " ".join(f"{name}={quote(value)}" for name, value in variables.items())
        click.echo(
            f"  export {told}   # where workers run: routers name {folder.resolve().name} in it as "
            "their projection"
        )
        click.echo("  pbstream worker")
    elif from_history:
        click.echo("For a router whose contexts are made as this one's were. Next:")
    click.echo(
        "  pbstream models add NAME --input-price USD --output-price USD --prior "
        f"{quote(str(folder))} --router NEW"
    )


def _told(chosen: Chosen) -> str:
    """Return a sentence about the chosen projection and the reason."""
    kept = f"keeps {chosen.kept:.0%} of the variance of prompts"
    count = chosen.projection.dimensions - 1
    shape = f"{count} directions, so that a context has {count + 1} numbers, the last of them 1"
    if chosen.kind == "pca":
        return f"The projection is principal components: {shape}; it {kept}."
    mine, *_ = chosen.errors.values()
    return (
        f"The projection is partial least squares: {shape}; it {kept}. So few predict held-out "
        f"rewards and costs best: {min(chosen.errors.values()):.0%} of their variance is left "
        f"unexplained, {mine:.0%} with {next(iter(chosen.errors))} principal components."
    )
