"""The tables of `lab/docs/beside.md`, between its markers, and its picture."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from benchmarks.beside.curve import hull, reward_at
from benchmarks.beside.entrants import OURS
from benchmarks.beside.field import Field
from benchmarks.beside.result import Estimate, Row
from benchmarks.inks import INK, LINES, QUIET
from benchmarks.report import signed

DOCS = Path(__file__).parents[3] / "docs"
PAGE, PICTURE = DOCS / "beside.md", DOCS / "beside.png"

WIDTH = 100
"""Columns of a page's text."""
Curve = Sequence[tuple[float, float]]


def table(rows: Sequence[Row]) -> str:
    """Return the lines of one field as Markdown; where `live` loses is said and stands first."""
    losing, _ = _losing(rows)
    names = "; ".join(row.entrant for row in losing) or "none"
    lead = f"Above `live` by more than chance, in some column: {names}.\n\n"
    head = (
        "| router | setting | area, all requests | area, last half | `live` ahead, all | "
        "`live` ahead, last half |\n| --- | --- | --- | --- | --- | --- |"
    )
    ordered = [*losing, *(r for r in rows if r not in losing)]
    return lead + "\n".join([head, *map(_line, ordered)])


def lead(fields: Mapping[str, Sequence[Row]]) -> str:
    """Return as Markdown who is above `live`, and by how much at the same dollars.

    Args:
        fields: rows by the field's title.
    """
    lines = ["| prompts | router | it learned | above `live` by |", "| --- | --- | --- | --- |"]
    for title, rows in fields.items():
        losing, ours = _losing(rows)
        for row in sorted(losing, key=lambda row: row.whole is None):
            when = "online" if row.whole else "beforehand"
            lines.append(f"| {title} | {row.entrant} | {when} | {_told(row, ours)} |")
        if not losing:
            lines.append(f"| {title} | none |  |  |")
    return "\n".join(lines)


def _losing(rows: Sequence[Row]) -> tuple[list[Row], Row]:
    """Return whom `live` loses to, and its own row."""
    ours = next(row for row in rows if row.entrant == OURS)
    return [r for r in rows if r is not ours and _above(r, ours)], ours


def _told(row: Row, ours: Row) -> str:
    """Return by how much a router is above `live`: at the same dollars, or else by its area."""
    for ahead, of in ((row.ahead, "all requests"), (row.ahead_late, "last half")):
        if ahead is not None and ahead.value + ahead.half < 0:
            by = Estimate(-ahead.value, ahead.half).told(100.0, signed=True)
            return f"{by}, {of}"
    areas = (row.whole, ours.whole) if row.whole and ours.whole else (row.late, ours.late)
    theirs, us = (one.told(100.0) for one in areas if one)
    return f"its area alone: {theirs} beside {us}"


def points(fixed: Mapping[str, Curve], ours: Curve) -> str:
    """Return routers that are one point each as Markdown, beside `live` at the same dollars; empty
    where no budget of `live` was so small.
    """
    least = min(usd for usd, _ in ours)
    lines = ["| router | $ a request | reward × 100 | `live` ahead |", "| --- | --- | --- | --- |"]
    for name, ((usd, reward),) in sorted(fixed.items(), key=lambda one: -one[1][0][1]):
        ahead = 100 * (float(reward_at(ours, np.array([usd]))[0]) - reward)
        told = "" if usd < least else f"{ahead:+.2f}"
        lines.append(f"| {name} | {usd:.5f} | {100 * reward:.2f} | {told} |")
    return "\n".join(lines)


def _above(row: Row, ours: Row) -> bool:
    """Tell whether a router is above `live` by more than chance, in any column."""
    areas = ((row.whole, ours.whole), (row.late, ours.late))
    larger = any(
        theirs is not None and us is not None and theirs.value - theirs.half > us.value + us.half
        for theirs, us in areas
    )
    return larger or any(
        e is not None and e.value + e.half < 0 for e in (row.ahead, row.ahead_late)
    )


def _line(row: Row) -> str:
    cells = [
        "" if e is None else e.told(100.0, signed=ahead)
        for e, ahead in (
            (row.whole, False),
            (row.late, False),
            (row.ahead, True),
            (row.ahead_late, True),
        )
    ]
    name = f"**{row.entrant}**" if row.entrant == OURS else row.entrant
    return f"| {name} | {row.setting} | {' | '.join(cells)} |"


def fill(sentence: str) -> str:
    """Return a sentence in lines as wide as a page's."""
    return textwrap.fill(sentence, WIDTH, break_long_words=False, break_on_hyphens=False)


def write(name: str, text: str, page: Path = PAGE) -> None:
    """Put a table between its markers on the page.

    Raises:
        ValueError: the page has no such markers.
    """
    before = page.read_text(encoding="utf-8")
    between = re.compile(rf"(<!-- {name} -->\n).*?(<!-- end -->)", re.DOTALL)
    if not between.search(before):
        raise ValueError(f"{page} has no place for the table {name!r}")
    lines = [line if line.startswith("|") else fill(line) for line in text.splitlines()]
    lines = signed("\n".join(lines)).splitlines()
    told = between.sub(lambda m: "\n".join([m[1], *lines, "", m[2]]), before)
    page.write_text(told, encoding="utf-8")


def draw(fields: Mapping[str, tuple[Field, Mapping[str, Curve], Mapping[str, Curve]]]) -> None:
    """Draw reward over dollars: every router's hull over all requests, and the single models.

    Args:
        fields: by name the field, the curves of routers, and the points that need no playing.
    """
    from benchmarks.figure import entitle, figure, save_png  # matplotlib, for this alone

    made, grid = figure(len(fields), 1, height=3.4)
    for axes, (field, curves, fixed) in zip(grid[:, 0], fields.values(), strict=True):
        colours = iter([*LINES[1:], QUIET] * 4)
        ends = []
        for name, points in curves.items():
            dollars, rewards = hull(points)
            ours = name == OURS
            colour = INK if ours else next(colours)
            axes.plot(
                dollars, 100 * rewards, color=colour, lw=2.4 if ours else 1.2, zorder=3 + ours
            )
            ends.append((float(100 * rewards[-1]), float(dollars[-1]), name, colour))
        models = [points[0] for name, points in fixed.items() if name.startswith("always ")]
        axes.plot([p[0] for p in models], [100 * p[1] for p in models], "o", color=QUIET, ms=4)
        most = max(usd for _, usd, _, _ in ends)
        lowest, highest = axes.get_ylim()
        gap, before = 0.055 * (highest - lowest), float("inf")
        for at, usd, name, colour in sorted(ends, reverse=True):
            before = min(at, before - gap)
            axes.annotate(
                name,
                (usd, at),
                (most * 1.12, before),
                color=colour,
                fontsize=9,
                va="center",
                arrowprops={"arrowstyle": "-", "color": colour, "lw": 0.5},
            )
        axes.set(xscale="log", xlabel="dollars a request", xlim=(None, most * 2.4))
        entitle(axes, f"{field.title}: reward × 100")
    save_png(made, PICTURE)
