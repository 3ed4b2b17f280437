"""The floors that the shipped profile must reach in each kind of world, and what it reached."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.arena import Array
from benchmarks.elsewhere.measures import KINDS

Result = dict[str, Any]
HOME = {
    2.3e-4: (0.857, 0.871),
    3.0e-4: (0.871, 0.889),
    6.62e-4: (0.914, 0.919),
    1.87e-3: (0.921, 0.926),
    5.3e-3: (0.926, 0.931),
}
ALARMS_PER_5000 = 0.1
SPAN = 5000.0
NOTEWORTHY = (
    0.005  # reward by which a line must be above the mix before a share of that means anything
)


@dataclass(frozen=True, slots=True)
class Verdict:
    """One line of the table: in which worlds what was measured, the floor, the goal, and whether
    the floor is reached.
    """

    world: str
    what: str
    value: float
    floor: str
    goal: str
    reached: bool


def verdicts(results: Sequence[Result], policy: str = "live") -> list[Verdict]:
    """Return every line that the results have something for."""
    found: list[Verdict] = []
    kinds = dict.fromkeys(r["kind"] for r in results)
    for kind in kinds:
        mine = [r for r in results if r["kind"] == kind]
        played = [r for r in mine if r["policy"] == policy]
        if not played:
            continue
        if kind.startswith("the paper's, cold, no"):
            found += _home(kind, played)
        elif kind.startswith("the paper's"):
            found += _first(kind, mine, policy)
        elif kind == "eleven models, mixed":
            found += _eleven(kind, mine, policy)
        elif kind == "drawn":
            found += _drawn(kind, mine, policy)
        elif kind == "a clear winner":
            found += _winner(kind, played)
        if kind == "eleven models, in turn":
            found += _in_turn(kind, mine, policy)
        if kind.startswith(("eleven", "three")):
            found += _windows(kind, played)
        found += _alarms(kind, played)
    return found


def at_least(
    world: str, what: str, value: float, floor: float, goal: float | None = None
) -> Verdict:
    """Judge a value that must not be lower."""
    return _judged(world, what, value, "≥", floor, goal, bool(value >= floor))


def at_most(
    world: str, what: str, value: float, floor: float, goal: float | None = None
) -> Verdict:
    """Judge a value that must not be higher."""
    return _judged(world, what, value, "≤", floor, goal, bool(value <= floor))


def _judged(
    world: str,
    what: str,
    value: float,
    sign: str,
    floor: float,
    goal: float | None,
    reached: bool,
) -> Verdict:
    hoped = "" if goal is None else f"{sign} {goal:.4g}"
    return Verdict(world, what, value, f"{sign} {floor:.4g}", hoped, reached)


def within(world: str, what: str, value: float, low: float, high: float) -> Verdict:
    """Judge a value that must lie between two."""
    return Verdict(world, what, value, f"{low:g} to {high:g}", "", bool(low <= value <= high))


def mean(results: Sequence[Result], phase: str, j: int) -> float:
    """Return the mean over results of a phase's cost ÷ budget (j 0) or reward (j 1)."""
    return float(np.mean([r["phases"][phase][j] for r in results]))


def _by_budget(results: Sequence[Result], policy: str) -> dict[float, list[Result]]:
    budgets = sorted({r["facts"]["budget"] for r in results})
    return {
        b: [r for r in results if r["facts"]["budget"] == b and r["policy"] == policy]
        for b in budgets
    }


def _home(kind: str, played: list[Result]) -> list[Verdict]:
    found = []
    for budget, mine in _by_budget(played, played[0]["policy"]).items():
        floor, goal = HOME[budget]
        found.append(at_least(kind, f"${budget:g}: reward", mean(mine, "whole", 1), floor, goal))
        found.append(within(kind, f"${budget:g}: cost ÷ B", mean(mine, "whole", 0), 0.97, 1.02))
    return found


def _first(kind: str, results: list[Result], policy: str) -> list[Verdict]:
    mixes, played = _by_budget(results, "best fixed mix"), _by_budget(results, policy)
    return [
        at_least(
            kind,
            f"${b:g}: reward − mix",
            mean(played[b], "first 400", 1) - mean(mixes[b], "first 400", 1),
            -0.005,
            0.0,
        )
        for b in played
    ]


def _eleven(kind: str, results: list[Result], policy: str) -> list[Verdict]:
    mixes, lines, played = (
        _by_budget(results, name) for name in ("best fixed mix", "hindsight", policy)
    )
    found = []
    for b, mine in played.items():
        mix, line = (mean(of[b], "whole", 1) for of in (mixes, lines))
        found.append(
            at_least(
                kind,
                f"${b:g}: last 1,000 − mix",
                mean(mine, "last 1,000", 1) - mix,
                -0.005,
                line - 0.005 - mix,
            )
        )
        found.append(
            at_least(kind, f"${b:g}: whole run − mix", mean(mine, "whole", 1) - mix, -0.03, 0.0)
        )
        found.append(
            within(kind, f"${b:g}: cost ÷ B, last 1,000", mean(mine, "last 1,000", 0), 0.93, 1.03)
        )
    return found


def _in_turn(kind: str, results: list[Result], policy: str) -> list[Verdict]:
    mixes, played = _by_budget(results, "best fixed mix"), _by_budget(results, policy)
    phases = sorted(
        phase for phase in played[min(played)][0]["phases"] if phase.startswith("last third")
    )
    return [
        at_least(
            kind,
            f"${b:g}: {phase} − mix",
            mean(mine, phase, 1) - mean(mixes[b], phase, 1),
            -0.02,
            -0.005,
        )
        for b, mine in played.items()
        for phase in phases
    ]


def _windows(kind: str, played: list[Result]) -> list[Verdict]:
    """Judge spend over every thousand requests in a row after the first 300: the mean over seeds of
    the worst thousand.
    """
    found = []
    for budget in sorted({r["facts"].get("budget", 0.0) for r in played}):
        mine = [r for r in played if r["facts"].get("budget", 0.0) == budget]
        named = f"${budget:g}: " if budget else ""
        found.append(
            at_most(
                kind,
                f"{named}cost ÷ B, worst 1,000",
                float(np.mean([r["window_most"] for r in mine])),
                1.05,
            )
        )
    return found


def _drawn(kind: str, results: list[Result], policy: str) -> list[Verdict]:
    of = {
        name: {r["seed"]: r["phases"] for r in results if r["policy"] == name}
        for name in (policy, "best fixed mix", "hindsight")
    }
    worlds = sorted(of[policy])

    def values(name: str, phase: str, j: int) -> Array:
        return np.array([of[name][w][phase][j] for w in worlds])

    gained = values(policy, "learned", 1) - values("best fixed mix", "learned", 1)
    line = values("hindsight", "learned", 1) - values("best fixed mix", "learned", 1)
    spent, whole = values(policy, "learned", 0), values(policy, "whole", 0)
    some = line >= NOTEWORTHY
    found = [
        at_least(kind, "share with reward ≥ mix − 0.01", float((gained >= -0.01).mean()), 0.95),
        at_least(
            kind, "share with reward ≥ mix − 0.005", float((gained >= -0.005).mean()), 0.0, 0.95
        ),
        at_least(kind, "share with reward ≥ mix − 0.03", float((gained >= -0.03).mean()), 0.99),
        at_least(kind, "share with spend ≤ 1.05 B", float((spent <= 1.05).mean()), 0.95),
        at_most(kind, "most spent ÷ B", float(spent.max()), 1.15),
        at_least(kind, "share with spend ≤ 1.05 B, whole run", float((whole <= 1.05).mean()), 0.95),
        at_most(kind, "most spent ÷ B, whole run", float(whole.max()), 1.15),
    ]
    if some.any():
        found.append(
            at_least(
                kind,
                "median share of the line's gain",
                float(np.median((gained / np.maximum(line, 1e-9))[some])),
                0.5,
                0.8,
            )
        )
    return found


def _winner(kind: str, played: list[Result]) -> list[Verdict]:
    share, at = (float(np.mean([r[name] for r in played])) for name in ("share", "found_at"))
    return [
        at_least(kind, "share after 400 requests", share, 0.95),
        at_most(kind, "95 % of the traffic from request", at, 400.0, 250.0),
    ]


def _alarms(kind: str, played: list[Result]) -> list[Verdict]:
    """Judge the false alarms of each kind per 5,000 requests where nothing drifts, each budget by
    itself.
    """
    calm = [r for r in played if r["stationary"]]
    found = []
    for signal in KINDS:
        rates: list[float] = []
        for budget in {r["facts"].get("budget") for r in calm}:
            mine = [r for r in calm if r["facts"].get("budget") == budget]
            rates.append(
                SPAN * sum(r["alarms"][signal] for r in mine) / sum(r["requests"] for r in mine)
            )
        if rates:
            found.append(
                at_most(kind, f"false alarms ({signal}) per 5,000", max(rates), ALARMS_PER_5000)
            )
    return found
