"""Plots of the live profile's benchmarks, into `lab/docs/`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator

from benchmarks.figure import Grid, figure, save_png
from benchmarks.inks import INK, LINES, QUIET, RULE
from benchmarks.protocol import MODERATE, TIGHT
from benchmarks.rows import Row

DOCS = Path(__file__).parents[2] / "docs"
DRIFT = {
    "P2": "reward while Mistral is worse (P2)",
    "P3": "reward once it is as before (P3)",
    "after ÷ before": "reward in P3 ÷ in P1",
}
SPARSE = (8.3e-5, MODERATE, 5.3e-3)
"""Dollars per request: a tight, a middle and a loose budget for the picture of few labels."""
STYLE = {
    "live": (LINES[0], "-", "o"),
    "paper": (LINES[1], "-", "s"),
    "ε-greedy": (LINES[2], ":", "^"),
    "thompson": (LINES[4], ":", "v"),
    "random": (QUIET, ":", "x"),
    "best fixed mix": (LINES[5], "--", ""),
    "hindsight": (INK, "--", ""),
}


def canvas(panels: int, *, height: float = 2.4) -> tuple[Figure, Grid]:
    """Return a figure and its axes, one below the other: side by side letters become too small."""
    made, grid = figure(panels, 1, height=height)
    return made, grid[:, 0]


def save(made: Figure, name: str) -> None:
    """Write a figure into `lab/docs/`."""
    save_png(made, DOCS / f"{name}.png")


def legend_below(made: Figure, axis: Axes) -> None:
    """Put the legend of an axis below all axes of the figure."""
    handles, labels = axis.get_legend_handles_labels()
    made.legend(
        handles, labels, loc="outside lower center", ncol=min(4, len(labels)), frameon=False
    )


def plain(scale: Axis) -> None:
    """Write the numbers of a logarithmic scale as they are: 0.5, 1, 2, 5."""
    scale.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    scale.set_major_formatter("{x:g}")
    scale.set_minor_formatter("")


def line(axis: Axes, rows: Sequence[Row], policy: str, *, x: str, y: str) -> None:
    """Draw one policy with its interval."""
    colour, style, marker = STYLE.get(policy, (LINES[6], "-", "."))
    points = sorted(
        (r[x], r[y], r.get(f"{y}_half_width", 0.0)) for r in rows if r["policy"] == policy
    )
    xs, ys, errors = ([point[j] for point in points] for j in range(3))
    axis.errorbar(
        xs,
        ys,
        yerr=errors,
        label=policy,
        color=colour,
        linestyle=style,
        marker=marker,
        markersize=4,
        capsize=2,
    )


def frontier(rows: Sequence[Row]) -> None:
    """Plot reward and cost ÷ budget over the budget, with nothing and with a hundred in flight."""
    made, axes = canvas(3)
    for axis, in_flight, y in (
        (axes[0], 0, "reward"),
        (axes[1], 100, "reward"),
        (axes[2], 100, "cost_over_budget"),
    ):
        for policy in STYLE:
            yardstick = policy in ("best fixed mix", "hindsight")
            mine = [r for r in rows if yardstick or r["in_flight"] == in_flight]
            if (yardstick and y != "reward") or all(r["policy"] != policy for r in mine):
                continue
            line(axis, mine, policy, x="budget", y=y)
        axis.set(
            xscale="log",
            xlabel="budget, $ per request",
            title=f"{y.replace('_over_', ' ÷ ')}, {in_flight} in flight",
        )
    legend_below(made, axes[1])
    axes[2].set_yscale("log")
    plain(axes[2].yaxis)
    save(made, "frontier")


def inflight(rows: Sequence[Row]) -> None:
    """Plot cost ÷ budget over the requests in flight, per phase, at the middle budget."""
    made, axes = canvas(3)
    budget = MODERATE
    for axis, phase in zip(axes, ("P1", "P2", "P3"), strict=True):
        shown = [
            r
            for r in rows
            if r["delay"] == "fixed" and r["phase"] == phase and r["budget"] == budget
        ]
        for policy in ("live", "paper", "thompson", "ε-greedy", "random"):
            line(axis, shown, policy, x="in_flight", y="cost_over_budget")
        axis.axhspan(0.95, 1.05, color=RULE)
        axis.set(
            xscale="symlog",
            yscale="log",
            xlabel="requests in flight",
            title=f"{phase}: cost ÷ budget, ${budget:g}",
        )
        plain(axis.yaxis)
    legend_below(made, axes[0])
    save(made, "inflight")


def sparse(rows: Sequence[Row]) -> None:
    """Plot reward over the share of judged requests, at three budgets."""
    made, axes = canvas(len(SPARSE))
    for axis, budget in zip(axes, SPARSE, strict=True):
        for policy in ("live", "paper", "thompson", "ε-greedy"):
            line(
                axis,
                [r for r in rows if r["budget"] == budget and r["in_flight"] == 0],
                policy,
                x="judged",
                y="reward",
            )
        axis.set(xscale="log", xlabel="share of requests judged", title=f"reward at ${budget:g}")
    legend_below(made, axes[0])
    save(made, "sparse")


def drift(rows: Sequence[Row]) -> None:
    """Plot reward during and after ÷ before over the level that Mistral's quality drops to."""
    made, axes = canvas(3)
    budget = MODERATE
    shown = [
        r
        for r in rows
        if (r["model"], r["form"], r["in_flight"], r["budget"])
        == ("mistral", "constant", 0, budget)
    ]
    for axis, phase in zip(axes, DRIFT, strict=True):
        for policy in ("live", "live − drift alarms", "paper", "thompson", "ε-greedy"):
            line(axis, [r for r in shown if r["phase"] == phase], policy, x="level", y="reward")
        axis.set(xlabel="Mistral's quality in P2", title=DRIFT[phase])
    legend_below(made, axes[0])
    save(made, "drift")


def onboarding(rows: Sequence[Row]) -> None:
    """Plot cost ÷ budget by quarter after a good model joined, cheap and dear."""
    made, axes = canvas(2)
    budget = TIGHT
    for axis, kind in zip(axes, ("good and cheap", "good and dear"), strict=True):
        mine = [
            r
            for r in rows
            if (r["newcomer"], r["budget"], r["in_flight"]) == (kind, budget, 0)
            and r["phase"] != "whole"
        ]
        for policy in ("live", "paper", "thompson", "ε-greedy"):
            line(
                axis,
                [{**r, "quarter": int(r["phase"][1])} for r in mine],
                policy,
                x="quarter",
                y="cost_over_budget",
            )
        axis.set(
            xlabel="quarter of the requests after it joined",
            title=f"{kind}: cost ÷ budget, ${budget:g}",
            xticks=range(1, 5),
        )
    legend_below(made, axes[0])
    save(made, "onboarding")


def shocks(rows: Sequence[Row]) -> None:
    """Plot cost ÷ budget before, adapting and after for every shock, at the middle budget with 30
    in flight.
    """
    made, axes = canvas(2, height=3.2)
    budget = MODERATE
    for axis, policy in zip(axes, ("live", "paper"), strict=True):
        mine = [
            r for r in rows if (r["policy"], r["budget"], r["in_flight"]) == (policy, budget, 30)
        ]
        names = sorted({r["shock"] for r in mine})
        for phase, colour in (
            ("before", QUIET),
            ("adapting", LINES[5]),
            ("after", LINES[0]),
            ("episode", LINES[1]),
        ):
            values = {r["shock"]: r["cost_over_budget"] for r in mine if r["phase"] == phase}
            axis.plot([values.get(name) for name in names], names, "o", color=colour, label=phase)
        axis.axvspan(0.95, 1.05, color=RULE)
        axis.set(xscale="log", title=f"{policy}: cost ÷ budget, ${budget:g}")
        plain(axis.xaxis)
    legend_below(made, axes[0])
    save(made, "shocks")


DRAWN = {one.__name__: one for one in (drift, frontier, inflight, onboarding, shocks, sparse)}
"""Function that draws the picture of a benchmark, by its name."""
