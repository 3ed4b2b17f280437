"""Measure how far the estimates of `pbstream replay` can be trusted: errors against intervals, in
histories whose truth is known.

uv run python -m benchmarks.off_policy [--quick]

Histories are recorded by the engine that ships, exploring as it does by itself and with a declared
ε. They know the called models' rewards and costs only; the truth of every choice is kept aside. An
inverse propensity that is right on average has mean weight 1.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.arena import Array
from benchmarks.elsewhere import drawing
from benchmarks.history import ROUTER, write_history
from benchmarks.report import command, print_figures, print_table
from benchmarks.rows import Job, gather
from router_state.config import Price
from studies.history.account import Account
from studies.history.encoded import Contexts
from studies.history.merge import Merge
from studies.history.records import JsonlHistory
from studies.simulate.cases import Case, Cases
from studies.simulate.estimators import OffPolicy
from studies.simulate.policies import decider_of
from studies.simulate.scenario import Scenario
from studies.simulate.simulation import PolicyRun, Simulation
from studies.simulate.study import survey, world_of
from studies.simulate.track import Track

N, D, K = 2500, 9, 4
HISTORIES = {"as it ships": 0.0, "ε 0.05": 0.05, "ε 0.2": 0.2}
OUTCOMES = ("reward", "cost")


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
        account = Account()
        merge = Merge(history, 0, refused={}, account=account, router_id=ROUTER)
        return Cases(merge, contexts=Contexts(_no_encoder), account=account)

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


def one(job: Job) -> dict[str, tuple[float, ...]]:
    """Record one history, and estimate what every other policy would have earned and spent."""
    rng = np.random.default_rng([21, job["seed"]])
    X, tasks = drawing.contexts(N, D, str(rng.choice(drawing.CONTEXTS)), rng)
    own = float(rng.choice((0.02, 0.1)))
    base = rng.uniform(0.4, 0.7, K)
    expected = np.clip(
        base + 0.05 * drawing.effects(X, 1, rng) + own * drawing.effects(X, K, rng), 0.02, 0.98
    )
    rewards = drawing.rewards(expected, float(rng.choice((0.1, 0.3, 0.5))), rng)
    listed = drawing.prices(K, 1.5, 0, rng)
    bills = drawing.bills(listed, X, tasks, str(rng.choice(drawing.BILLS)), rng, by_prompt=0.3)
    models = tuple(f"m{k}" for k in range(K))
    budget = float(np.exp(np.log(bills.costs.mean(0)).mean()))
    policies = (*models, "random", "paper")
    with tempfile.TemporaryDirectory() as folder:
        declared = {
            **_declared(models, listed),
            "budget_usd_per_request": budget,
            "epsilon": HISTORIES[job["history"]],
        }
        write_history(
            Path(folder),
            declared=declared,
            models=models,
            contexts=X,
            rewards=rewards,
            costs=bills.costs,
            outcomes=False,
        )
        found = compared(Path(folder), policies, truth=(rewards, bills.costs), models=models)
    tables = {
        outcome: [_judge(getattr(run, outcome), true[j]) for _, run, true in found]
        for j, outcome in enumerate(OUTCOMES)
    }
    return {outcome: tuple(np.sum(table, axis=0).tolist()) for outcome, table in tables.items()}


def _declared(models: Sequence[str], listed: Sequence[Price]) -> dict[str, Any]:
    prices = {
        name: {
            "input_price_per_m": price.input_price_per_m,
            "output_price_per_m": price.output_price_per_m,
        }
        for name, price in zip(models, listed, strict=True)
    }
    return {"models": prices, "dimensions": D}


def _judge(run: OffPolicy, true: float) -> tuple[float, ...]:
    """Return sums over policies: estimated, supported; of those covered by the interval, z², and
    the mean weight.
    """
    estimate = run.estimates().get("doubly robust")
    if estimate is None or not estimate.half_width:
        return 1.0, 0.0, 0.0, 0.0, 0.0
    error = abs(estimate.value - true)
    z = 1.96 * error / estimate.half_width
    return 1.0, 1.0, float(error <= estimate.half_width), z * z, run.weight.mean


def run(quick: bool) -> None:
    """Compare off-policy estimates with the truth, over many histories."""
    seeds = 4 if quick else 40
    jobs: list[Job] = [
        {"history": name, "seed": seed} for name in HISTORIES for seed in range(seeds)
    ]
    rows = gather(one, jobs, extra=("covered", "squared", "weight"))
    table, figures = [], {}
    for r in rows:
        made, supported = r.pop("cost_over_budget"), r.pop("reward")
        told = {
            name: r[name] / supported if supported else 0.0
            for name in ("covered", "squared", "weight")
        }
        r |= {"supported": supported / made, **told}
        cells = (
            (f"{told['covered']:.3f}", f"{told['squared'] ** 0.5:.2f}", f"{told['weight']:.3f}")
            if supported
            else ("–", "–", "–")
        )
        table.append([r["history"], r["phase"], f"{r['supported']:.0%}", *cells])
        figures[f"{r['phase']}_covered_{r['history']}"] = told["covered"]
        figures[f"{r['phase']}_supported_{r['history']}"] = r["supported"]
    columns = (
        "history",
        "estimate of",
        "supported",
        "covered by 95 %",
        "error ÷ its deviation",
        "mean weight",
    )
    print_table(f"{seeds} histories of {N:,} requests each, six policies", columns, table)
    print_figures("off_policy", figures, rows=rows)


if __name__ == "__main__":
    command(run)()
