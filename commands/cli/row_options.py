"""Options of commands that read a file of rows: its columns, and the scale of its scores."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from studies.warm_start.columns import SYNONYMS

if TYPE_CHECKING:
    from studies.warm_start.judgements import Reading

F = TypeVar("F", bound=Callable[..., Any])


def _columns(
    ctx: click.Context, parameter: click.Parameter, values: tuple[str, ...]
) -> dict[str, str]:
    found = {}
    for value in values:
        what, _, name = value.partition("=")
        if what not in SYNONYMS or not name:
            raise click.BadParameter(
                f"{value!r}: say which column holds {', '.join(SYNONYMS)}, as score=rating"
            )
        found[what] = name
    return found


def low_and_high(
    ctx: click.Context, parameter: click.Parameter, value: str | None
) -> tuple[float, float] | None:
    """Return the lowest and the highest score of an option, LOW:HIGH."""
    if value is None:
        return None
    low, _, high = value.partition(":")
    try:
        found = float(low), float(high)
    except ValueError:
        found = 0.0, 0.0
    if not float("-inf") < found[0] < found[1] < float("inf"):
        raise click.BadParameter(f"{value!r} is not a range of scores, low to high, such as 1:5")
    return found


def row_options(command: F) -> F:
    """Give a command the options `columns` and `score_range`."""
    columns = click.option(
        "--column",
        "columns",
        multiple=True,
        metavar="WHAT=NAME",
        callback=_columns,
        help="Name of a column for prompt, model, score or cost, such as score=rating.",
    )
    scores = click.option(
        "--score-range",
        metavar="LOW:HIGH",
        callback=low_and_high,
        help="Scale of a file's scores, such as 1:5; default: 0:1.",
    )
    return columns(scores(command))


def reading_of(columns: dict[str, str], score_range: tuple[float, float] | None) -> Reading:
    """Return the options as a `Reading`."""
    from studies.warm_start.judgements import Reading

    return Reading(columns, score_range)
