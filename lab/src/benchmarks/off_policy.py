"""Measure how far the estimates of `pbstream replay` can be trusted: errors against intervals, in
histories whose truth is known.

uv run python -m benchmarks.off_policy [--quick] [--world NAME]

Histories are recorded by the engine that ships, exploring as it does by itself and with a declared
ε. They know the called models' rewards and costs only; the truth of every choice is kept aside.
Five worlds: outcomes that follow lines, outcomes that bend along a feature, outcomes half of which
only products of features tell, the same where history also chose by these products, and the paper's
prompts, on which every model was judged.

Constants were chosen on seeds below `HELD_BACK` and on the paper's test prompts, which `--quick`
plays. The others play seeds from there on, and the paper's validation prompts.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import click
import numpy as np
import orjson

from benchmarks.arena import Array
from benchmarks.elsewhere import drawing
from benchmarks.history import ROUTER, write_history
from benchmarks.report import print_figures, print_table
from benchmarks.rows import Job, Row, gather
from commands.demo.benchmark import Benchmark, Split, load_benchmark
from commands.demo.paper_models import known_before
from router_state.config import Price
from streams.priors.fitted_priors import Priors, fields_for_wire
from studies.history.encoded import Contexts
from studies.history.merge import Merge
from studies.history.records import JsonlHistory
from studies.history.skipped import Skipped
from studies.simulate.cases import Case, Cases
from studies.simulate.estimators import OffPolicy
from studies.simulate.policies import decider_of
from studies.simulate.scenario import Scenario
from studies.simulate.simulation import PolicyRun, Simulation
from studies.simulate.study import survey, world_of
from studies.simulate.track import Track

N, D, K = 2500, 9, 4
HELD_BACK, SEEDS = 100, 30
"""First seed that no constant was chosen on, and how many are played."""
WORLDS = ("products", "chosen by products", "the paper's prompts", "curves", "lines")
HISTORIES = {"as it ships": 0.0, "ε 0.05": 0.05, "ε 0.2": 0.2}
OUTCOMES = ("reward", "cost")
KINDS = ("direct", "inverse propensity", "doubly robust")
COLUMNS = (
    *("history", "estimate of, by", "given", "estimates"),
    *("held by 95 %", "95 % interval", "mean ±, of the truth", "mean error"),
)


class Witness(Simulation):
    """A simulation that also records the true reward and cost of every choice."""

    def __init__(self, *arguments: Any, truth: Sequence[Array], models: Sequence[str]) -> None:
        super().__init__(*arguments, compare=True)
        self._truth = truth
        self._column = {model: k for k, model in enumerate(models)}
        self.true: dict[str, list[tuple[float, ...]]] = {name: [] for name in self.runs}

    def _compare(self, case: Case) -> None:
        super()._compare(case)
        for name, run in self.runs.items():
            assert run.last is not None
            k = self._column[run.last]
            self.true[name].append(tuple(float(table[case.index, k]) for table in self._truth))


def compared(
    folder: Path, policies: Sequence[str], *, truth: Sequence[Array], models: Sequence[str]
) -> list[tuple[str, PolicyRun, tuple[float, ...]]]:
    """Return per policy its estimates from a recorded history, and what is true of it.

    Args:
        truth: tables of shape (n, K): what every model earns, or costs, on every request.
    """
    history, scenario = JsonlHistory(folder), Scenario.model_validate({"policies": list(policies)})

    def cases() -> Cases:
        skipped = Skipped()
        merge = Merge(history, 0, refused={}, skipped=skipped, router_id=ROUTER)
        return Cases(merge, contexts=Contexts(_no_encoder), skipped=skipped)

    found = survey(cases(), scenario)
    runs = {
        p.name: PolicyRun(decider_of(p, seed=0, read_prior=_no_encoder), Track(p.name, []))
        for p in scenario.policies
    }
    witness = Witness(world_of(scenario, found), found.outcomes, runs, truth=truth, models=models)
    witness.play(cases())
    return [
        (name, run, tuple(np.mean(witness.true[name], axis=0).tolist()))
        for name, run in runs.items()
    ]


def _no_encoder(*_: Any) -> Any:
    raise AssertionError("the history has contexts and no referenced priors")


@dataclass(frozen=True, slots=True, eq=False)
class Drawn:
    """Contexts (n, d), true rewards and costs (n, K), and a declaration of the K models.

    Attributes:
        router_sees: contexts (n, d) that history chose by.
    """

    X: Array
    rewards: Array
    costs: Array
    declared: Mapping[str, Any]
    router_sees: Array

    @property
    def models(self) -> tuple[str, ...]:
        """Return their names."""
        return tuple(self.declared["models"])


def drawn(world: str, seed: int) -> Drawn:
    """Return a world."""
    rng = np.random.default_rng([21, seed])
    return _prompts(rng, seed) if world == "the paper's prompts" else _made_up(rng, world)


def _made_up(rng: np.random.Generator, world: str) -> Drawn:
    X, tasks = drawing.contexts(N, D, str(rng.choice(drawing.CONTEXTS)), rng)
    told, router_sees, owns, by_prompt = X, X, (0.02, 0.1), 0.3
    if "products" in world:
        features = X[:, :-1]
        products = features * np.roll(features, 1, axis=1)
        told = np.column_stack([products, X])
        owns, by_prompt = (0.1, 0.2), 0.8
        if world == "chosen by products":
            router_sees = np.column_stack([products, X[:, -1]])
    own, base = float(rng.choice(owns)), rng.uniform(0.4, 0.7, K)
    effects = partial(drawing.effects, told, curved=world == "curves")
    expected = np.clip(base + 0.05 * effects(1, rng) + own * effects(K, rng), 0.02, 0.98)
    rewards = drawing.rewards(expected, float(rng.choice((0.1, 0.3, 0.5))), rng)
    listed = drawing.prices(K, 1.5, 0, rng)
    kind = str(rng.choice(drawing.BILLS))
    bills = drawing.bills(listed, told, tasks, kind, rng, by_prompt=by_prompt)
    budget = float(np.exp(np.log(bills.costs.mean(0)).mean()))
    models = _declared(tuple(f"m{k}" for k in range(K)), listed)
    declared = {**models, "budget_usd_per_request": budget}
    return Drawn(X, rewards, bills.costs, declared, router_sees)


def _prompts(rng: np.random.Generator, seed: int) -> Drawn:
    """Return the paper's prompts in an order, under a budget; every second time without priors."""
    data, priors = _benchmark("test" if seed < HELD_BACK else "val")
    order = rng.permutation(len(data))
    declared = _declared(data.models, data.prices)
    if seed % 2:
        for model, fields in declared["models"].items():
            fields |= fields_for_wire(priors, model)
    budget = float(np.exp(rng.uniform(np.log(1e-4), np.log(5e-3))))
    declared |= {"budget_usd_per_request": budget, "dimensions": data.contexts.shape[1]}
    X = data.contexts[order]
    return Drawn(X, data.rewards[order], data.costs[order], declared, X)


@cache
def _benchmark(split: Split) -> tuple[Benchmark, Priors]:
    return load_benchmark(split, encoder="static"), known_before("static")


def one(job: Job) -> dict[str, tuple[float, ...]]:
    """Record one history, and estimate what every other policy would have earned and spent."""
    world = drawn(job["world"], job["seed"])
    with tempfile.TemporaryDirectory() as folder:
        write_history(
            Path(folder),
            declared={**world.declared, "epsilon": HISTORIES[job["history"]], "seed": job["seed"]},
            models=world.models,
            contexts=world.router_sees,
            recorded=world.X,
            rewards=world.rewards,
            costs=world.costs,
            outcomes=False,
        )
        routes = (Path(folder) / "routes-0.jsonl").read_bytes().splitlines()
        called = {orjson.loads(line)["value"]["model"] for line in routes}
        found = compared(
            Path(folder),
            # Nothing can be said of a model that was never called, and a replay refuses it.
            (*(model for model in world.models if model in called), "random", "paper"),
            truth=(world.rewards, world.costs),
            models=world.models,
        )
    return {
        f"{outcome}, {kind}": tuple(
            np.sum([_judge(getattr(run, outcome), true[j], kind) for _, run, true in found], axis=0)
        )
        for j, outcome in enumerate(OUTCOMES)
        for kind in KINDS
    }


def _declared(models: Sequence[str], listed: Sequence[Price]) -> dict[str, Any]:
    prices = {
        name: {
            "input_price_per_m": price.input_price_per_m,
            "output_price_per_m": price.output_price_per_m,
        }
        for name, price in zip(models, listed, strict=True)
    }
    return {"models": prices, "dimensions": D}


def _judge(run: OffPolicy, true: float, kind: str) -> tuple[float, ...]:
    """Return what is summed over policies: asked, given with an interval; of those held by it, its
    half-width ÷ truth, and the error ÷ truth.
    """
    estimate = run.estimates().get(kind)
    if estimate is None or estimate.half_width is None:
        return 1.0, 0.0, 0.0, 0.0, 0.0
    error = abs(estimate.value - true)
    return 1.0, 1.0, float(error <= estimate.half_width), estimate.half_width / true, error / true


def wilson(share: float, count: int) -> tuple[float, float]:
    """Return the 95 % interval of a share of `count` (Wilson 1927), as if estimates of one history
    were independent.
    """
    z2 = 1.959964**2 / count
    middle = (share + z2 / 2.0) / (1.0 + z2)
    off = (z2 * (share * (1.0 - share) + z2 / 4.0)) ** 0.5 / (1.0 + z2)
    return middle - off, middle + off


@click.command()
@click.option("--quick", is_flag=True, help="A smaller run, under 60 seconds.")
@click.option("--world", "worlds", multiple=True, type=click.Choice(WORLDS), help="Only these.")
def main(quick: bool, worlds: tuple[str, ...]) -> None:
    """Compare off-policy estimates with the truth, over many histories."""
    seeds = range(4) if quick else range(HELD_BACK, HELD_BACK + SEEDS)
    figures: dict[str, float] = {}
    for world in worlds or WORLDS:
        jobs: list[Job] = [
            {"world": world, "history": history, "seed": seed}
            for history in HISTORIES
            for seed in seeds
        ]
        rows = gather(one, jobs, extra=("held", "width", "error"))
        title = f"{world}: {len(seeds)} histories of each, five or six policies"
        print_table(title, COLUMNS, [_told(r) for r in rows])
        for r in rows:
            if r["reward"]:
                figures[f"{world} {r['history']} {r['phase']}"] = r["held"] / r["reward"]
    print_figures("off_policy", figures)


def _told(r: Row) -> list[str]:
    asked, given = r["cost_over_budget"], r["reward"]
    names = r["history"], r["phase"]
    if not given:
        return [*names, "0%", "0", "–", "–", "–", "–"]
    held, width, error = (r[name] / given for name in ("held", "width", "error"))
    count = round(given * r["seeds"])
    low, high = wilson(held, count)
    numbers = f"{held:.3f}", f"{low:.2f}–{high:.2f}", f"{width:.1%}", f"{error:.1%}"
    return [*names, f"{given / asked:.0%}", f"{count:,}", *numbers]


if __name__ == "__main__":
    main()
