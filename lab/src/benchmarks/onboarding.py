"""Compare policies when a model joins at runtime: whether it is found if good, dropped if bad, and
within the budget.

    [PB_DATA=FOLDER] uv run python -m benchmarks.onboarding [--quick]

With the four-model data of `PB_DATA` the newcomer is the fourth model; from the wheel alone it is
Mistral, held out before.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np

from benchmarks import plots
from benchmarks.arena import NEVER, Trace, play_each
from benchmarks.data import extended_folder
from benchmarks.policies import POLICIES, make
from benchmarks.protocol import LOOSE, MODERATE, TIGHT, Draw, declaration, draw, episode, prompts
from benchmarks.report import EVERYTHING, Choice, command, print_figures, print_table
from benchmarks.rows import Job, Result, Row, cells, gather_alike
from benchmarks.yardsticks import hindsight_choices
from router_state.config import ModelConfig, Price, RouterConfig

OFFSET = 9000
BUDGETS = (TIGHT, MODERATE, LOOSE, None)
KINDS = ("good and cheap", "good and dear", "bad and cheap")
ADOPTED, OF_LAST, FOR = 10, 100, 50
QUARTERS = 4
NEVER_ADOPTED = -1.0
LINE = "hindsight"


def newcomer(drawn: Draw) -> int:
    """Return the column of the model that joins."""
    return len(drawn.benchmark.models) - 1 if len(drawn.benchmark.models) > 3 else 1


def scenario(drawn: Draw, kind: str, budget: float | None) -> tuple[Draw, dict[int, RouterConfig]]:
    """Return rewards and costs of this kind of newcomer, and who is in the portfolio when."""
    k = newcomer(drawn)
    name, listed = drawn.benchmark.models[k], drawn.benchmark.prices[k]
    factor = 10.0 if kind == "good and dear" else 1.0
    price = Price(listed.input_price_per_m * factor, listed.output_price_per_m * factor)
    rewards, costs = drawn.rewards.copy(), drawn.costs.copy()
    rewards[:, k] *= 0.5 if kind == "bad and cheap" else 1.0
    costs[:, k] *= factor
    before = declaration(drawn.benchmark, budget, without=name)
    after = replace(before, models={**before.models, name: ModelConfig(price)})
    return replace(drawn, rewards=rewards, costs=costs), {0: before, drawn.warm: after}


def adopted_at(trace: Trace, column: int, start: int) -> float:
    """Return after how many requests the newcomer had been its score's choice in 10 of the last
    100, for 50 in a row; −1: never.
    """
    by_score = (trace.chosen[start:] == column) & (np.array(trace.reason[start:]) != "onboarding")
    total = np.concatenate([np.zeros(OF_LAST), np.cumsum(by_score)])
    enough = total[OF_LAST:] - total[:-OF_LAST] >= ADOPTED
    held = np.convolve(enough, np.ones(FOR), mode="valid") == FOR
    return float(np.argmax(held) + 1) if held.any() else NEVER_ADOPTED


def one(job: Job) -> Result:
    """Play one policy, budget, kind of newcomer, delay and seed; by quarters of the measured
    requests and as a whole.
    """
    return each([job])[0]


def each(jobs: list[Job]) -> list[Result]:
    """Play jobs that differ in the kind of newcomer alone."""
    first = jobs[0]
    seed, budget, late = first["seed"], first["budget"], first["in_flight"]
    drawn = draw(seed, offset=OFFSET, folder=extended_folder())
    told = [scenario(drawn, job["newcomer"], budget) for job in jobs]
    episodes = [
        episode(known, declared, phases={}, bill_delay=late, reward_delay=late)
        for known, declared in told
    ]
    if first["policy"] == LINE:
        traces = [knowing(known, budget) for known, _ in told]
    else:
        traces = play_each(make(first["policy"], seed), episodes, alike=drawn.warm)
    return [result(trace, newcomer(drawn), drawn.warm, budget) for trace in traces]


def knowing(drawn: Draw, budget: float | None) -> Trace:
    """Return what hindsight would have chosen with every model there from the start: see
    `yardsticks.hindsight_choices`.
    """
    n = len(drawn)
    warm = replace(
        drawn.benchmark,
        contexts=drawn.contexts[: drawn.warm],
        rewards=drawn.rewards[: drawn.warm],
        costs=drawn.costs[: drawn.warm],
    )
    rest = slice(drawn.warm, n)
    chosen = hindsight_choices(warm, drawn.contexts[rest], drawn.costs[rest], budget or NEVER)
    trace = Trace.start(n)
    rows = np.arange(drawn.warm, n)
    trace.chosen[rest] = chosen
    trace.reward[rest], trace.cost[rest] = drawn.rewards[rows, chosen], drawn.costs[rows, chosen]
    trace.reason = ["hindsight"] * n
    return trace


def result(trace: Trace, k: int, warm: int, budget: float | None) -> Result:
    """Return by quarter and on the whole cost ÷ budget (dollars without one), reward, and how the
    newcomer in column k fared.
    """
    whole = slice(warm, len(trace.chosen))
    edges = np.linspace(whole.start, whole.stop, QUARTERS + 1).astype(int)
    phases = {"whole": whole} | {
        f"Q{j + 1}": slice(edges[j], edges[j + 1]) for j in range(QUARTERS)
    }
    spent = trace.cost / (budget or 1.0)
    step = adopted_at(trace, k, whole.start)
    found = step != NEVER_ADOPTED
    extra = (
        float(found),
        step if found else 0.0,
        trace.share(k, whole),
        trace.share(k, slice(whole.stop - 200, whole.stop)),
    )
    return {
        name: (float(spent[p].mean()), float(trace.reward[p].mean()), *extra)
        for name, p in phases.items()
    }


def verdict(rows: list[Row]) -> dict[str, float]:
    """Return when good newcomers were found, what share a bad one keeps, and how far spend was from
    the budget.
    """
    live = [r for r in rows if r["policy"] == "live" and r["in_flight"] == 0]
    whole = [r for r in live if r["phase"] == "whole"]
    paced = [r["cost_over_budget"] for r in live if r["budget"] is not None]
    figures = {"cost_over_budget_most": max(paced)}
    for kind in KINDS:
        mine = [r for r in whole if r["newcomer"] == kind]
        key = kind.replace(" and ", "_")
        for r in mine:
            figures[f"{key}_adopted_{r['budget']}"] = r["adopted"]
            figures[f"{key}_after_{r['budget']}"] = r["adopted_after"]
        if mine:
            figures[f"{key}_final_share_most"] = max(r["final_share"] for r in mine)
    return figures


def run(quick: bool, chosen: Choice = EVERYTHING) -> None:
    """Compare how policies meet a model that joins."""
    seeds = chosen.seeds or (2 if quick else 20)
    folder = extended_folder()
    prompts("val", folder), prompts("test", folder)
    names = chosen.of(("live", "paper", LINE) if quick else (*POLICIES, LINE))
    lengths = (0,) if quick else (0, 100)
    jobs: list[Job] = [
        {"policy": name, "budget": budget, "newcomer": kind, "in_flight": k, "seed": seed}
        for name, budget, kind, k, seed in product(names, BUDGETS, KINDS, lengths, range(seeds))
        if (k == 0 or name in ("live", "paper")) and not (quick and budget != MODERATE)
    ]
    rows = gather_alike(
        each, jobs, differ=("newcomer",), extra=("adopted", "adopted_after", "share", "final_share")
    )
    for r in rows:  # means over the seeds that adopted it
        r["adopted_after"] = r["adopted_after"] / r["adopted"] if r["adopted"] else NEVER_ADOPTED
    columns = (
        "policy",
        "budget",
        "newcomer",
        "in_flight",
        "phase",
        "adopted",
        "adopted_after",
        "share",
        "final_share",
    )
    rows.sort(
        key=lambda r: (r["budget"] or 1.0, r["newcomer"], r["in_flight"], r["policy"], r["phase"])
    )
    title = (
        f"A model joins; held-out prompts, {seeds} seeds, ± 95 % (without a budget the cost is "
        "in dollars)"
    )
    print_table(title, (*columns, "cost ÷ budget", "reward"), cells(rows, *columns))
    if not quick and not chosen.policies:
        plots.onboarding(rows)
    print_figures("onboarding", verdict(rows), rows=rows)


if __name__ == "__main__":
    command(run)()
