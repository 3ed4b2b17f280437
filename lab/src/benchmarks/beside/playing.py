"""Play fields: every entrant with its best setting, every seed, on every core."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import track

from benchmarks.arena import Rows, play
from benchmarks.beside.curve import Point, area, point
from benchmarks.beside.entrants import COUNT, ENTRANTS, OURS
from benchmarks.beside.field import Field
from benchmarks.beside.fields import load
from benchmarks.beside.litellm_routers import complexity_choices, lowest_cost, lowest_usage
from benchmarks.beside.trained import PREDICTORS, Fitted
from router_state.config import Prior

AS_MUCH, EVERY = "as many judgements as live has seen", "every model judged on every prompt"
TRAINED = {
    f"{name}{suffix}": (name, labels)
    for name in PREDICTORS
    for suffix, labels in (("", AS_MUCH), (", all outcomes", EVERY))
}
WARM = f"{OURS} with priors, all outcomes"
TRAINED |= {f"{OURS} with priors": (OURS, AS_MUCH), WARM: (OURS, EVERY)}
"""Trained routers by name: the predictor, and what it is trained on. With priors `live` goes on
learning."""


@dataclass(frozen=True, slots=True)
class Job:
    """One entrant on one order of a field; `half`: of the half that settings are chosen on."""

    field: str
    folder: Path | None
    entrant: str
    setting: str
    seed: int
    half: bool = False


def settings_of(entrant: str) -> tuple[str, ...]:
    """Return the names of an entrant's settings."""
    name = TRAINED[entrant][0] if entrant in TRAINED else entrant
    return tuple(PREDICTORS[name] if name in PREDICTORS else ENTRANTS[name].settings)


def run(job: Job) -> list[Point]:
    """Return a point for each value that the entrant's curve is drawn over."""
    field = load(job.field, job.folder)
    field = (field.half() if job.half else field).ordered(job.seed)
    if job.entrant in TRAINED:
        return _trained(job, field)
    entrant, found = ENTRANTS[job.entrant], []
    for value in entrant.values(field):
        policy = entrant.settings[job.setting](field, job.seed, value)
        trace = play(policy, field.episode(value if entrant.trade == "budget" else None))
        rest = slice(field.before, None)
        found.append(point(field.rewards[rest], field.costs[rest], trace.chosen[rest]))
    return found


def _trained(job: Job, field: Field) -> list[Point]:
    """Train on the first half of the requests, and choose in the last one: both halves of a `Point`
    are of that."""
    name, labels = TRAINED[job.entrant]
    n, K = field.rewards.shape
    first = n // 2
    known = np.arange(first) if labels == EVERY else np.arange(max(first // K, 2))
    past, asked = field.take(known), field.take(np.arange(first, n))
    if name == OURS:
        chosen = _with_priors(asked, past.priors(), job.seed)
    else:
        fitted = Fitted(
            *PREDICTORS[name][job.setting](past.contexts, past.rewards, past.costs, asked.contexts)
        )
        chosen = map(fitted.choices, field.prices_of_a_dollar(COUNT))
    points = [point(asked.rewards, asked.costs, one) for one in chosen]
    return [replace(one, late_reward=one.reward, late_cost=one.cost) for one in points]


def _with_priors(asked: Field, priors: Mapping[str, Prior], seed: int) -> Iterator[Rows]:
    """Yield what `live` with priors chooses, a budget after the other."""
    entrant = ENTRANTS[OURS]
    for budget in entrant.values(asked):
        policy = entrant.settings["as shipped"](asked, seed, budget)
        yield play(policy, asked.episode(budget, priors)).chosen


def run_all(jobs: Sequence[Job], told: str) -> list[list[Point]]:
    """Run jobs on every core, with a progress bar; return their results in the jobs' order."""
    os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"
    with ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn")) as pool:
        results: Iterable[list[Point]] = pool.map(run, jobs)
        bar = track(results, told, total=len(jobs), console=Console(stderr=True))
        return list(bar)


def mean_points(seeds: Sequence[Sequence[Point]], *, late: bool) -> list[tuple[float, float]]:
    """Return the curve over seeds: the mean dollars and reward of each value."""
    table = np.array([[p.at(late=late) for p in points] for points in seeds])
    return [(float(cost), float(reward)) for cost, reward in table.mean(0)]


def choose_settings(
    field: str, folder: Path | None, entrants: Sequence[str], seeds: int
) -> dict[str, str]:
    """Return each entrant's best setting: the one with the largest area on half of the prompts."""
    asked = [(name, setting) for name in entrants for setting in settings_of(name)]
    contested = [(name, setting) for name, setting in asked if len(settings_of(name)) > 1]
    jobs = [
        Job(field, folder, name, setting, seed, half=True)
        for name, setting in contested
        for seed in range(1000, 1000 + seeds)
    ]
    results = run_all(jobs, f"{field}: settings") if jobs else []
    best = {name: settings_of(name)[0] for name in entrants}
    low, high = ends(load(field, folder))
    areas: dict[str, float] = {}
    for at, (name, setting) in enumerate(contested):
        mine = mean_points(results[at * seeds : (at + 1) * seeds], late=name in TRAINED)
        found = area(mine, low, high)
        if found > areas.get(name, -1.0):
            areas[name], best[name] = found, setting
    return best


def ends(field: Field) -> tuple[float, float]:
    """Return the mean costs of the cheapest and the dearest model, between which areas are."""
    means = field.mean_costs
    return float(means.min()), float(means.max())


def fixed_points(field: Field) -> dict[str, list[tuple[float, float]]]:
    """Return what needs no playing: (dollars, reward) of each model, of any model at random, of the
    best one for each kind of prompt, of LiteLLM's strategies, and of the oracle."""
    rest = slice(field.before, None)
    rewards, costs, kinds = field.rewards[rest], field.costs[rest], field.kinds[rest]
    rows = np.arange(len(rewards))

    def of(chosen: Rows) -> list[tuple[float, float]]:
        return [(float(costs[rows, chosen].mean()), float(rewards[rows, chosen].mean()))]

    found = {f"always {name}": of(np.full(len(rows), k)) for k, name in enumerate(field.models)}
    found["random"] = [(float(costs.mean()), float(rewards.mean()))]
    best = np.zeros(len(rows), dtype=np.int64)
    for kind in np.unique(kinds):
        best[kinds == kind] = rewards[kinds == kind].mean(0).argmax()
    found["best model per kind (hindsight)"] = of(best)
    found["oracle"] = of((rewards - 1e-9 * costs).argmax(1))
    found["LiteLLM `cost-based-routing`"] = of(np.full(len(rows), lowest_cost(field)))
    found["LiteLLM `usage-based-routing`"] = of(lowest_usage(field)[rest])
    if field.prompts:
        found["LiteLLM complexity router"] = of(complexity_choices(field)[rest])
    return found
