"""Good on anyone's traffic: without priors, with many models, other data, other bills, and while
the mix of prompts changes.

uv run python -m benchmarks.elsewhere [--quick] [--data FOLDER]
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path

import click

from benchmarks.data import EXTENDED_VARIABLE
from benchmarks.elsewhere.contenders import CONTENDERS
from benchmarks.elsewhere.drawn import REVEALED
from benchmarks.elsewhere.floors import verdicts
from benchmarks.elsewhere.made import ORDERS
from benchmarks.elsewhere.real import ELEVEN, ELEVEN_BUDGETS, HOME_BUDGETS, folder_of
from benchmarks.elsewhere.running import Job, run_all
from benchmarks.elsewhere.table import print_rows, print_verdicts, rows
from benchmarks.report import print_figures
from streams.encoder.sentence_encoder import Backend

PLACES = ("home", "home with priors", "eleven", "tasks", "winner", "drawn")


def jobs_of(
    *,
    quick: bool,
    seeds: int,
    worlds: int,
    policies: tuple[str, ...],
    folder: Path | None,
    first: int = 0,
) -> list[Job]:
    """Return what is played: every place with every budget, order and seed."""
    found: list[Job] = []
    numbers = range(first, first + seeds)
    for where, budget, seed in product(
        ("home", "home with priors"), HOME_BUDGETS[1:4:2] if quick else HOME_BUDGETS, numbers
    ):
        found.append(Job(where, seed, policies, budget))
    if folder is not None:
        for order, budget, seed in product(
            ORDERS, ELEVEN_BUDGETS[0:4:2] if quick else ELEVEN_BUDGETS, numbers
        ):
            found.append(Job("eleven", seed, policies, budget, order, folder))
    found += [Job("tasks", seed, policies, order=order) for order, seed in product(ORDERS, numbers)]
    found += [Job("winner", seed, policies) for seed in numbers]
    seconds = 1.0 if quick else 6.0
    found += [
        Job("drawn", number, policies, seconds=seconds) for number in range(first, first + worlds)
    ]
    return found


@click.command()
@click.option(
    "--quick", is_flag=True, help="Few seeds and worlds, about three minutes on one core."
)
@click.option(
    "--data",
    type=click.Path(path_type=Path),
    help="Folder with eleven_models.jsonl; default: PB_DATA or ../shared/data.",
)
@click.option(
    "--where", multiple=True, type=click.Choice(PLACES), help="Only these worlds; may be repeated."
)
@click.option(
    "--order", multiple=True, type=click.Choice(ORDERS), help="Only these orders of tasks."
)
@click.option(
    "--budget", multiple=True, type=float, help="Only these budgets, where they are given."
)
@click.option(
    "--policy",
    multiple=True,
    type=click.Choice(tuple(CONTENDERS)),
    help="Only these policies; default: all.",
)
@click.option(
    "--encoder",
    type=click.Choice(("static", "onnx")),
    help="What makes the contexts of real prompts, with its general projection; default: MiniLM "
    "with the paper's projection.",
)
@click.option(
    "--reveal",
    multiple=True,
    type=click.Choice(REVEALED),
    help="Of drawn worlds: rewards without noise, or the same costs for every prompt; may be "
    "repeated.",
)
@click.option("--seeds", type=click.IntRange(1), help="Default: 20, quick 2.")
@click.option(
    "--worlds", type=click.IntRange(1), help="How many are drawn; default: 300, quick 20."
)
@click.option("--first", type=click.IntRange(0), default=0, help="The first seed and drawn world.")
@click.option(
    "--seed",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="Of drawn worlds: another one draws other prompts, noise and delays for the same models.",
)
@click.option("--workers", type=click.IntRange(1), default=1, show_default=True, help="Processes.")
@click.option(
    "--keep",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Results as JSON lines; those there are not played again.",
)
@click.option(
    "--plots/--no-plots",
    "plotted",
    default=None,
    help="Draw lab/docs/elsewhere.png; default: after a whole run.",
)
def main(
    quick: bool,
    data: Path | None,
    where: Sequence[str],
    order: Sequence[str],
    budget: Sequence[float],
    policy: Sequence[str],
    encoder: Backend | None,
    reveal: Sequence[str],
    seeds: int | None,
    worlds: int | None,
    first: int,
    seed: int,
    workers: int,
    keep: Path | None,
    plotted: bool | None,
) -> None:
    """Compare policies in worlds that none of them was made on, and say which floors the shipped
    profile reaches.
    """
    started = time.monotonic()
    folder = folder_of(data)
    if folder is None:
        click.echo(
            f"{ELEVEN} is not there (--data, {EXTENDED_VARIABLE}): without the eleven models.",
            err=True,
        )
    names = tuple(policy) or tuple(CONTENDERS)
    jobs = jobs_of(
        quick=quick,
        seeds=seeds or (2 if quick else 20),
        worlds=worlds or (20 if quick else 300),
        policies=names,
        folder=folder,
        first=first,
    )
    jobs = [
        replace(job, revealed=tuple(reveal), again=seed)
        if job.where == "drawn"
        else replace(job, encoder=encoder)
        for job in jobs
        if _wanted(job, where, order, budget)
    ]
    if not jobs:
        raise click.UsageError("no world is like that")
    results = run_all(jobs, workers=workers, kept=keep)
    found = rows(results)
    print_rows(found)
    judged = [verdict for name in names[:1] for verdict in verdicts(results, name)]
    print_verdicts(judged, names[0])
    if plotted if plotted is not None else not (quick or where or policy):
        from benchmarks.elsewhere import plots

        plots.draw(found, results)
    reached = sum(verdict.reached for verdict in judged)
    figures = {"floors": len(judged), "reached": reached, "seconds": time.monotonic() - started}
    told = [
        {
            name: getattr(verdict, name)
            for name in ("world", "what", "value", "floor", "goal", "reached")
        }
        for verdict in judged
    ]
    print_figures("elsewhere", figures, rows=[*found, *told])


def _wanted(job: Job, where: Sequence[str], order: Sequence[str], budget: Sequence[float]) -> bool:
    return (
        (not where or job.where in where)
        and (not order or (job.order in order and job.where in ("eleven", "tasks")))
        and (not budget or job.budget in budget)
    )


if __name__ == "__main__":
    main()
