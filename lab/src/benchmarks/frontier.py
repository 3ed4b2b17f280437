"""Measure quality per dollar of every policy, at seven budgets, with nothing and with a hundred
requests in flight.

uv run python -m benchmarks.frontier [--quick]
"""

from __future__ import annotations

from itertools import product

from benchmarks import plots
from benchmarks.arena import play
from benchmarks.policies import POLICIES, make
from benchmarks.protocol import BUDGETS, TIGHT, declaration, draw, episode, prompts
from benchmarks.report import EVERYTHING, Choice, command, print_figures, print_table
from benchmarks.rows import Job, Row, cells, gather, outcomes, row
from benchmarks.yardsticks import best_fixed_mix, hindsight

OFFSET = 3000
IN_FLIGHT = (0, 100)
FLOOR = {
    2.9e-5: 0.793,
    8.3e-5: 0.825,
    2.3e-4: 0.875,
    3.0e-4: 0.891,
    6.62e-4: 0.919,
    1.87e-3: 0.928,
    5.3e-3: 0.932,
    1.5e-2: 0.934,
}
FLOOR_LATE = {**FLOOR, 8.3e-5: 0.823, 3.0e-4: 0.893, 6.62e-4: 0.921, 1.87e-3: 0.927}
SLACK = 0.002
LEAST, MOST = 0.97, 1.02


def one(job: Job) -> dict[str, tuple[float, ...]]:
    """Play one policy, budget, delay and seed."""
    drawn = draw(job["seed"], offset=OFFSET)
    phases = {"test": slice(drawn.warm, len(drawn))}
    declared = {0: declaration(drawn.benchmark, job["budget"])}
    played = episode(
        drawn, declared, phases=phases, bill_delay=job["in_flight"], reward_delay=job["in_flight"]
    )
    return outcomes(play(make(job["policy"], job["seed"]), played), phases)


def yardsticks(budget: float) -> list[Row]:
    """Return the rows of what is computed, not played."""
    warm, test = prompts("val"), prompts("test")
    mix = best_fixed_mix(test.rewards, test.costs, budget)
    line = hindsight(warm, test.contexts, test.rewards, test.costs, budget)
    return [
        row([mix], policy="best fixed mix", budget=budget, in_flight=0, phase="test"),
        row([line], policy="hindsight", budget=budget, in_flight=0, phase="test"),
    ]


def verdict(rows: list[Row]) -> dict[str, float]:
    """Return how far the live profile is above the floors and the hindsight line, at its worst."""
    live = [r for r in rows if r["policy"] == "live"]
    line = {r["budget"]: r["reward"] for r in rows if r["policy"] == "hindsight"}
    late = [(r, (FLOOR_LATE if r["in_flight"] else FLOOR)[r["budget"]]) for r in live]
    bound = [r["cost_over_budget"] for r in live if r["budget"] < max(BUDGETS)]
    return {
        "reward_above_floor": min(r["reward"] - floor + SLACK for r, floor in late),
        "reward_above_hindsight": min(r["reward"] - line[r["budget"]] for r in live),
        "cost_over_budget_least": min(bound),
        "cost_over_budget_most": max(bound),
    }


def run(quick: bool, chosen: Choice = EVERYTHING) -> None:
    """Compare policies at seven budgets with nothing and with a hundred requests in flight."""
    seeds = chosen.seeds or (2 if quick else 20)
    budgets = (6.62e-4,) if quick else tuple(sorted({*BUDGETS, TIGHT}))
    prompts("val"), prompts("test")
    jobs: list[Job] = [
        {"policy": name, "budget": budget, "in_flight": in_flight, "seed": seed}
        for name, budget, in_flight, seed in product(
            chosen.of(POLICIES), budgets, IN_FLIGHT, range(seeds)
        )
    ]
    rows = gather(one, jobs)
    for budget in budgets:
        rows += yardsticks(budget)
    rows.sort(key=lambda r: (r["budget"], r["in_flight"], r["policy"]))
    columns = ("policy", "budget", "in_flight")
    title = f"Held-out prompts, {seeds} seeds, ± 95 %"
    print_table(title, (*columns, "cost ÷ budget", "reward"), cells(rows, *columns))
    if not quick and not chosen.policies:
        plots.frontier(rows)
    print_figures("frontier", verdict(rows), rows=rows)


if __name__ == "__main__":
    command(run)()
