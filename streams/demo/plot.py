"""Draw a play: λ_t, spend against the budget, the models' shares."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes

from streams.demo.series import Series
from streams.drawing.figure import entitle, figure, inline_svg, number_events, save_png
from streams.drawing.inks import INK, LINES, line_colours

SETTLED = 50
"""Requests after which the scale counts: of the first few a single dear bill is half of the
mean."""


def save_picture(series: Series, target: Path, *, title: str) -> None:
    """Write the charts below each other as a PNG, with their legends and the events' names."""
    made, grid = figure(len(PANELS), width=9.0, height=2.9, sharex=True)
    made.suptitle(title, x=0.01, ha="left")
    for axes, (name, draw) in zip(grid[:, 0], PANELS.items(), strict=True):
        _panel(axes, series, name, draw)
        if len(axes.get_legend_handles_labels()[1]) > 1:
            axes.legend(
                loc="lower right", bbox_to_anchor=(1.0, 1.0), frameon=False, ncol=5, borderpad=0.1
            )
    told = "; ".join(f"{at}: {label}" for at, (_, label) in enumerate(series.events, 1))
    grid[-1, 0].set_xlabel(f"decisions ({told})" if told else "decisions")
    save_png(made, target)


def inline_charts(series: Series) -> list[str]:
    """Return each chart as an SVG element to be put into a page."""
    charts = []
    for name, draw in PANELS.items():
        made, grid = figure()
        _panel(grid[0, 0], series, name, draw)
        charts.append(inline_svg(made, label=name))
    return charts


def legend(series: Series) -> dict[str, str]:
    """Return the colour of each model's share."""
    return line_colours([_short(model) for model in series.models])


def _panel(axes: Axes, series: Series, name: str, draw: Callable[[Axes, Series], None]) -> None:
    entitle(axes, name)
    axes.set_xlim(1, max(2, len(series.lambda_t)))
    draw(axes, series)
    number_events(axes, [position for position, _ in series.events])


def _dual(axes: Axes, series: Series) -> None:
    axes.plot(_decisions(series), series.lambda_t, color=LINES[0], linewidth=1.2)
    axes.set_ylim(bottom=0.0)


def _money(axes: Axes, series: Series) -> None:
    if not len(series.spend_per_budget):
        return
    at, recent = _decisions(series), series.window_per_budget
    axes.plot(at, recent, color=LINES[8], linewidth=1.0, label="last 100 requests")
    axes.plot(at, series.spend_per_budget, color=LINES[0], linewidth=1.6, label="all so far")
    axes.axhline(1.0, color=INK, linewidth=0.8, linestyle="--")
    axes.set_ylim(0.0, max(1.5, 1.1 * float(recent[min(SETTLED, len(at) - 1) :].max())))


def _shares(axes: Axes, series: Series) -> None:
    names = legend(series)
    axes.stackplot(
        _decisions(series), series.shares.T, labels=names, colors=names.values(), linewidth=0
    )
    axes.set_ylim(0.0, 1.0)


PANELS: dict[str, Callable[[Axes, Series], None]] = {
    "λ_t": _dual,
    "Cost ÷ budget, so far and of the last 100": _money,
    "Share of the last 100": _shares,
}


def _decisions(series: Series) -> np.ndarray:
    return np.arange(1, len(series.lambda_t) + 1)


def _short(model: str) -> str:
    return model.rpartition("/")[2]
