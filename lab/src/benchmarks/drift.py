"""Compare policies while a model becomes worse or better for 608 requests, unannounced.

uv run python -m benchmarks.drift [--quick]
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np

from benchmarks import plots
from benchmarks.arena import Array, Episode, Trace, play_each
from benchmarks.policies import POLICIES, make
from benchmarks.protocol import (
    GEMINI,
    LLAMA,
    MISTRAL,
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
from benchmarks.rows import Job, Result, Row, cells, gather_alike, outcomes

OFFSET = 7000
LEVELS = (0.75, 0.5, 0.05)
BUDGETS = (MODERATE, TIGHT)
FORMS = ("constant", "shifted", "slide", "steady")
MODELS = {"llama": LLAMA, "mistral": MISTRAL, "gemini": GEMINI}
NO_ALARMS = "live − drift alarms"
COMPARED = (*POLICIES, NO_ALARMS)


def drifted(rewards: Array, form: str, level: float) -> Array:
    """Return one model's rewards, shape (n,), as they are while it drifts to this level.

    constant: it earns the level on every prompt; shifted: its mean moves there, clipped; slide:
    shifted little by little.
    """
    if form == "steady":
        return rewards
    if form == "constant":
        return np.full_like(rewards, level)
    far = level - rewards.mean()
    path = np.linspace(0.0, far, len(rewards)) if form == "slide" else np.full(len(rewards), far)
    moved: Array = np.clip(rewards + path, 0.0, 1.0)
    return moved


def alarms(trace: Trace, phases: dict[str, slice], model: str, form: str) -> float:
    """Return how many reward alarms were false: about another model, or before the drift."""
    found = [(i, a) for i, a in trace.alerts if a.kind == "drift" and a.signal == "reward"]
    return float(
        sum(form == "steady" or a.model != model or i < phases["P2"].start for i, a in found)
    )


def one(job: Job) -> Result:
    """Play one policy, budget, model, form, level, delay and seed."""
    return each([job])[0]


def each(jobs: list[Job]) -> list[Result]:
    """Play jobs that differ in model, form and level alone."""
    first = jobs[0]
    drawn = draw(first["seed"], offset=OFFSET, phases=True)
    phases, late = three_phases(drawn.warm), first["in_flight"]
    declared = {0: declaration(drawn.benchmark, first["budget"])}

    def drifting(job: Job) -> Episode:
        k, rewards = MODELS[job["model"]], drawn.rewards.copy()
        rewards[phases["P2"], k] = drifted(rewards[phases["P2"], k], job["form"], job["level"])
        return episode(
            replace(drawn, rewards=rewards),
            declared,
            phases=phases,
            bill_delay=late // 2,
            reward_delay=late,
        )

    policy = make(first["policy"], first["seed"])
    traces = play_each(policy, [drifting(job) for job in jobs], alike=phases["P2"].start)
    return [
        result(trace, phases, drawn.benchmark.models[MODELS[job["model"]]], job["form"])
        for trace, job in zip(traces, jobs, strict=True)
    ]


def result(trace: Trace, phases: dict[str, slice], model: str, form: str) -> Result:
    """Return cost ÷ budget, reward and false alarms by phase, and what the reward after the drift
    is of that before.
    """
    false = alarms(trace, phases, model, form)
    found = outcomes(trace, phases)
    cost, reward = found["P3"]
    return {name: (*sample, false) for name, sample in found.items()} | {
        "after ÷ before": (cost, reward / found["P1"][1], false)
    }


def verdict(rows: list[Row]) -> dict[str, float]:
    """Return the live profile's worst rewards during and after, its false alarms, and what alarms
    cost where nothing drifts.
    """
    figures: dict[str, float] = {}
    live = [r for r in rows if r["policy"] == "live" and r["in_flight"] == 0]
    sudden = [r for r in live if r["form"] in ("constant", "shifted")]
    for level in LEVELS:
        during = [
            r["reward"]
            for r in sudden
            if (r["level"], r["phase"], r["budget"]) == (level, "P2", MODERATE)
        ]
        if during:
            figures[f"during_{level:g}"] = min(during)
    for name, budget in (("moderate", MODERATE), ("tight", TIGHT)):
        after = [
            r["reward"] for r in sudden if (r["phase"], r["budget"]) == ("after ÷ before", budget)
        ]
        if after:
            figures[f"after_over_before_{name}"] = min(after)
    steady = [r for r in rows if r["form"] == "steady" and r["phase"] == "P3"]
    rewarded = sum(r["seeds"] for r in steady if r["policy"] == "live") * (1785 + 3 * PHASE)
    if rewarded:
        raised = sum(r["false_alarms"] * r["seeds"] for r in steady if r["policy"] == "live")
        figures["false_alarms_per_5000"] = 5000.0 * raised / rewarded
        told = {(r["policy"], r["budget"]): r["reward"] for r in steady}
        # Who chose some policies may have left out the one without alarms.
        losses = [told[NO_ALARMS, b] - told["live", b] for p, b in told if p == NO_ALARMS]
        if losses:
            figures["steady_loss"] = max(losses)
    return figures


def run(quick: bool, chosen: Choice = EVERYTHING) -> None:
    """Compare policies while one model's quality changes and comes back."""
    seeds = chosen.seeds or (2 if quick else 20)
    prompts("val"), prompts("test")
    jobs: list[Job] = []
    for policy, budget, seed in product(chosen.of(COMPARED), BUDGETS, range(seeds)):
        common: Job = {"policy": policy, "budget": budget, "seed": seed}
        if quick:
            if policy in ("live", "paper") and budget == MODERATE:
                jobs += [
                    common | {"model": "mistral", "form": "constant", "level": q, "in_flight": 0}
                    for q in LEVELS
                ]
            continue
        for model, form, level in product(MODELS, ("constant", "shifted"), LEVELS):
            if model == "mistral" or policy in ("live", "paper"):
                jobs.append(common | {"model": model, "form": form, "level": level, "in_flight": 0})
        jobs += [
            common | {"model": "mistral", "form": "constant", "level": q, "in_flight": 20}
            for q in LEVELS
        ]
        jobs.append(common | {"model": "mistral", "form": "slide", "level": 0.5, "in_flight": 0})
        jobs.append(common | {"model": "llama", "form": "shifted", "level": 0.95, "in_flight": 0})
        jobs.append(common | {"model": "mistral", "form": "steady", "level": 0.0, "in_flight": 0})
    rows = gather_alike(each, jobs, differ=("model", "form", "level"), extra=("false_alarms",))
    columns = ("policy", "budget", "model", "form", "level", "in_flight", "phase")
    rows.sort(
        key=lambda r: (
            -r["budget"],
            r["model"],
            r["form"],
            -r["level"],
            r["in_flight"],
            r["policy"],
            r["phase"],
        )
    )
    title = (
        f"One model's quality changes in P2 and comes back in P3; held-out prompts, {seeds} "
        "seeds, ± 95 %"
    )
    print_table(title, (*columns, "cost ÷ budget", "reward"), cells(rows, *columns))
    if not quick and not chosen.policies:
        plots.drift(rows)
    print_figures("drift", verdict(rows), rows=rows)


if __name__ == "__main__":
    command(run)()
