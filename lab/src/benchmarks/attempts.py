"""Attempts: what plans with a verifier between two calls gain over `live` alone:

    uv run python -m benchmarks.attempts [--quick] [--world NAME] [--labels 0.1] [--attempts 3]

The engine is played cold on judged data (CodeRouterBench at two budgets, RouterBench's eleven
models, nine open models, the paper's models) and on drawn worlds. Bills and verdicts come 30,
labels 100 requests late. Verdicts are drawn, given whether an answer is right (`attempt_worlds`).
Beside it stand `live` on the same prompts, labels and budget, and in hindsight the best fixed mix
of models and the best one of models and plans. Constants were chosen on seeds below `HELD_BACK`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import click
import numpy as np

from benchmarks.arena import Array
from benchmarks.attempt_worlds import VERIFIERS, Judged, passes, world
from benchmarks.elsewhere.real import BESIDE, folder_of
from benchmarks.played import Played
from benchmarks.rows import half_width
from benchmarks.yardsticks import best_fixed_mix
from router_state.attempts.verifier import Declared, Verifier
from router_state.config import ModelConfig, RouterConfig
from router_state.events import Verified
from router_state.profiles import knobs_for
from router_state.record import RequestRecord

HELD_BACK = 1000
"""First seed on which no constant was chosen."""
BILLS_LATE, LABELS_LATE = 30, 100
REQUESTS = 2000
WORLDS = ("code", "code, tight", "eleven", "paper", "nine", "drawn")
ACCEPT_AT = 0.5
FOREVER = 1e6
"""Seconds of a wait that does not end within a run; requests come one a second."""
SWEPT = 5
"""Requests from one sweep of commitments to the next, where waits end."""


@dataclass(frozen=True, slots=True)
class Run:
    """Means over the requests of one seed; `cost` is in budgets, the rest are shares."""

    reward: float
    cost: float
    plans: float = 0.0
    second: float = 0.0
    looks: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Dealt:
    """One order of prompts, and what chance has in store: the same for every policy."""

    judged: Judged
    rewards: Array
    costs: Array
    contexts: Array
    verdicts: Array
    missing: np.ndarray
    labelled: np.ndarray

    @classmethod
    def draw(cls, judged: Judged, kind: str, *, labels: float, seed: int) -> Dealt:
        """Draw an order, which prompts are labelled, and the verdicts on all answers."""
        rows = np.random.default_rng([51, seed]).permutation(len(judged.contexts))[:REQUESTS]
        rewards, n = judged.rewards[rows], len(rows)
        rng = np.random.default_rng([52, seed])
        chance = passes(kind, rewards >= judged.right, rng)
        return cls(
            judged,
            rewards,
            judged.costs[rows],
            judged.contexts[rows],
            (rng.random(chance.shape) < chance).astype(np.float64),
            rng.random(n) < (0.5 if kind == "good, half missing" else 0.0),
            np.random.default_rng([53, seed]).random(n) < labels,
        )


def play(
    dealt: Dealt, *, fee: float, exact: bool, attempts: int, seed: int, wait: float = FOREVER
) -> Run:
    """Play the engine, with a verifier or, at one attempt, without.

    Args:
        wait: seconds for which a bill is awaited.
    """
    engine = started(dealt, fee=fee, exact=exact, attempts=attempts, seed=seed, wait=wait)
    made, reward, cost = played(engine, dealt, fee=fee, wait=wait)
    column = {name: k for k, name in enumerate(dealt.judged.models)}
    steps = [len(one.plan.steps) if one.plan is not None else 0 for one in made]
    second = [len(_called(dealt, one, i, column)[0]) > 1 for i, one in enumerate(made)]
    return Run(
        float(reward.mean()),
        float(cost.mean()) / dealt.judged.budget,
        float(np.mean(np.array(steps) > 1)),
        float(np.mean(second)),
        float(np.mean(np.array(steps) == 1)),
    )


def started(
    dealt: Dealt, *, fee: float, exact: bool, attempts: int, seed: int, wait: float = FOREVER
) -> Played:
    """Return an engine before its first request, see `play`."""
    judged = dealt.judged
    verifiers = {"attempts": Declared({"v": Verifier(fee, exact)}, attempts)}
    declared = verifiers if attempts > 1 else {}
    models = dict(zip(judged.models, map(ModelConfig, judged.prices), strict=True))
    d, knobs = (
        dealt.contexts.shape[1],
        knobs_for("live", {"seed": seed, "commitment_ttl_seconds": wait}),
    )
    config = RouterConfig(models, judged.budget, d, "live", knobs, capabilities=declared)
    return Played.start(config)


def played(
    engine: Played, dealt: Dealt, *, fee: float, wait: float = FOREVER
) -> tuple[list[RequestRecord], Array, Array]:
    """Play an engine; return each request's record, reward and cost in dollars."""
    n, column = len(dealt.contexts), {name: k for k, name in enumerate(dealt.judged.models)}
    reward, cost = np.zeros(n), np.zeros(n)
    made: list[RequestRecord] = []
    for i in range(n):
        if i >= BILLS_LATE:
            _bill(engine, dealt, made[i - BILLS_LATE], i - BILLS_LATE, column)
        if wait < FOREVER and i % SWEPT == 0:
            engine.expire(now=float(i))
        if i >= LABELS_LATE and dealt.labelled[i - LABELS_LATE]:
            engine.learn(str(i - LABELS_LATE), reward=float(reward[i - LABELS_LATE]))
        record = engine.decide(str(i), dealt.contexts[i], now=float(i))
        made.append(record)
        called, looked = _called(dealt, record, i, column)
        reward[i] = dealt.rewards[i, called[-1]]
        cost[i] = dealt.costs[i, called].sum() + fee * looked
    return made, reward, cost


def _called(
    dealt: Dealt, record: RequestRecord, i: int, column: dict[str, int]
) -> tuple[list[int], int]:
    """Return who was called, and how many verdicts there are."""
    called, looked, plan = [column[record.model]], 0, record.plan
    if plan is None or dealt.missing[i]:
        return called, looked
    for number, step in enumerate(plan.steps):
        if number:
            called.append(column[step.model])
        if step.verify is not None:
            looked += 1
        if step.accept_at is None or dealt.verdicts[i, called[-1]] >= step.accept_at:
            break
    return called, looked


def _bill(
    engine: Played, dealt: Dealt, record: RequestRecord, i: int, column: dict[str, int]
) -> None:
    called, looked = _called(dealt, record, i, column)
    for attempt, k in enumerate(called):
        engine.settle(str(i), float(dealt.costs[i, k]), attempt=attempt)
        if attempt < looked:
            engine.play(Verified(str(i), "v", float(dealt.verdicts[i, k]), attempt))


def fixed_plan(dealt: Dealt, fee: float) -> float:
    """Return what the best fixed mix of models and plans of two calls earns, in hindsight."""
    rewards, costs = list(dealt.rewards.T), list(dealt.costs.T)
    for a in range(dealt.rewards.shape[1]):
        stopped = dealt.verdicts[:, a] < ACCEPT_AT
        for b in range(dealt.rewards.shape[1]):
            if a != b:
                rewards.append(np.where(stopped, dealt.rewards[:, b], dealt.rewards[:, a]))
                costs.append(dealt.costs[:, a] + fee + np.where(stopped, dealt.costs[:, b], 0.0))
    found = best_fixed_mix(np.array(rewards).T, np.array(costs).T, dealt.judged.budget)
    return float(found[1])


def one_seed(
    seed: int,
    name: str,
    kinds: Sequence[str],
    fees: Sequence[float],
    labels: float,
    attempts: int,
    folder: Path,
    wait: float = FOREVER,
) -> list[dict[str, Any]]:
    """Return a row for each kind of verifier and fee; `live` is the same for all of them."""
    judged, found, live = world(name, folder, seed), [], None
    for kind in kinds:
        dealt = Dealt.draw(judged, kind, labels=labels, seed=seed)
        live = live or play(dealt, fee=0.0, exact=False, attempts=1, seed=seed, wait=wait)
        mix = float(best_fixed_mix(dealt.rewards, dealt.costs, judged.budget)[1])
        for fee in fees:
            usd = fee * judged.budget
            exact = kind == "perfect"
            plans = play(dealt, fee=usd, exact=exact, attempts=attempts, seed=seed, wait=wait)
            found.append(
                {
                    "kind": kind,
                    "fee": fee,
                    "live": live.reward,
                    "live_cost": live.cost,
                    "plans": plans.reward,
                    "cost": plans.cost,
                    "gain": 100.0 * (plans.reward - live.reward),
                    "mix": mix,
                    "fixed_plan": fixed_plan(dealt, usd),
                    "planned": plans.plans,
                    "second": plans.second,
                    "looks": plans.looks,
                }
            )
    return found


@click.command()
@click.option("--quick", is_flag=True, help="Two worlds, two verifiers and three seeds.")
@click.option("--seeds", default=10, show_default=True)
@click.option("--from", "first", default=HELD_BACK, show_default=True, help="First seed.")
@click.option("--world", "worlds", multiple=True, type=click.Choice(WORLDS))
@click.option("--verifier", "kinds", multiple=True, type=click.Choice(VERIFIERS))
@click.option("--fee", "fees", multiple=True, type=float, help="Of a verdict, in budgets.")
@click.option("--labels", default=0.1, show_default=True, help="Share of answers with a label.")
@click.option("--attempts", default=2, show_default=True, help="Most calls of a request.")
@click.option("--wait", default=FOREVER, help="Seconds for which bills are awaited.")
@click.option("--data", type=click.Path(path_type=Path), help="Folder with more data.")
@click.option("--json", "as_json", is_flag=True, help="One line of JSON for each row and seed.")
def main(
    *,
    quick: bool,
    seeds: int,
    first: int,
    worlds: Sequence[str],
    kinds: Sequence[str],
    fees: Sequence[float],
    labels: float,
    attempts: int,
    wait: float,
    data: Path | None,
    as_json: bool,
) -> None:
    """Compare `live` with and without verifiers, and yardsticks in hindsight."""
    folder = folder_of(data)
    if quick:
        worlds, kinds, seeds = worlds or ("code", "drawn"), kinds or ("good", "coin"), 3
    for name in worlds or WORLDS:
        if folder is None and name in ("eleven", "nine"):
            click.echo(f"{name}: left out, its data is not here (PB_DATA)")
            continue
        play_one = partial(
            one_seed,
            name=name,
            kinds=kinds or VERIFIERS,
            fees=fees or (0.01,),
            labels=labels,
            attempts=attempts,
            folder=folder or BESIDE,
            wait=wait,
        )
        report(name, labels, [play_one(seed) for seed in range(first, first + seeds)], as_json)


def report(name: str, labels: float, found: list[list[dict[str, Any]]], as_json: bool) -> None:
    """Write one world's rows, the means over seeds with their 95 % intervals."""
    for rows in zip(*found, strict=True):
        if as_json:
            for row in rows:
                click.echo(json.dumps({"world": name, "labels": labels, **row}))
            continue
        mean = {
            key: float(np.mean([float(row[key]) for row in rows]))
            for key in rows[0]
            if key != "kind"
        }
        gain = half_width([float(row["gain"]) for row in rows])
        click.echo(
            f"{name}, {labels:.0%} labelled, {rows[0]['kind']}, fee {mean['fee']:g} B: "
            f"mix {mean['mix']:.3f}, live {mean['live']:.3f} ({mean['live_cost']:.2f} B), "
            f"plans {mean['plans']:.3f} ({mean['cost']:.2f} B), "
            f"fixed plan {mean['fixed_plan']:.3f}, gain {mean['gain']:+.2f} ± {gain:.2f}; "
            f"planned {mean['planned']:.0%}, second calls {mean['second']:.0%}, "
            f"looks {mean['looks']:.0%}"
        )


if __name__ == "__main__":
    main()
