"""Draw a play: λ_t, spend against the budget, the models' shares."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any

import numpy as np

from streams.demo.series import Series

COLOURS = ("#4c78a8", "#f2a33a", "#b6539c", "#54a24b", "#72b7b2")
LEGEND: Any = {
    "loc": "lower right",
    "bbox_to_anchor": (1.0, 1.0),
    "ncol": 5,
    "frameon": False,
    "fontsize": 9,
    "borderpad": 0.1,
}
INK, GRID = "#333333", "#e4e4e4"


def save_png(series: Series, target: Path, *, title: str) -> None:
    """Write the plot as a PNG of about 1,300 × 1,200 pixels."""
    _figure(series, title).savefig(target, dpi=130)


def inline_svg(series: Series, *, title: str) -> str:
    """Return the plot as an SVG element to be put into a page: letters are paths, nothing is
    loaded.
    """
    text = io.StringIO()
    _figure(series, title).savefig(
        text, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None}
    )
    svg = text.getvalue()
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    return svg[svg.index("<svg") :]


def _figure(series: Series, title: str) -> Any:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10.0, 9.0), layout="constrained")
    FigureCanvasAgg(figure)
    dual, money, shares = figure.subplots(3, 1, sharex=True)
    figure.suptitle(title, fontsize=12, color=INK, x=0.01, ha="left")
    at = np.arange(1, len(series.lambda_t) + 1)
    dual.plot(at, series.lambda_t, color=COLOURS[0], linewidth=1.2)
    dual.set_ylabel("λ_t")
    dual.set_ylim(bottom=0.0)
    if len(series.spend_per_budget):
        money.plot(
            at, series.window_per_budget, color=COLOURS[1], linewidth=1.0, label="last 100 requests"
        )
        money.plot(at, series.spend_per_budget, color=COLOURS[0], linewidth=1.6, label="all so far")
        money.axhline(1.0, color=INK, linewidth=0.8, linestyle="--")
        # The first requests are few and scatter widely; the scale is for the rest.
        money.set_ylim(
            0.0, max(1.5, 1.1 * float(series.window_per_budget[min(50, len(at) - 1) :].max()))
        )
        money.legend(**LEGEND)
    money.set_ylabel("cost ÷ budget")
    names = [model.rpartition("/")[2] for model in series.models]
    shares.stackplot(at, series.shares.T, labels=names, colors=COLOURS, linewidth=0)
    shares.set_ylabel("share of the last 100")
    shares.set_ylim(0.0, 1.0)
    shares.legend(**LEGEND)
    shares.set_xlabel("decisions")
    for axes in (dual, money, shares):
        _tidy(axes, series, len(at))
    for position, label in series.events:
        dual.annotate(
            label,
            (position, 1.0),
            xycoords=("data", "axes fraction"),
            fontsize=8,
            va="bottom",
            color=INK,
        )
    return figure


def _tidy(axes: Any, series: Series, count: int) -> None:
    axes.set_xlim(1, max(2, count))
    axes.grid(axis="y", color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(colors=INK, labelsize=9)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for position, _ in series.events:
        axes.axvline(position, color=INK, linewidth=0.8, linestyle=":")
