"""A chart of lines over the requests, as a page has it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator, StrMethodFormatter

from streams.drawing.figure import as_class, entitle, figure, inline_svg, number_events
from streams.drawing.inks import INK

OUTLIER_MEDIANS = 6.0
"""A value above this many medians does not stretch the scale: a single dear bill of a replay may
be 200 budgets, and would flatten all else."""
OUTLIERS_SHARE = 0.05
"""Of the points; where more are as high, they are what there is to see."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line: name, colour, points; a None leaves a hole."""

    name: str
    colour: str
    points: Sequence[tuple[float, float | None]]


@dataclass(frozen=True, slots=True)
class Tick:
    """A short rule at the bottom: an alert, in its policy's colour."""

    x: float
    colour: str


def line_chart(
    title: str,
    lines: Sequence[Line],
    *,
    x_max: float,
    y_max: float | None = None,
    level: float | None = None,
    events: Sequence[float] = (),
    ticks: Sequence[Tick] = (),
) -> str:
    """Return a chart as an SVG element.

    Args:
        level: draws a dashed horizontal line there.
        y_max: where the scale ends; None: where the values do, outliers left aside and counted.
    """
    made, grid = figure()
    axes: Axes = grid[0, 0]
    for line in lines:
        xs = [x for x, _ in line.points]
        ys = [math.nan if y is None else y for _, y in line.points]
        axes.plot(xs, ys, color=line.colour, linewidth=1.6, gid=as_class("line"))
    if level is not None:
        axes.axhline(level, color=INK, linewidth=0.8, linestyle="--", gid=as_class("level"))
    axes.set_xlim(0.0, max(x_max, 1.0))
    entitle(axes, title, cut=_scale(axes, _values(lines), y_max, level or 0.0))
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    for tick in ticks:
        axes.axvline(tick.x, 0.0, 0.06, color=tick.colour, linewidth=1.6, gid=as_class("alert"))
    number_events(axes, events)
    return inline_svg(made, label=title)


def _values(lines: Sequence[Line]) -> list[float]:
    """Return every finite value, in order of size."""
    return sorted(y for line in lines for _, y in line.points if y is not None and math.isfinite(y))


def _scale(axes: Axes, values: list[float], y_max: float | None, level: float) -> str:
    """End the scale at `y_max`, or above the highest value that is no outlier; return what it
    cuts.
    """
    end = y_max or max(_highest(values), level) or 1.0
    axes.set_ylim(0.0, 1.03 * end)
    cut = [value for value in values if value > end * (1.0 + 1e-9)]
    many = "s" if len(cut) > 1 else ""
    return f"{len(cut)} point{many} above the scale, up to {cut[-1]:.3g}" if cut else ""


def _highest(values: list[float]) -> float:
    if not values:
        return 0.0
    most = OUTLIER_MEDIANS * values[len(values) // 2]
    within = [value for value in values if value <= most]
    few = len(values) - len(within) <= OUTLIERS_SHARE * len(values)
    return within[-1] if most > 0.0 and few else values[-1]
