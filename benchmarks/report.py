"""Print what every benchmark prints: a table for people, and one last line of JSON for programs."""

from __future__ import annotations

import inspect
import json
import math
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import ArrayLike
from rich.console import Console
from rich.table import Table

Cell = str | int | float
SIGNED = re.compile(
    r"(?:Made by `[^`\n]+`|Written by hand) at `[0-9a-f]{8}(?:-dirty)?`, 20\d\d-\d\d-\d\d\."
)
"""The line below a table of a page. The commit is the one that was checked out, or brought it."""
UNSIGNED = re.compile(rf"(?:^\|.*(?:\n|\Z))++(?!\n*{SIGNED.pattern})", re.MULTILINE)
"""A table of Markdown without that line."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean over repetitions and its bootstrap interval."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.mean:.4g} [{self.low:.4g}, {self.high:.4g}]"


def bootstrap(
    samples: ArrayLike, *, level: float = 0.95, resamples: int = 2000, seed: int = 0
) -> Interval:
    """Return the mean of `samples` (one a seed) with its percentile bootstrap interval.

    Args:
        samples: shape (n,), n ≥ 1, finite.
        level: coverage in (0, 1).

    Raises:
        ValueError: no samples, or one that is not finite.
    """
    values = np.asarray(samples, dtype=np.float64).ravel()
    if not values.size or not np.isfinite(values).all():
        raise ValueError("samples must be finite and at least one")
    drawn = np.random.default_rng(seed).choice(values, size=(resamples, values.size)).mean(axis=1)
    low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(values.mean()), float(low), float(high))


@dataclass(frozen=True, slots=True)
class Choice:
    """The number of seeds that are played, and which policies; all without one."""

    seeds: int | None = None
    policies: tuple[str, ...] = ()

    def of(self, policies: Iterable[str]) -> list[str]:
        """Return those of the policies that are played: `live`, which figures are about, always."""
        named = self.policies
        return [name for name in policies if not named or name == "live" or name in named]


EVERYTHING = Choice()


def made() -> str:
    """Return the line under a table that names what made it: a command, a commit, a day."""
    words, root = ["python", *sys.orig_argv[1:]], Path(__file__).parent
    asked = ["git", "describe", "--always", "--dirty", "--abbrev=8", "--exclude=*"]
    ran = subprocess.run(asked, cwd=root, capture_output=True, text=True, check=False)
    state = ran.stdout.strip() or "no checkout of git"
    return f"Made by `{shlex.join(words)}` at `{state}`, {datetime.now(UTC):%Y-%m-%d}."


def signed(page: str, line: str | None = None) -> str:
    """Return Markdown with a line below each table that has none yet: `made`, or the one given."""
    return UNSIGNED.sub(lambda table: f"{table[0].rstrip()}\n\n{line or made()}\n", page)


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[Cell]]) -> None:
    """Print rows as a table; the first column is left-aligned, the others right, floats with four
    digits. The line of `made` stands below.
    """
    table = Table(title=title, title_justify="left")
    for index, column in enumerate(columns):
        table.add_column(column, justify="left" if index == 0 else "right", no_wrap=True)
    for row in rows:
        table.add_row(*(f"{cell:.4g}" if isinstance(cell, float) else str(cell) for cell in row))
    # A pipe has no width: the table is then as wide as it wants to be.
    console = Console()
    (console if console.is_terminal else Console(width=200)).print(table)
    print(made())


def print_figures(
    benchmark: str, figures: Mapping[str, float], *, rows: Sequence[Mapping[str, Any]] | None = None
) -> None:
    """Print the closing line `{"benchmark": …, "figures": {…}}`; `rows` are added to the figures as
    they are.

    Raises:
        ValueError: a figure is not finite.
    """
    values = {name: float(value) for name, value in figures.items()}
    for name, value in values.items():
        if not math.isfinite(value):
            raise ValueError(f"figure {name} is {value}")
    told: dict[str, Any] = {**values, **({} if rows is None else {"rows": rows})}
    print(json.dumps({"benchmark": benchmark, "figures": told}, ensure_ascii=False), flush=True)


Run = Callable[[bool], None] | Callable[[bool, Choice], None]


def command(run: Run) -> click.Command:
    """Make `run(quick)` a command line program with the flag `--quick`; its help is the function's
    docstring. Where it takes a `Choice` as well, seeds and policies may be chosen.
    """

    def program(quick: bool, seeds: int | None = None, policy: tuple[str, ...] = ()) -> None:
        chosen = (Choice(seeds, policy),) if takes_choice else ()
        run(quick, *chosen)

    takes_choice = len(inspect.signature(run).parameters) > 1
    options = [click.option("--quick", is_flag=True, help="A smaller run, under 60 seconds.")]
    if takes_choice:
        options += [
            click.option(
                "--seeds", type=click.IntRange(min=2), help="How many; fewer give wider intervals."
            ),
            click.option(
                "--policy", multiple=True, help="Only `live` and these; pictures need all."
            ),
        ]
    for option in options:
        program = option(program)
    return click.command(help=run.__doc__)(program)
