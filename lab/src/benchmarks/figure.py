"""Figures in the one style, as PNG for documents, for light pages and for dark ones."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import Collection
from matplotlib.colors import to_rgba, to_rgba_array
from matplotlib.figure import Figure
from matplotlib.rcsetup import cycler

from benchmarks.inks import DARK, INK, LIGHT, LINES, QUIET, RULE
from benchmarks.twins import dark

if TYPE_CHECKING:
    from matplotlib.typing import RcKeyType

STYLE: dict[RcKeyType, object] = {
    "axes.axisbelow": True,
    "axes.edgecolor": RULE,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.labelcolor": INK,
    "axes.prop_cycle": cycler(color=LINES),
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlecolor": INK,
    "axes.titlesize": 11,
    "figure.titlesize": 12,
    "font.size": 10,
    "grid.color": RULE,
    "legend.fontsize": 9,
    "legend.frameon": False,
    "text.color": INK,
    "xtick.color": QUIET,
    "ytick.color": QUIET,
}
DPI = 110
Grid = npt.NDArray[np.object_]


def figure(
    rows: int = 1,
    columns: int = 1,
    *,
    width: float = 5.6,
    height: float = 2.4,
    sharex: bool | Literal["all", "col"] = False,
) -> tuple[Figure, Grid]:
    """Return a figure and its axes, shape (rows, columns), each `width` × `height` inches.

    At 5.6 inches a letter of 10 points is 9 pixels high on a telephone of 390 pixels.
    """
    with mpl.rc_context(STYLE):
        made = Figure(figsize=(width * columns, height * rows), layout="constrained")
        FigureCanvasAgg(made)
        return made, made.subplots(rows, columns, squeeze=False, sharex=sharex)


def save_png(made: Figure, target: Path, *, dpi: int = DPI) -> None:
    """Write a figure as a PNG for light pages, and as `NAME-dark.png` for dark ones; the same bytes
    for the same figure. It is left dark.
    """
    with mpl.rc_context(STYLE):
        made.savefig(target, dpi=dpi, metadata={"Software": None})
        _darken(made)
        made.savefig(dark(target), dpi=dpi, metadata={"Software": None})


def _darken(made: Figure) -> None:
    """Give every part of a figure that is drawn in one of the palette's light inks the dark one."""
    turned = {to_rgba(LIGHT[name])[:3]: to_rgba(DARK[name])[:3] for name in LIGHT}
    turned[to_rgba("black")[:3]] = to_rgba(DARK["ink"])[:3]  # matplotlib's own, of legends
    for part in made.findobj():
        for kind in ("color", "facecolor", "edgecolor", "markerfacecolor", "markeredgecolor"):
            read, write = (getattr(part, f"{verb}_{kind}", None) for verb in ("get", "set"))
            if read is None or write is None or (isinstance(read(), str) and read() == "none"):
                continue
            inks = to_rgba_array(read())
            darker = [(*turned.get(tuple(ink[:3]), ink[:3]), ink[3]) for ink in inks]
            write(darker if isinstance(part, Collection) else darker[0])


def entitle(axes: Axes, title: str, *, cut: str = "") -> None:
    """Write a chart's title on its left, and on its right, small, what its scale leaves out."""
    axes.set_title(title, loc="left", color=INK, fontsize=11, fontweight="bold")
    axes.set_title(cut, loc="right", color=QUIET, fontsize=9)
