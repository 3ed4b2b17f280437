"""A month's budget on traffic that is not flat: what is spent at its end, and what it earned,
against per-request pacing, an even split by the day with refusal, and hindsight.

uv run python -m benchmarks.periods [--quick] [--histories 200] [--side month] [--csv FILE]
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import click
import numpy as np

from benchmarks.periods.histories import EVENTS
from benchmarks.periods.measuring import one
from benchmarks.periods.playing import SIDES, Side
from benchmarks.periods.shapes import from_csv
from benchmarks.report import print_figures, print_table
from benchmarks.rows import Row

QUICK = 4
"""Histories of a quick run, of a quarter of the traffic."""


def verdict(rows: list[Row]) -> dict[str, float]:
    """Return the figures of all sides, over the histories in which hindsight spends the budget."""
    binding = {r["number"] for r in rows if r["side"] == "hindsight" and r["spent"] > 0.98}
    of = {
        side: [r for r in rows if r["side"] == side and r["number"] in binding]
        for side in {r["side"] for r in rows}
    }
    spent = np.array([r["spent"] for r in of["month"]])
    figures = {
        "histories": float(len(spent)),
        "share_within_0.98_and_1.005": float(((spent >= 0.98) & (spent <= 1.005)).mean()),
        "most_spent": float(spent.max()),
        "least_spent": float(spent.min()),
        "last_tenth": float(np.mean([r["last_tenth"] for r in of["month"]])),
    }
    for side, found in of.items():
        figures[f"reward_beyond_hindsight_{side.replace(' ', '_')}"] = float(
            np.mean([r["beyond"] for r in found])
        )
    return figures


def _table(rows: list[Row]) -> list[list[str]]:
    groups: dict[tuple[str, str], list[Row]] = {}
    for r in rows:
        for event in (r["event"], "all"):
            groups.setdefault((event, r["side"]), []).append(r)
    found = []
    for (event, side), members in sorted(groups.items()):
        spent = [r["spent"] for r in members]
        low, middle, high = np.quantile(spent, [0.025, 0.5, 0.975])
        beyond, last = (np.mean([r[name] for r in members]) for name in ("beyond", "last_tenth"))
        found.append(
            [
                event,
                side,
                str(len(members)),
                f"{low:.3f}",
                f"{middle:.3f}",
                f"{high:.3f}",
                f"{max(spent):.3f}",
                f"{beyond:+.4f}",
                f"{last:+.4f}",
                f"{np.mean([r['refused'] / r['requests'] for r in members]):.3f}",
            ]
        )
    return found


@click.command()
@click.option("--quick", is_flag=True, help="A smaller run, under 60 seconds.")
@click.option("--histories", default=200, show_default=True, help="How many are drawn.")
@click.option("--first", default=0, help="Number of the first one.")
@click.option("--step", default=1, help="Distance of their numbers.")
@click.option("--requests", default=5000, show_default=True, help="Of a usual month.")
@click.option("--side", "sides", multiple=True, type=click.Choice(SIDES), help="Only these.")
@click.option(
    "--csv",
    "path",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Traffic as rows of timestamp and value, instead of made-up weeks.",
)
@click.option("--processes", default=os.cpu_count(), show_default=True)
def run(
    quick: bool,
    histories: int,
    first: int,
    step: int,
    requests: int,
    sides: tuple[Side, ...],
    path: Path | None,
    processes: int,
) -> None:
    """Play drawn histories of a month."""
    numbers = range(first, first + step * (QUICK if quick else histories), step)
    shape = None if path is None else from_csv(path)
    each = partial(one, sides=sides or SIDES, requests=2000 if quick else requests, shape=shape)
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # before a worker imports numpy
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        rows = [r for found in pool.map(each, numbers) for r in found]
    heads = ("event", "side", "n", "2.5 %", "median", "97.5 %", "most", "reward − line")
    title = f"{len(numbers)} months, spend ÷ budget; events: {', '.join(EVENTS)}"
    print_table(title, (*heads, "last tenth", "refused"), _table(rows))
    figures: Mapping[str, float] = verdict(rows) if not sides or "month" in sides else {}
    print_figures("periods", figures, rows=rows)


if __name__ == "__main__":
    run()
