"""The measures of a policy in a world."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.arena import Array, Trace
from benchmarks.elsewhere.line import yardsticks
from benchmarks.elsewhere.world import World

Measured = dict[str, Any]
WINDOW, BEFORE = 1000, 300
KINDS = ("reward", "cost", "budget")


def measured(world: World, trace: Trace) -> Measured:
    """Return by phase (cost ÷ budget, reward), the alarms by kind, and the most and least spent
    over a thousand requests.
    """
    at = np.arange(len(world))
    quality = world.quality[at, trace.chosen]
    ratio = trace.cost / world.budget
    alarms = dict.fromkeys(KINDS, 0)
    for _, alert in trace.alerts:
        if alert.kind == "drift" and alert.signal is not None:
            alarms[alert.signal] += 1
        elif alert.kind == "budget_unreachable":
            alarms["budget"] += (
                1  # the other kinds follow from one of these, or are no matter of chance
            )
    most, least = windows(ratio)
    return {
        "phases": {
            name: (float(ratio[p].mean()), float(quality[p].mean()))
            for name, p in world.phases.items()
        },
        "alarms": alarms,
        "requests": len(world),
        "window_most": most,
        "window_least": least,
        "shares": np.bincount(trace.chosen, minlength=len(world.models)).tolist(),
        **_found(world, trace),
    }


def windows(ratio: Array) -> tuple[float, float]:
    """Return the most and the least spent ÷ budget over any thousand requests in a row after the
    first 300; or all of them.
    """
    after = ratio[BEFORE:] if len(ratio) > BEFORE + WINDOW else ratio
    total = np.concatenate([[0.0], np.cumsum(after)])
    size = min(WINDOW, len(after))
    means = (total[size:] - total[:-size]) / size
    return float(means.max()), float(means.min())


def _found(world: World, trace: Trace) -> dict[str, float]:
    """Return the best model's share after 400 requests, and from which request on it had 95 % of
    the next hundred.
    """
    if "best" not in world.facts:
        return {}
    right = (trace.chosen == world.facts["best"]).astype(float)
    share = np.convolve(right, np.ones(100) / 100.0, mode="valid")
    enough = share >= 0.95
    return {
        "share": float(right[400:].mean()),
        "found_at": float(np.argmax(enough)) if enough.any() else float(len(right)),
    }


def references(world: World) -> dict[str, Measured]:
    """Return the rows of what is computed instead of played."""
    found: dict[str, Measured] = {}
    for phase, of_phase in yardsticks(world).items():
        for name, sample in of_phase.items():
            found.setdefault(name, {"phases": {}})["phases"][phase] = sample
    return found
