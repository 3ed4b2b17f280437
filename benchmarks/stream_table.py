"""Print several runs of `benchmarks.stream` as the table of lab/docs/performance.md: each run, the
spread of all, floor and goal. Bold figures miss their floor.

    uv run python -m benchmarks.stream --quick | tail -n 1 >> runs.jsonl
    uv run python -m benchmarks.stream_table runs.jsonl
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Sequence
from pathlib import Path

import click

from benchmarks.report import made
from benchmarks.stream import FLOORS

YARDSTICKS = (
    "Faust echo, events a second",
    "raw aiokafka, events a second",
    "requests a second",
    "requests, bills, rewards a second",
    "p50 ms of aiokafka alone at half of that rate",
    "p99 ms of aiokafka alone at half of that rate",
    "% of a core of aiokafka alone at 60 a second",
    "CPU µs a request, 64",
    "CPU µs a bill or reward, 64",
)
"""Figures without a floor that say how fast the machine was, or what a figure with one is of."""


def table(runs: Sequence[dict[str, float]]) -> str:
    """Return the table as Markdown; a figure that a run lacks is left empty there."""
    columns = [*(f"run {number + 1}" for number in range(len(runs))), "spread", "floor; goal"]
    lines = [f"| | {' | '.join(columns)} |", f"| --- |{' --- |' * len(columns)}"]
    for name in (*YARDSTICKS, *FLOORS):
        found = [run[name] for run in runs if name in run]
        if found:
            cells = [_cell(name, run[name]) if name in run else "" for run in runs]
            lines.append(f"| {name} | {' | '.join([*cells, _spread(found), _bounds(name)])} |")
    return "\n".join(lines)


def _cell(name: str, value: float) -> str:
    floor, _ = FLOORS.get(name, (0.0, 0.0))
    missed = bool(floor) and (value < floor if floor > 0 else value > -floor)
    said = f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
    return f"**{said}**" if missed else said


def _spread(values: Sequence[float]) -> str:
    """Return the largest value less the smallest, as a share of the median."""
    return f"{(max(values) - min(values)) / statistics.median(values):.0%}"


def _bounds(name: str) -> str:
    return "; ".join(f"{abs(bound):,g}" for bound in FLOORS.get(name, ()))


@click.command(help=__doc__)
@click.argument("lines", type=click.Path(exists=True, dir_okay=False, path_type=Path))
def program(lines: Path) -> None:
    """Print the table of a file with the last line of each run."""
    runs = [json.loads(line)["figures"] for line in lines.read_text("utf-8").splitlines() if line]
    print(f"{table(runs)}\n\n{made()}")


if __name__ == "__main__":
    program()
