"""Compare policies under unannounced shocks: prices ×10, doubled tokens, lost or repeated bills,
bursts, another budget.

uv run python -m benchmarks.shocks [--quick]
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np

from benchmarks import plots
from benchmarks.arena import NEVER, Episode, Trace, play_each
from benchmarks.policies import POLICIES, make
from benchmarks.protocol import (
    GEMINI,
    LLAMA,
    LOOSE,
    MISTRAL,
    MODERATE,
    TIGHT,
    Draw,
    declaration,
    draw,
    episode,
    prompts,
)
from benchmarks.report import EVERYTHING, Choice, command, print_figures, print_table
from benchmarks.rows import Job, Result, Row, cells, gather_alike

OFFSET = 8000
CALM = 304
ADAPTING = 300
AT_LEAST = 100
BURST = 1000
BUDGETS = (TIGHT, MODERATE, LOOSE)
MODELS = {"llama": LLAMA, "mistral": MISTRAL, "gemini": GEMINI}
PRICE_SHOCKS = tuple(f"{model} {change}" for model, change in product(MODELS, ("×10", "÷10")))
OTHERS = ("tokens double", "bills lost", "bills twice", "burst", "budget halved", "budget doubled")


def scenario(
    drawn: Draw, shock: str, budget: float, in_flight: int, rng: np.random.Generator
) -> Episode:
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
            # No bill comes before the burst is over.
            late[start : start + BURST] += BURST - np.arange(BURST)
        case ["budget", change]:
            declared[start] = declaration(
                drawn.benchmark, budget * (0.5 if change == "halved" else 2.0)
            )
    played = episode(
        replace(drawn, costs=costs), declared, phases={}, bill_delay=late, reward_delay=in_flight
    )
    return replace(played, twice=twice)


def each(jobs: list[Job]) -> list[Result]:
    """Play jobs that differ in the shock alone."""
    first = jobs[0]
    seed, budget, in_flight = first["seed"], first["budget"], first["in_flight"]
    drawn = draw(seed, offset=OFFSET)
    episodes = [
        scenario(drawn, job["shock"], budget, in_flight, np.random.default_rng(OFFSET + seed))
        for job in jobs
    ]
    start = drawn.warm + CALM
    traces = play_each(make(first["policy"], seed), episodes, alike=start)
    return [
        result(trace, job["shock"], drawn.warm, in_flight)
        for trace, job in zip(traces, jobs, strict=True)
    ]


def news_of(trace: Trace, shock: str, start: int, in_flight: int) -> int:
    """Return before which request the news can have arrived: the first bill at the new price, or
    from within the shock.
    """
    model = MODELS.get(shock.split(maxsplit=1)[0])
    if shock == "burst":
        return start + in_flight + BURST
    if model is None:
        return start + in_flight
    calls = np.flatnonzero(trace.chosen[start:] == model)
    return start + int(calls[0]) + in_flight if len(calls) else len(trace.chosen)


def result(trace: Trace, shock: str, warm: int, in_flight: int) -> Result:
    """Return by phase cost ÷ budget, reward, the largest debt of the episode in requests' budgets,
    and what was overspent before the news, as a share of the episode's budget.

    Phases: before; the news on its way; adapting, for 300 requests; after, if it has 100; episode,
    from the shock on.
    """
    start, end = warm + CALM, len(trace.chosen)
    news = news_of(trace, shock, start, in_flight)
    spent = trace.cost / trace.budget
    debt = float(np.cumsum(spent[start:] - 1.0).max())
    unseen = float((spent[start:news] - 1.0).sum()) / (end - start)
    phases = {
        "before": (warm, start, 1),
        "on its way": (start, news, 1),
        "adapting": (news, min(news + ADAPTING, end), ADAPTING),
        "after": (news + ADAPTING, end, AT_LEAST),
        "episode": (start, end, 1),
    }
    return {
        name: (float(spent[low:high].mean()), float(trace.reward[low:high].mean()), debt, unseen)
        for name, (low, high, least) in phases.items()
        if high - low >= least
    }


def verdict(rows: list[Row]) -> dict[str, float]:
    """Return by how much the live profile is over budget from 300 requests after the news on, and
    over the whole episode.
    """
    figures: dict[str, float] = {}
    live = [r for r in rows if r["policy"] == "live"]
    for in_flight in sorted({r["in_flight"] for r in live}):
        for phase in ("after", "episode"):
            mine = [r for r in live if r["in_flight"] == in_flight and r["phase"] == phase]
            worst = max(mine, key=lambda r: r["cost_over_budget"], default=None)
            if worst is not None:
                figures[f"over_{phase}_{in_flight}"] = worst["cost_over_budget"] - 1.0
    return figures


def run(quick: bool, chosen: Choice = EVERYTHING) -> None:
    """Compare how policies take shocks."""
    seeds = chosen.seeds or (2 if quick else 20)
    prompts("val"), prompts("test")
    shocks = ("mistral ×10", "burst") if quick else (*PRICE_SHOCKS, *OTHERS)
    lengths = (30,) if quick else (0, 30, 100)
    jobs: list[Job] = [
        {"policy": name, "budget": budget, "shock": shock, "in_flight": k, "seed": seed}
        for name, budget, shock, k, seed in product(
            chosen.of(POLICIES), BUDGETS, shocks, lengths, range(seeds)
        )
        if (name == "live" or (k == 30 and name in ("paper", "thompson", "ε-greedy", "random")))
        and not (quick and (budget != MODERATE or name not in ("live", "paper")))
    ]
    rows = gather_alike(each, jobs, differ=("shock",), extra=("largest_debt", "unseen"))
    columns = ("policy", "budget", "shock", "in_flight", "phase", "largest_debt", "unseen")
    rows.sort(key=lambda r: (r["budget"], r["shock"], r["in_flight"], r["policy"], r["phase"]))
    title = (
        f"A shock after {CALM} requests; held-out prompts, {seeds} seeds, ± 95 %; "
        "largest debt in requests' budgets, overspent before the news as a share of the episode's"
    )
    print_table(title, (*columns, "cost ÷ budget", "reward"), cells(rows, *columns))
    if not quick and not chosen.policies:
        plots.shocks(rows)
    print_figures("shocks", verdict(rows), rows=rows)


if __name__ == "__main__":
    command(run)()
