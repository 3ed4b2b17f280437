"""Measure each side on one history."""

from __future__ import annotations

from benchmarks.arena import Array
from benchmarks.periods.histories import draw
from benchmarks.periods.playing import Outcome, Side, hindsight, play
from benchmarks.rows import Row

TENTH = 10
"""The last part of a month that is measured by itself, of so many."""


def one(number: int, *, sides: tuple[Side, ...], requests: int, shape: Array | None) -> list[Row]:
    """Return a row for each side of one history."""
    history = draw(number, requests=requests, shape=shape)
    line = hindsight(history)
    told = {
        "number": number,
        "event": history.event,
        "world": history.world,
        "late": history.late,
        "requests": len(line.cost),
    }
    outcomes: dict[str, Outcome] = {"hindsight": line}
    outcomes |= {side: play(history, side) for side in sides}
    return [
        told | {"side": side} | _measures(outcome, line, history.usd)
        for side, outcome in outcomes.items()
    ]


def _measures(outcome: Outcome, line: Outcome, usd: float) -> dict[str, float]:
    """Return spend ÷ budget, reward − the line's, and by how much more that is in the last
    tenth."""
    beyond, last = outcome.reward - line.reward, len(line.reward) // TENTH
    return {
        "spent": float(outcome.cost.sum()) / usd,
        "reward": float(outcome.reward.mean()),
        "beyond": float(beyond.mean()),
        "last_tenth": float(beyond[-last:].mean() - beyond[:-last].mean()),
        "refused": float(outcome.refused),
    }
