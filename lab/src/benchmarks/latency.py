"""Targets of latency in worlds drawn at random: `python -m benchmarks.latency`.

Each world is driven as the service drives the engine: bills come when calls end, rewards later. The
router with a target stands beside the same router without one, and beside one without the models
that are too slow by themselves, which an operator who knew all times would have left out by hand.
Worlds 0 to 23 were looked at while the target was built; take others.
"""

from __future__ import annotations

import heapq
import json
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Any

import click
import numpy as np

from benchmarks.played import Played as Engine
from router_state.config import ModelConfig, Price, RouterConfig
from router_state.latency.goal import TAIL, LatencyGoal

SAMPLED = 20_000
"""Calls from which a model's own share of slow calls is taken."""
FIRST = 1000
"""Requests before anything is measured."""
LONGEST = 5
"""Longest calls of a world that a second look at its mean leaves out. The exponential of Student's
t has no mean: one call may be most of what is measured."""
SHAPES = ("lognormal", "student", "stragglers")
CHANGES = ("none", "none", "slower")


@dataclass(frozen=True, slots=True)
class World:
    """Prices, qualities and times of K models; times are medians in seconds, and slopes.

    Attributes:
        shape: of a time's logarithm around its expectation.
        change: "slower": in the middle of what is measured one model takes three times as long.
        rate: requests a second; judged: share of answers that get a reward.
    """

    price: np.ndarray
    quality: np.ndarray
    slopes: np.ndarray
    median: np.ndarray
    times: np.ndarray
    noise: np.ndarray
    shape: str
    change: str
    rate: float
    judged: float
    budget_usd: float | None

    @classmethod
    def draw(cls, seed: int) -> World:
        """Draw a world; better models tend to be dearer and slower."""
        rng = np.random.default_rng((seed, 1))
        K, d = int(rng.integers(3, 9)), int(rng.choice([3, 5, 9, 17]))
        price = np.sort(np.exp(rng.normal(0.0, 1.3, K)))
        slow = np.exp(rng.normal(np.log(1.5), 0.6, K)) * np.linspace(0.6, 2.0, K)
        usd = price * 2e-3
        share = rng.choice([np.nan, 0.2, 0.4, 0.7])
        budget = None if np.isnan(share) else float(usd[0] + share * (usd[-1] - usd[0]))
        return cls(
            price=price,
            quality=np.sort(rng.uniform(0.4, 0.95, K)),
            slopes=rng.normal(0.0, rng.choice([0.03, 0.1]) / np.sqrt(d - 1), (K, d - 1)),
            median=slow,
            times=rng.normal(0.0, rng.choice([0.1, 0.4]) / np.sqrt(d - 1), (K, d - 1)),
            noise=rng.uniform(0.2, 0.7, K),
            shape=str(rng.choice(SHAPES)),
            change=str(rng.choice(CHANGES)),
            rate=float(rng.choice([1.0, 5.0, 20.0])),
            judged=float(rng.choice([1.0, 0.3])),
            budget_usd=budget,
        )

    def seconds(self, k: int, x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return times of calls of model k for contexts x, shape (n, d)."""
        n = len(x)
        scatter = rng.normal(size=n)
        if self.shape == "student":
            scatter = rng.standard_t(4, n) / np.sqrt(2.0)
        elif self.shape == "stragglers":
            scatter = scatter + (rng.random(n) < 0.02) * np.log(5.0) / self.noise[k]
        return np.asarray(
            self.median[k] * np.exp(x[:, :-1] @ self.times[k] + self.noise[k] * scatter)
        )

    def slow_share(self, k: int, limit: float) -> float:
        """Return which share of model k's calls takes longer."""
        rng = np.random.default_rng(k)
        x = np.c_[rng.normal(size=(SAMPLED, self.slopes.shape[1])), np.ones(SAMPLED)]
        return float((self.seconds(k, x, rng) > limit).mean())


@dataclass(frozen=True, slots=True)
class Played:
    """Seconds, rewards and dollars of what is measured, and the alerts."""

    seconds: np.ndarray
    rewards: np.ndarray
    dollars: np.ndarray
    alerts: tuple[str, ...]


def play(
    world: World, goal: LatencyGoal | None, *, n: int, seed: int, without: frozenset[int]
) -> Played:
    """Play one world; models `without` which are not declared."""
    rng, K = np.random.default_rng((seed, 2)), len(world.price)
    models = {
        f"m{k}": ModelConfig(Price(float(world.price[k]), 3.0 * float(world.price[k])))
        for k in range(K)
        if k not in without
    }
    d = world.slopes.shape[1] + 1
    engine = Engine.start(
        RouterConfig(
            models,
            world.budget_usd,
            dimensions=d,
            capabilities={} if goal is None else {"latency": goal},
        )
    )
    due: list[tuple[float, int, Any]] = []
    number, rows, now = count(), [], 0.0
    alerts: list[str] = []
    for i in range(n):
        now += float(rng.exponential(1.0 / world.rate))
        while due and due[0][0] <= now:
            heapq.heappop(due)[2]()
        x = np.append(rng.normal(size=d - 1), 1.0)
        # All outcomes are drawn, so that every router meets the same ones.
        took = [float(world.seconds(k, x[None, :], rng)[0]) for k in range(K)]
        earned = np.clip(world.quality + world.slopes @ x[:-1] + 0.1 * rng.normal(size=K), 0, 1)
        usd = world.price * 2e-3 * np.exp(0.3 * rng.normal(size=K) - 0.045)
        judged = rng.random() < world.judged
        if world.change == "slower" and i >= (FIRST + n) // 2:
            took[K // 2] *= 3.0
        k = int(engine.decide(str(i), x, now=now).model[1:])
        rows.append((took[k], float(earned[k]), float(usd[k])))
        bill = {"cost_usd": float(usd[k]), "latency": took[k]}
        heapq.heappush(due, (now + took[k], next(number), partial(engine.settle, str(i), **bill)))
        if judged:
            reward = partial(engine.learn, str(i), reward=float(earned[k]))
            heapq.heappush(due, (now + took[k] + 5.0, next(number), reward))
        alerts += [alert.kind for alert in engine.take_alerts()]
    seconds, rewards, dollars = (np.array(column) for column in zip(*rows[FIRST:], strict=True))
    return Played(seconds, rewards, dollars, tuple(alerts))


def compared(seed: int, *, n: int, mean: bool) -> dict[str, object]:
    """Return what one world came to with its target, without, and with models left out by hand."""
    world, rng = World.draw(seed), np.random.default_rng((seed, 3))
    plain = play(world, None, n=n, seed=seed, without=frozenset())
    p95 = float(np.quantile(plain.seconds, 1.0 - TAIL))
    # What is asked for can be had: one model at least is fast enough by itself.
    K = len(world.price)
    factor = float(rng.uniform(0.4, 0.9))
    while min(world.slow_share(k, factor * p95) for k in range(K)) > TAIL / 2.0:
        factor *= 1.1
    limit = factor * p95
    if mean:
        limit = factor * float(plain.seconds.mean())
        goal = LatencyGoal(mean_seconds=limit)
    else:
        goal = LatencyGoal(p95_seconds=limit)
    slow = frozenset(k for k in range(K) if world.slow_share(k, factor * p95) > TAIL)
    runs = {
        "target": play(world, goal, n=n, seed=seed, without=frozenset()),
        "without": plain,
        "by hand": play(world, None, n=n, seed=seed, without=slow),
    }
    found: dict[str, object] = {"seed": seed, "shape": world.shape, "change": world.change}
    for name, run in runs.items():
        kept = run.seconds.mean() / limit if mean else (run.seconds > limit).mean()
        of_budget = run.dollars.mean() / (world.budget_usd or plain.dollars.mean())
        found[name] = [float(kept), float(run.rewards.mean()), float(of_budget)]
        if mean:
            usual = np.sort(run.seconds)[:-LONGEST]
            found[f"{name}, without the {LONGEST} longest"] = float(usual.mean() / limit)
    found["unreachable"] = "latency_unreachable" in runs["target"].alerts
    return found


@click.command()
@click.option("--worlds", default=60, show_default=True)
@click.option("--from", "first", default=0, help="Seed of the first world.")
@click.option("--n", default=4000, show_default=True, help="Requests of a world.")
@click.option("--mean", is_flag=True, help="Targets of the mean instead of p95.")
@click.option("--json", "as_json", is_flag=True)
def main(worlds: int, first: int, n: int, mean: bool, as_json: bool) -> None:
    """Compare routers with a target of latency, without one, and without slow models."""
    found = [compared(seed, n=n, mean=mean) for seed in range(first, first + worlds)]
    if as_json:
        click.echo(json.dumps(found))
        return
    kept = "mean ÷ target" if mean else "share over the limit"
    click.echo(f"{worlds} worlds, {n - FIRST} requests each after the first {FIRST}")
    click.echo(f"| router | {kept}: mean | 9 of 10 worlds | worst | reward | dollars ÷ budget |")
    click.echo("| --- | --- | --- | --- | --- | --- |")
    for name in ("target", "without", "by hand"):
        rows = np.array([one[name] for one in found])
        tenth = np.quantile(rows[:, 0], 0.9)
        click.echo(
            f"| {name} | {rows[:, 0].mean():.3f} | {tenth:.3f} | {rows[:, 0].max():.3f} | "
            f"{rows[:, 1].mean():.3f} | {rows[:, 2].mean():.3f} |"
        )
    if mean:
        name = f"target, without the {LONGEST} longest"
        usual = np.array([one[name] for one in found], dtype=float)
        click.echo(
            f"target without the {LONGEST} longest calls: {usual.mean():.3f}, worst "
            f"{usual.max():.3f}"
        )
    gains = np.array([one["target"][1] - one["by hand"][1] for one in found])  # type: ignore[index]
    half = 1.96 * gains.std(ddof=1) / np.sqrt(worlds)
    click.echo(f"reward, target − by hand: {gains.mean():+.4f} ± {half:.4f}")
    alarms = sum(bool(one["unreachable"]) for one in found)
    click.echo(f"latency_unreachable in {alarms} worlds")


if __name__ == "__main__":
    main()
