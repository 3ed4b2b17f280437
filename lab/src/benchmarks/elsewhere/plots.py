"""Pictures of the worlds, into `lab/docs/`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from benchmarks.inks import LINES, RULE
from benchmarks.plots import STYLE, canvas, legend_below, line, save
from benchmarks.rows import Row

POLICIES = ("live", "apart", "paper", "thompson", "ε-greedy", "LinUCB")


def draw(rows: Sequence[Row], results: Sequence[dict[str, Any]]) -> None:
    """Plot rewards over the budget on judged prompts, and how far drawn worlds are from their best
    fixed mix.
    """
    figure, panels = canvas(3)
    for axis, kind, phase in (
        (panels[0], "the paper's, cold, no priors", "whole"),
        (panels[1], "eleven models, mixed", "last 1,000"),
    ):
        for policy in (*POLICIES[:-1], "best fixed mix", "hindsight"):
            mine = [r for r in rows if r["world"] == kind and r["phase"] == phase]
            if any(r["policy"] == policy for r in mine):
                line(axis, mine, policy, x="budget", y="reward")
        axis.set(xscale="log", xlabel="budget, $ per request", title=f"{kind}: reward, {phase}")
    _drawn(panels[2], results)
    legend_below(figure, panels[0])
    panels[2].legend(fontsize=7)
    save(figure, "elsewhere")


def _drawn(axis: Axes, results: Sequence[dict[str, Any]]) -> None:
    drawn = [r for r in results if r["kind"] == "drawn"]
    mix = {r["seed"]: r["phases"]["learned"][1] for r in drawn if r["policy"] == "best fixed mix"}
    for policy in (*POLICIES, "hindsight"):
        above = np.sort(
            [r["phases"]["learned"][1] - mix[r["seed"]] for r in drawn if r["policy"] == policy]
        )
        if len(above):
            colour, style, _ = STYLE.get(policy, (LINES[6], "-", "."))
            axis.plot(
                above,
                np.arange(1, len(above) + 1) / len(above),
                color=colour,
                linestyle=style,
                label=policy,
            )
    axis.axvline(-0.01, color=RULE)
    axis.set(
        xlim=(-0.2, 0.2),
        xlabel="reward − best fixed mix",
        ylabel="share of drawn worlds",
        title=f"{len(mix)} drawn worlds",
    )
