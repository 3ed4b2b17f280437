"""Figures in the one style, as PNG for documents and as SVG inside a page."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.rcsetup import cycler

from streams.drawing.inks import GRID, INK, INKS, LINES, PAPER, QUIET, RULE, variable

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
    "grid.color": GRID,
    "legend.fontsize": 9,
    "legend.frameon": False,
    "svg.fonttype": "none",  # letters stay letters: searched, read aloud, in the page's own font
    "text.color": INK,
    "xtick.color": QUIET,
    "ytick.color": QUIET,
}
DPI = 110
Grid = npt.NDArray[np.object_]
CLASS = "is-"
"""What `as_class` puts before a name: matplotlib writes ids only, and a page has one of each."""


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


def as_class(name: str) -> str:
    """Return the `gid` of an artist that is to have this class in the SVG."""
    return f"{CLASS}{name}"


def save_png(made: Figure, target: Path, *, dpi: int = DPI) -> None:
    """Write a figure as a PNG, the same bytes for the same figure."""
    with mpl.rc_context(STYLE):
        made.savefig(target, dpi=dpi, metadata={"Software": None})


def inline_svg(made: Figure, *, label: str) -> str:
    """Return a figure as an SVG element of a page: its colours are the page's variables, and it
    loads nothing.
    """
    text = io.StringIO()
    nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    # The salt keeps the ids of one chart's clip paths apart from the next one's.
    with mpl.rc_context({**STYLE, "svg.hashsalt": label}):
        made.savefig(text, format="svg", transparent=True, metadata=nothing)
    svg = text.getvalue()
    svg = svg[svg.index("<svg") :].replace("xlink:href", "href")
    svg = re.sub(r"<(metadata|style)\b.*?</\1>", "", svg, flags=re.DOTALL)
    svg = re.sub(rf' id="{CLASS}(\w+)"', r' class="\1"', svg)
    svg = re.sub(r' id="[A-Za-z.\d]+_\d+"', "", svg)
    svg = re.sub(r'^<svg [^>]*?(viewBox="[^"]*")[^>]*>', _opening(label), svg, count=1)
    lights = "|".join(light for light, _ in INKS.values())
    return re.sub(lights, lambda found: variable(found[0]), svg)


def _opening(label: str) -> str:
    quoted = escape(label).replace("\\", r"\\")
    return rf'<svg class="chart" \1 role="img" aria-label="{quoted}">'


def entitle(axes: Axes, title: str, *, cut: str = "") -> None:
    """Write a chart's title on its left, and on its right, small, what its scale leaves out."""
    axes.set_title(title, loc="left", color=INK, fontsize=11, fontweight="bold")
    axes.set_title(cut, loc="right", color=QUIET, fontsize=9)


def number_events(axes: Axes, positions: Sequence[float]) -> None:
    """Draw a rule at each event, with the number by which the text speaks of it."""
    for at, position in enumerate(positions, 1):
        axes.axvline(position, color=QUIET, linewidth=1.0, linestyle=":", gid=as_class("mark"))
        axes.annotate(
            str(at),
            (position, 1.0),
            xycoords=("data", "axes fraction"),
            xytext=(3, -10),
            textcoords="offset points",
            color=INK,
            bbox={"facecolor": PAPER, "edgecolor": "none", "pad": 1.0},
            gid=as_class("number"),
        )
