"""Measure how far spend is from the budget with late bills and rewards, while a model's price is
cut and restored.

uv run python -m benchmarks.inflight [--quick]
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np

from benchmarks.arena import delays, play
from benchmarks.policies import POLICIES, make
from benchmarks.protocol import (
    GEMINI,
    LOOSE,
    MODERATE,
    PHASE,
    TIGHT,
    declaration,
    draw,
    episode,
    prompts,
    three_phases,
)
from benchmarks.report import EVERYTHING, Choice, command, print_figures, print_table
from benchmarks.rows import Job, Row, cells, gather, outcomes
from benchmarks.yardsticks import best_fixed_mix
from router_state.config import Price

OFFSET = 8000
IN_FLIGHT = (0, 10, 30, 100, 300, 1000)
KINDS = ("fixed", "exponential", "heavy")
BUDGETS = (TIGHT, MODERATE, LOOSE)
CUT = Price(0.1, 0.1)
CUT_COSTS = 0.1 / 5.625


def one(job: Job) -> dict[str, tuple[float, ...]]:
    """Play one policy, budget, kind and length of delay, and seed."""
    seed, budget = job["seed"], job["budget"]
    drawn = draw(seed, offset=OFFSET, phases=True)
    phases = three_phases(drawn.warm)
    costs = drawn.costs.copy()
    costs[phases["P2"], GEMINI] *= CUT_COSTS
    listed = declaration(drawn.benchmark, budget)
    cut = declaration(drawn.benchmark, budget, prices={drawn.benchmark.models[GEMINI]: CUT})
    rng = np.random.default_rng(OFFSET + seed)
    late = [delays(len(drawn), job["in_flight"], job["delay"], rng) for _ in ("bills", "rewards")]
    declared = {0: listed, phases["P2"].start: cut, phases["P3"].start: listed}
    played = episode(
        replace(drawn, costs=costs),
        declared,
        phases=phases,
        bill_delay=late[0],
        reward_delay=late[1],
    )
    whole = slice(drawn.warm, drawn.warm + 3 * PHASE)
    return outcomes(play(make(job["policy"], seed), played), phases | {"whole": whole})


def binding(budget: float, phase: str) -> bool:
    """Tell whether a budget is less than the best models would cost in a phase."""
    test = prompts("test")
    costs = test.costs.copy()
    if phase == "P2":
        costs[:, GEMINI] *= CUT_COSTS
    return best_fixed_mix(test.rewards, costs, budget)[0] > 0.999


def verdict(rows: list[Row]) -> dict[str, float]:
    """Return the live profile's largest distance from the budget in a binding phase, by requests in
    flight.
    """
    live = [r for r in rows if r["policy"] == "live"]
    figures: dict[str, float] = {}
    for low, high, phases in (
        (0, 100, ("P1", "P3")),
        (300, 300, ("P1", "P3")),
        (1000, 1000, ("whole",)),
    ):
        off = [
            r["cost_over_budget"] - 1.0
            for r in live
            if low <= r["in_flight"] <= high
            and r["phase"] in phases
            and (r["phase"] != "whole" or r["budget"] == TIGHT)
        ]
        if off:
            figures |= {f"over_budget_{high}": max(off), f"under_budget_{high}": -min(off)}
    over = [
        r["cost_over_budget"]
        for r in live
        if r["phase"] == "P2" or (r["in_flight"] == 1000 and r["phase"] == "whole")
    ]
    return figures | {"most_spent_elsewhere": max(over)}


def run(quick: bool, chosen: Choice = EVERYTHING) -> None:
    """Compare policies with 0 to 1,000 requests in flight through a price cut and its end."""
    seeds = chosen.seeds or (2 if quick else 20)
    lengths = (100,) if quick else IN_FLIGHT
    budgets = (MODERATE,) if quick else BUDGETS
    prompts("val"), prompts("test")
    jobs: list[Job] = [
        {"policy": name, "budget": budget, "in_flight": k, "delay": kind, "seed": seed}
        for name, budget, k, kind, seed in product(
            chosen.of(POLICIES), budgets, lengths, KINDS, range(seeds)
        )
        if (kind == "fixed" or k > 0) and (kind == "fixed" or name in ("live", "paper"))
    ]
    rows = gather(one, jobs)
    columns = ("policy", "budget", "delay", "in_flight", "phase")
    rows.sort(key=lambda r: (r["budget"], r["delay"], r["in_flight"], r["policy"], r["phase"]))
    title = (
        f"Price of the dearest model cut in P2, restored in P3; held-out prompts, {seeds} seeds, "
        "± 95 %"
    )
    print_table(title, (*columns, "cost ÷ budget", "reward"), cells(rows, *columns))
    if not quick and not chosen.policies:
        from benchmarks import plots

        plots.inflight(rows)
    print_figures("inflight", verdict(rows), rows=rows)


if __name__ == "__main__":
    command(run)()
