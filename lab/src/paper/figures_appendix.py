"""The figures of the paper's appendices, drawn from what was run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from paper.canvas import COLOURS, PROFILES, axes, band, column, save, stacked, violins
from paper.frontier import frontier, knee
from paper.outcome import Sheet, checkpoints
from paper.phases import LEVELS
from paper.tuning import FAILING, GRID, goods

WARM, COLD = "#0072B2", "#E69F00"
MISTRAL_REWARD = 0.923


def tuning(sheets: Sequence[Sheet], folder: Path) -> str:
    """Draw both goods of every setting, the frontier and its knee."""
    figure, grid = axes(1, 2)
    for axis, (name, title) in zip(
        grid[0], (("500", "with priors, T_adapt 500"), ("cold", "cold")), strict=True
    ):
        one, other = (good.mean(axis=1) for good in goods(sheets, name, FAILING))
        kept, at = frontier(one, other), knee(one, other)
        axis.plot(one, other, ".", color="#999999")
        axis.plot(one[kept], other[kept], "o-", color=WARM, markersize=4)
        axis.plot(
            one[at],
            other[at],
            "*",
            color="#D55E00",
            markersize=12,
            label=f"knee: α {GRID[at][0]:g}, γ {GRID[at][1]:g}",
        )
        axis.set(
            xlabel="area under reward over cost", ylabel="reward while Mistral fails", title=title
        )
        axis.legend(fontsize=7)
    return save(figure, folder, "a")


def prices(sheets: Sequence[Sheet], folder: Path) -> str:
    """Draw the spread of real costs per model in the order of list prices, and how often pairs keep
    that order.
    """
    names = [name for name in ("K 3", "K 4") if f"{name} prompts" in sheets[0].rows]
    figure, grid = axes(len(names), 2, height=2.4)
    for (spread, kept), name in zip(grid, names, strict=True):
        models = [
            curve.removeprefix(f"{name} ") for curve in sheets[0].curves if curve.startswith(name)
        ]
        quantiles = [
            np.array(sheets[0].curves[f"{name} {model}"]["here"]) / np.log(10.0) for model in models
        ]
        spread.violinplot(quantiles, positions=range(len(models)), showmeans=True)
        spread.set_xticks(
            range(len(models)),
            [f"{m}\nc̃ {sheets[0].rows[f'{name} {m} c̃']['here']:.3f}" for m in models],
        )
        spread.set(ylabel="log₁₀ $ per request", title=f"{name}: real costs, by list price")
        pairs = [row for row in sheets[0].rows if row.startswith(name) and " < " in row]
        shares = [sheets[0].rows[row]["here"] for row in pairs]
        kept.barh(
            [row.removeprefix(f"{name} ").removesuffix(" %") for row in pairs],
            shares,
            color=["#009E73" if share > 99 else "#D55E00" for share in shares],
        )
        kept.set(xlim=(0, 105), title=f"{name}: % of prompts that keep the order")
    return save(figure, folder, "b")


def warm_up(sheets: Sequence[Sheet], folder: Path) -> str:
    """Draw each seed's regret, with priors and cold."""
    figure, grid = axes(1, 2, width=5.4)
    names = [f"{budget}{kind}" for budget in "UTML" for kind in ("", " cold")]
    for axis, profile in zip(grid[0], PROFILES, strict=True):
        violins(
            axis, [column(sheets, f"{name} regret", profile) for name in names], [WARM, COLD] * 4
        )
        chance = np.median(column(sheets, "U random regret", "here"))
        axis.plot(0.5, chance, "*", color="#777777", markersize=10, label="random, U")
        axis.set_xticks(range(len(names)), names, rotation=30)
        axis.set(title=f"{profile}: regret per seed", ylim=(30, 320))
    grid[0, 0].legend(fontsize=7)
    return save(figure, folder, "c")


def mismatch(sheets: Sequence[Sheet], folder: Path) -> list[str]:
    """Draw median regrets as a map of prior and strength, and each seed's."""
    kinds = tuple(
        row.partition(" n_eff 10 regret")[0]
        for row in sheets[0].rows
        if row.endswith(" n_eff 10 regret")
    )
    figure, grid = axes(2, 2, height=2.3)
    for row, profile in zip(grid, PROFILES, strict=True):
        for axis, what in zip(row, ("regret", "R@200"), strict=True):
            table = np.array(
                [
                    [
                        np.median(column(sheets, f"{k} n_eff {n} {what}", profile))
                        for n in (10, 100, 1000)
                    ]
                    for k in kinds
                ]
            )
            axis.imshow(table, cmap="RdYlGn_r", aspect="auto")
            axis.grid(visible=False)
            for (i, j), value in np.ndenumerate(table):
                axis.text(j, i, f"{value:.1f}", ha="center", va="center", fontsize=7)
            axis.set_xticks(range(3), ["n_eff 10", "100", "1000"])
            axis.set_yticks(range(5), kinds)
            cold = np.median(column(sheets, f"cold {what}", profile))
            axis.set(title=f"{profile}: median {what} (cold {cold:.1f})")
    first = save(figure, folder, "d")
    figure, grid = axes(1, 3, width=3.6)
    for axis, strength in zip(grid[0], (10, 100, 1000), strict=True):
        groups = [column(sheets, "cold regret", "paper")]
        groups += [column(sheets, f"{kind} n_eff {strength} regret", "paper") for kind in kinds]
        violins(
            axis, groups, ["#777777", *[COLOURS[key] for key in ("M", "U", "L", "forgetting", "T")]]
        )
        axis.set_xticks(range(6), ("cold", *kinds), rotation=30)
        axis.set(title=f"paper: regret per seed, n_eff {strength}")
    return [first, save(figure, folder, "d-seeds")]


def judges(sheets: Sequence[Sheet], folder: Path) -> str:
    """Draw regret over requests under each judge, no budget."""
    figure, grid = axes(1, 3, width=3.6)
    for axis, judge in zip(grid[0], ("R1", "GPT", "Claude"), strict=True):
        for policy, colour in (("random", "#777777"), ("paper", WARM), ("live", COLD)):
            values = stacked(sheets, judge, policy)
            if values is not None:
                band(axis, checkpoints(1328)[: values.shape[1]], values, color=colour, label=policy)
        axis.set(title=f"{judge}: regret, no budget", xlabel="requests")
    grid[0, 0].legend(fontsize=7)
    return save(figure, folder, "e")


def latency(sheets: Sequence[Sheet], folder: Path) -> str:
    """Draw microseconds per decision and reward, and cycles per second."""
    figure, grid = axes(1, 3, width=4.0, height=3.4)
    rows = ("router", "bare Sherman–Morrison", "inverse per reward", "inverse per decision")
    parts = ("route p50 µs", "update p50 µs", "cycles/s")
    for axis, part in zip(grid[0], parts, strict=True):
        values: dict[str, float] = {}
        for d in (26, 385):
            for row in rows:
                for policy, value in sheets[0].rows[f"d {d} {row} {part}"].items():
                    values[f"{policy if row == 'router' else row}, d {d}"] = value
        axis.barh(
            list(values),
            list(values.values()),
            color=[WARM if name.endswith("d 26") else COLD for name in values],
        )
        axis.set(xscale="log", title=part)
        if part != parts[0]:
            axis.set_yticklabels([])
    return save(figure, folder, "f")


def recovery(sheets: Sequence[Sheet], folder: Path) -> str:
    """Draw what is recovered over how deep the fall was, and how it comes back."""
    figure, grid = axes(1, 2)
    fall = [100.0 * (1.0 - level / MISTRAL_REWARD) for level in LEVELS]
    for profile, colour in zip(PROFILES, (WARM, COLD), strict=True):
        for length, style in ((608, "-"), (1216, "--")):
            values = np.array(
                [column(sheets, f"{level:g} P3 of {length} ÷P1 %", profile) for level in LEVELS]
            ).T
            band(
                grid[0, 0],
                fall,
                values,
                color=colour,
                linestyle=style,
                label=f"{profile}, {length} prompts",
            )
    grid[0, 0].axhline(97.0, color="#777777", linestyle=":")
    grid[0, 0].invert_xaxis()
    grid[0, 0].set(xlabel="fall of Mistral's quality, %", title="reward after ÷ before, %")
    grid[0, 0].legend(fontsize=7)
    for level, colour in zip(
        (0.3, 0.5, 0.6, 0.7), ("#D55E00", "#0072B2", "#CC79A7", "#009E73"), strict=True
    ):
        for profile, style in zip(PROFILES, ("-", "--"), strict=True):
            back = stacked(sheets, f"{level:g}", profile)
            if back is not None:
                label = f"{profile}, to {level:g}"
                band(
                    grid[0, 1],
                    np.arange(back.shape[1]) * 20,
                    back,
                    color=colour,
                    linestyle=style,
                    label=label,
                )
    grid[0, 1].set(xlabel="requests of phase 3", title="reward of the last 50")
    grid[0, 1].legend(fontsize=6, ncol=2)
    return save(figure, folder, "g")
