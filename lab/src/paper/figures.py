"""The figures of the paper's main text, drawn from what was run: the paper profile beside the live
profile.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from paper import figures_appendix as appendix
from paper.canvas import COLOURS, PROFILES, axes, band, phases, save, stacked
from paper.compare import Row
from paper.contenders import PHASE
from paper.newcomer import EVERY, PULLS
from paper.outcome import Sheet, checkpoints

MODEL_COLOURS = {"Llama": "#56B4E9", "Mistral": "#E69F00", "Gemini": "#0072B2"}


def stationary(sheets: Sequence[Sheet], folder: Path) -> str:
    """Draw quality over cost, compliance and shares, paper above live."""
    figure, grid = axes(2, 3, height=2.6)
    for profile, (quality, compliance, shares) in zip(PROFILES, grid, strict=True):
        cost, reward, budget = (
            stacked(sheets, name, profile) for name in ("cost", "reward", "budget")
        )
        assert cost is not None and reward is not None and budget is not None
        spent, earned, allowed = cost.mean(axis=0), reward.mean(axis=0), budget[0]
        quality.plot(spent, earned, "o-", color=COLOURS["M"], markersize=4, label=profile)
        fixed = [stacked(sheets, f"fixed {name}", "here") for name in ("cost", "reward")]
        if fixed[0] is not None and fixed[1] is not None:
            quality.plot(
                fixed[0][0],
                fixed[1][0],
                "*",
                color="#E69F00",
                markersize=9,
                label="one model for all",
            )
        quality.set(
            xscale="log",
            xlabel="$ per request",
            ylabel="mean reward",
            title=f"{profile}: quality over cost",
        )
        quality.legend(fontsize=7)
        compliance.plot(allowed, allowed, color="#009E73", linewidth=4, alpha=0.3)
        compliance.plot(allowed, spent, "o", color=COLOURS["M"], markersize=4)
        for x, y in zip(allowed, spent, strict=True):
            compliance.annotate(
                f"{y / x:.2f}×", (x, y), textcoords="offset points", xytext=(5, -8), fontsize=7
            )
        compliance.set(
            xscale="log",
            yscale="log",
            xlabel="budget, $",
            ylabel="mean cost, $",
            title=f"{profile}: compliance",
        )
        below, names = np.zeros(len(allowed)), [f"{value:.0e}" for value in allowed]
        for model, colour in MODEL_COLOURS.items():
            part = stacked(sheets, f"{model} %", profile)
            assert part is not None
            shares.bar(names, part.mean(axis=0), bottom=below, color=colour, label=model)
            below += part.mean(axis=0)
        shares.set(ylabel="% of requests", title=f"{profile}: models called")
        shares.tick_params(axis="x", rotation=45)
        shares.legend(fontsize=7)
    return save(figure, folder, "e1")


def dynamics(sheets: Sequence[Sheet], folder: Path, *, name: str, model: str, middle: str) -> str:
    """Draw share, reward and cost of the last 50 requests through three phases, paper left, live
    right.
    """
    figure, grid = axes(3, 2, width=5.4, height=2.2)
    x = checkpoints(3 * PHASE)
    for at, profile in enumerate(PROFILES):
        for axis, what in zip(grid[:, at], ("share", "reward", "cost"), strict=True):
            for budget in "TMLU":
                values = stacked(sheets, f"{budget} {what}", profile)
                band(
                    axis,
                    x,
                    values,
                    color=COLOURS[budget],
                    label=budget,
                    linestyle="--" if budget == "U" else "-",
                )
            for variant in ("naive", "forgetting") if profile == "paper" else ():
                values = stacked(sheets, f"M {variant} {what}", profile)
                band(axis, x, values, color=COLOURS[variant], linestyle=":", label=f"M {variant}")
            phases(axis, middle)
        grid[0, at].set(title=f"{profile}: share of {model}", ylim=(-0.03, 1.03))
        grid[1, at].set(title="reward, last 50")
        grid[2, at].set(title="$ per request, last 50", yscale="log", xlabel="requests")
    grid[0, 0].legend(fontsize=6, ncol=3)
    return save(figure, folder, name)


def newcomer(sheets: Sequence[Sheet], folder: Path) -> list[str]:
    """Draw the newcomer's share for every kind, and cost and reward for a good and cheap one."""
    kinds = [
        kind
        for kind in ("good cheap", "good dear", "bad cheap")
        if f"{kind} T share" in sheets[0].curves
    ]
    figure, grid = axes(2, len(kinds), width=4.2, height=2.2)
    for row, profile in zip(grid, PROFILES, strict=True):
        for axis, kind in zip(row, kinds, strict=True):
            for budget in "TMLU":
                values = stacked(sheets, f"{kind} {budget} share", profile)
                if values is not None:
                    band(axis, _steps(values), values, color=COLOURS[budget], label=budget)
            axis.set(
                title=f"{profile}: {kind}, share of the last 100", ylim=(0, 0.6), xlabel="requests"
            )
    grid[0, 0].legend(fontsize=7)
    first = save(figure, folder, "e4")
    figure, grid = axes(2, 2, height=2.2)
    for at, profile in enumerate(PROFILES):
        for budget in "TMLU":
            cost, reward = (
                stacked(sheets, f"good cheap {budget} {what}", profile)
                for what in ("cost", "reward")
            )
            if cost is not None and reward is not None:
                band(grid[0, at], _steps(cost), cost, color=COLOURS[budget], label=budget)
                band(grid[1, at], _steps(reward), reward, color=COLOURS[budget])
        for level in (3.0e-4, 6.62e-4, 1.87e-3):
            grid[0, at].axhline(level, color="#777777", linestyle=":", linewidth=0.8)
        grid[0, at].set(yscale="log", title=f"{profile}: mean cost so far, $")
        grid[1, at].set(
            title=f"mean reward so far (it joins with {PULLS} pulls)", xlabel="requests"
        )
    grid[0, 0].legend(fontsize=7)
    return [first, save(figure, folder, "e4-cost")]


def _steps(values: np.ndarray) -> np.ndarray:
    """Return the requests of a curve with a point every `EVERY`, the first and the last apart."""
    return np.arange(values.shape[1]) * EVERY


def draw(
    sheets: Mapping[str, Sequence[Sheet]], results: Mapping[str, Sequence[Row]], folder: Path
) -> dict[str, list[str]]:
    """Draw every experiment that ran and return the files' names."""
    known: dict[str, Callable[[Sequence[Sheet]], str | list[str]]] = {
        "E1": lambda found: stationary(found, folder),
        "E2": lambda found: dynamics(
            found, folder, name="e2", model="Gemini", middle="Gemini at a 56th"
        ),
        "E3": lambda found: dynamics(
            found, folder, name="e3", model="Mistral", middle="Mistral earns 0.75"
        ),
        "E4": lambda found: newcomer(found, folder),
        "A": lambda found: appendix.tuning(found, folder),
        "B": lambda found: appendix.prices(found, folder),
        "C": lambda found: appendix.warm_up(found, folder),
        "D": lambda found: appendix.mismatch(found, folder),
        "E": lambda found: appendix.judges(found, folder),
        "F": lambda found: appendix.latency(found, folder),
        "G": lambda found: appendix.recovery(found, folder),
    }
    drawn: dict[str, list[str]] = {}
    for name, found in sheets.items():
        if results[name]:
            files = known[name](found)
            drawn[name] = [files] if isinstance(files, str) else files
    return drawn
