"""The table of all worlds: one row per kind, budget, phase and policy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.elsewhere.floors import Verdict
from benchmarks.report import print_table
from benchmarks.rows import Row, half_width

Result = dict[str, Any]


def rows(results: Sequence[Result]) -> list[Row]:
    """Return means over seeds, or over drawn worlds, of cost ÷ budget and reward, with the latter's
    distance to the mix.
    """
    groups: dict[tuple[str, float, str, str], list[Result]] = {}
    for r in results:
        for phase in r["phases"]:
            groups.setdefault(
                (r["kind"], r["facts"].get("budget", 0.0), phase, r["policy"]), []
            ).append(r)
    found = []
    for (kind, budget, phase, policy), mine in groups.items():
        cost, reward = ([r["phases"][phase][j] for r in mine] for j in (0, 1))
        mix = [r["phases"][phase][1] for r in groups[kind, budget, phase, "best fixed mix"]]
        found.append(
            {
                "world": kind,
                "budget": budget,
                "phase": phase,
                "policy": policy,
                "cost_over_budget": float(np.mean(cost)),
                "cost_over_budget_most": float(np.max(cost)),
                "reward": float(np.mean(reward)),
                "reward_half_width": half_width(reward),
                "above_mix": float(np.mean(reward) - np.mean(mix)),
                "worlds": len(mine),
            }
        )
    return sorted(found, key=lambda r: (r["world"], r["budget"], r["phase"], r["policy"]))


def print_rows(found: Sequence[Row]) -> None:
    """Print what every policy earned and spent."""
    columns = (
        "world",
        "budget",
        "phase",
        "policy",
        "cost ÷ B",
        "most",
        "reward",
        "− mix",
        "worlds",
    )
    cells = [
        [
            r["world"],
            f"{r['budget']:g}" if r["budget"] else "drawn",
            r["phase"],
            r["policy"],
            f"{r['cost_over_budget']:.3f}",
            f"{r['cost_over_budget_most']:.3f}",
            f"{r['reward']:.4f} ± {r['reward_half_width']:.4f}",
            f"{r['above_mix']:+.4f}",
            r["worlds"],
        ]
        for r in found
    ]
    print_table(
        "Every world and policy; ± 95 % over seeds, over worlds where they are drawn",
        columns,
        cells,
    )


def print_verdicts(found: Sequence[Verdict], policy: str) -> None:
    """Print what was to be reached, and whether it was."""
    cells = [
        [v.world, v.what, f"{v.value:.4f}", v.floor, v.goal, "pass" if v.reached else "FAIL"]
        for v in found
    ]
    print_table(f"{policy}: floors", ("world", "what", "measured", "floor", "goal", ""), cells)
