"""What nobody announced: prices ×10, tokens that double, bills that never come or come twice, bursts, another budget.

uv run python -m benchmarks.shocks [--quick]
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np

from benchmarks import plots
from benchmarks.arena import NEVER, Episode, play
from benchmarks.policies import POLICIES, make
from benchmarks.protocol import GEMINI, LLAMA, LOOSE, MISTRAL, MODERATE, TIGHT, Draw, declaration, draw, episode, prompts
from benchmarks.report import command, print_figures, print_table
from benchmarks.rows import Job, Row, cells, gather

OFFSET = 8000
CALM = 304
ADAPTING = 300
BURST = 1000
BUDGETS = (TIGHT, MODERATE, LOOSE)
MODELS = {"llama": LLAMA, "mistral": MISTRAL, "gemini": GEMINI}
PRICE_SHOCKS = tuple(f"{model} {change}" for model, change in product(MODELS, ("×10", "÷10")))
OTHERS = ("tokens double", "bills lost", "bills twice", "burst", "budget halved", "budget doubled")


def scenario(drawn: Draw, shock: str, budget: float, in_flight: int, rng: np.random.Generator) -> Episode:
    """Return an episode into which the shock comes 304 measured requests from the start."""
    start, n = drawn.warm + CALM, len(drawn)
    costs, late = drawn.costs.copy(), np.full(n, float(in_flight))
    declared = {0: declaration(drawn.benchmark, budget)}
    twice = None
    match shock.split():
        case [model, "×10"]:
            costs[start:, MODELS[model]] *= 10.0
        case [model, "÷10"]:
            costs[start:, MODELS[model]] /= 10.0
        case ["tokens", _]:
            costs[start:] *= 2.0
        case ["bills", "lost"]:
            late[start:][rng.random(n - start) < 0.1] = NEVER
        case ["bills", _]:
            twice = np.arange(n) >= start
            twice &= rng.random(n) < 0.05
        case ["burst"]:
            late[start : start + BURST] += BURST - np.arange(BURST)  # no bill before the burst is over
        case ["budget", change]:
            declared[start] = declaration(drawn.benchmark, budget * (0.5 if change == "halved" else 2.0))
    played = episode(replace(drawn, costs=costs), declared, phases={}, bill_delay=late, reward_delay=in_flight)
    return replace(played, twice=twice)


def one(job: Job) -> dict[str, tuple[float, ...]]:
    """Play one policy, budget, shock, delay and seed.

    Phases: before; the news on its way; adapting, for 300 requests; after; episode, from the shock to the end. Beyond cost ÷ budget
    and reward: the largest debt of the episode in requests' budgets.
    """
    seed, in_flight = job["seed"], job["in_flight"]
    drawn = draw(seed, offset=OFFSET)
    played = scenario(drawn, job["shock"], job["budget"], in_flight, np.random.default_rng(OFFSET + seed))
    trace = play(make(job["policy"], seed), played)
    start = drawn.warm + CALM
    news = start + in_flight + (BURST if job["shock"] == "burst" else 0)
    spent = trace.cost / trace.budget
    debt = float(np.cumsum(spent[start:] - 1.0).max())
    phases = {
        "before": slice(drawn.warm, start),
        "on its way": slice(start, news),
        "adapting": slice(news, news + ADAPTING),
        "after": slice(news + ADAPTING, len(drawn)),
        "episode": slice(start, len(drawn)),
    }
    return {
        name: (float(spent[phase].mean()), float(trace.reward[phase].mean()), debt)
        for name, phase in phases.items()
        if phase.start < min(phase.stop, len(drawn))
    }


def verdict(rows: list[Row]) -> dict[str, float]:
    """Return by how much the live profile is over budget from 300 requests after the news on, and over the whole episode."""
    figures: dict[str, float] = {}
    live = [r for r in rows if r["policy"] == "live"]
    for in_flight in sorted({r["in_flight"] for r in live}):
        for phase in ("after", "episode"):
            mine = [r for r in live if r["in_flight"] == in_flight and r["phase"] == phase]
            worst = max(mine, key=lambda r: r["cost_over_budget"], default=None)
            if worst is not None:
                figures[f"over_{phase}_{in_flight}"] = worst["cost_over_budget"] - 1.0
    return figures


def run(quick: bool) -> None:
    """Compare how policies take shocks."""
    seeds = 2 if quick else 20
    prompts("val"), prompts("test")
    shocks = ("mistral ×10", "burst") if quick else (*PRICE_SHOCKS, *OTHERS)
    lengths = (30,) if quick else (0, 30, 100)
    jobs: list[Job] = [
        {"policy": name, "budget": budget, "shock": shock, "in_flight": k, "seed": seed}
        for name, budget, shock, k, seed in product(POLICIES, BUDGETS, shocks, lengths, range(seeds))
        if (name == "live" or (k == 30 and name in ("paper", "thompson", "ε-greedy", "random")))
        and not (quick and (budget != MODERATE or name not in ("live", "paper")))
    ]
    rows = gather(one, jobs, extra=("largest_debt",))
    columns = ("policy", "budget", "shock", "in_flight", "phase", "largest_debt")
    rows.sort(key=lambda r: (r["budget"], r["shock"], r["in_flight"], r["policy"], r["phase"]))
    title = f"A shock after {CALM} requests; held-out prompts, {seeds} seeds, ± 95 %; debt in requests' budgets"
    print_table(title, (*columns, "cost ÷ budget", "reward"), cells(rows, *columns))
    if not quick:
        plots.shocks(rows)
    print_figures("shocks", verdict(rows), rows=rows)


if __name__ == "__main__":
    command(run)()
