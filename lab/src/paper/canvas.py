"""Drawing common to the figures: axes, colours, curves over seeds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.figure import Grid, figure, save_png
from paper.contenders import PHASE
from paper.outcome import Sheet

COLOURS = {
    "T": "#D55E00",
    "M": "#0072B2",
    "L": "#CC79A7",
    "U": "#009E73",
    "naive": "#777777",
    "forgetting": "#E69F00",
}
PROFILES = ("paper", "live")
DPI = 80


def axes(
    rows: int, columns: int, *, width: float = 4.6, height: float = 2.7
) -> tuple[Figure, Grid]:
    """Return a figure and its axes, shape (rows, columns)."""
    return figure(rows, columns, width=width, height=height)


def save(made: Figure, folder: Path, name: str) -> str:
    """Write a figure and return its file's name."""
    file = f"paper-{name}.png"
    save_png(made, folder / file, dpi=DPI)
    return file


def stacked(sheets: Sequence[Sheet], curve: str, policy: str) -> np.ndarray | None:
    """Return a curve of every seed, shape (seeds, points), or None."""
    found = [
        sheet.curves[curve][policy] for sheet in sheets if policy in sheet.curves.get(curve, {})
    ]
    return np.array(found) if found else None


def column(sheets: Sequence[Sheet], row: str, policy: str) -> np.ndarray:
    """Return a number of every seed."""
    return np.array([sheet.rows[row][policy] for sheet in sheets])


def band(axis: Axes, x: Any, values: np.ndarray | None, **style: Any) -> None:
    """Draw a mean over seeds and its 95 % interval."""
    if values is None:
        return
    mean, half = values.mean(axis=0), 1.96 * values.std(axis=0) / np.sqrt(len(values))
    axis.plot(x, mean, **{"linewidth": 1.2, **style})
    axis.fill_between(
        x, mean - half, mean + half, color=style.get("color"), alpha=0.15, linewidth=0
    )


def phases(axis: Axes, middle: str) -> None:
    """Shade the second of three phases."""
    axis.axvspan(PHASE, 2 * PHASE, color="#D55E00", alpha=0.07)
    axis.set_xlim(0, 3 * PHASE)
    axis.text(
        1.5 * PHASE,
        0.98,
        middle,
        ha="center",
        va="top",
        transform=axis.get_xaxis_transform(),
        fontsize=7,
    )


def violins(axis: Axes, groups: Sequence[np.ndarray], colours: Sequence[str]) -> None:
    """Draw a number's spread over seeds per group, each seed a dot."""
    for at, (values, colour) in enumerate(zip(groups, colours, strict=True)):
        if len(set(values.tolist())) > 1:
            drawn: Any = axis.violinplot([values], positions=[at], widths=0.8, showextrema=False)
            for body in drawn["bodies"]:
                body.set(facecolor=colour, alpha=0.3)
        spread = np.random.default_rng(at).uniform(-0.12, 0.12, len(values))
        axis.plot(at + spread, values, ".", color=colour, markersize=3)
        axis.plot([at - 0.3, at + 0.3], [np.median(values)] * 2, color=colour)
