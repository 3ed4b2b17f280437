"""Variants: what it gains that a variant's coefficients scatter around its model's.

    uv run python -m benchmarks.variants [--worlds 30]

Worlds of one to four models with one to four variants each are drawn. In `together` all are there
from the start; in `joins` one variant of each model joins after a third of the requests. Bills come
30, labels 100 requests late.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import click
import numpy as np

from benchmarks.arena import Array, declared
from benchmarks.elsewhere import drawing
from benchmarks.family_worlds import Whole, budget_of
from benchmarks.played import Played
from benchmarks.rows import _pool, half_width
from benchmarks.variant_level import Level
from router_state.config import Price, RouterConfig

REQUESTS = 900
BILLS_LATE, LABELS_LATE = 30, 100
JOINS = 300
"""The request before which the last variants join."""
WITHIN = (0.1, 0.3, 0.6, 1.0)
"""Parts of the variance between models that is between variants of one; 1: a model tells nothing of
its variants."""
Found: TypeAlias = dict[str, tuple[float, float, float]]
"""Mean reward, cost in budgets, and mean reward after joining, by how it is played."""
HOWS = ("apart", "at joining", "level", "level of both")


@dataclass(frozen=True, slots=True, eq=False)
class World:
    """A router's prompts in order, and what every variant earns and costs on them.

    Attributes:
        groups: variants of each model; late: those that join later.
        contexts: shape (n, d); rewards, costs, quality: shape (n, K), quality without noise.
        budget: dollars per request.
    """

    groups: tuple[tuple[str, ...], ...]
    late: tuple[str, ...]
    prices: tuple[Price, ...]
    contexts: Array
    rewards: Array
    costs: Array
    quality: Array
    budget: float

    @property
    def names(self) -> list[str]:
        """The names of all variants, in the columns' order."""
        return [name for group in self.groups for name in group]

    def config(self, *, late: bool) -> RouterConfig:
        """Return the declaration, of the late variants as well."""
        prices = zip(self.names, self.prices, strict=True)
        there = {name: price for name, price in prices if late or name not in self.late}
        return declared(there, self.budget, self.contexts.shape[1])


def drawn(seed: int, *, within: float) -> World:
    """Draw a world; the variants' means and slopes scatter by `within` of the models' variance."""
    rng = np.random.default_rng([60, seed])
    sizes = [int(size) for size in rng.integers(1, 5, int(rng.integers(1, 5)))]
    if max(sizes) == 1:
        sizes[0] = 3
    d, n = int(rng.choice((3, 9, 17, 26))), REQUESTS
    sigma = float(np.exp(rng.uniform(np.log(0.1), np.log(0.45))))
    level, slope = float(rng.uniform(0.45, 0.7)), float(rng.choice((0.0, 0.04, 0.08)))
    spent, groups = float(rng.choice((0.3, 0.8))), []
    means, slopes, lengths, prices = [], [], [], []
    listed = drawing.prices(len(sizes), float(rng.uniform(0.5, 2.0)), 0, rng)
    for m, size in enumerate(sizes):
        groups.append(tuple(f"m{m}v{v}" for v in range(size)))
        own, steep, length = rng.normal(), rng.normal(size=d - 1), rng.normal(0.0, 0.5)
        for _ in range(size):
            part = np.sqrt(1.0 - within), np.sqrt(within)
            means.append(level + 0.12 * (part[0] * own + part[1] * rng.normal()))
            slopes.append(slope * (part[0] * steep + part[1] * rng.normal(size=d - 1)))
            lengths.append(length + spent * rng.normal())
            prices.append(listed[m])
    features = rng.normal(size=(n, d - 1))
    mean = np.array(means) + features @ np.array(slopes).T / np.sqrt(d - 1)
    expected = np.clip(mean, drawing.LEAST, drawing.MOST)
    output = 200.0 * np.exp(np.array(lengths) + 0.5 * rng.normal(size=expected.shape))
    read = 300.0 * np.exp(rng.normal(0.0, 0.7, (n, 1)))
    per_m = np.array([(one.input_price_per_m, one.output_price_per_m) for one in prices])
    costs = (read * per_m[:, 0] + output * per_m[:, 1]) / 1e6
    return World(
        tuple(groups),
        tuple(group[-1] for group in groups if len(group) > 1),
        tuple(prices),
        np.column_stack([features, np.ones(n)]),
        drawing.rewards(expected, sigma, rng),
        costs,
        expected,
        budget_of(expected, costs, float(rng.uniform(0.3, 1.0))),
    )


def play(world: World, how: str, *, joins: bool, within: float) -> Whole:
    """Return what was chosen, shape (n,)."""
    engine = Played.start(world.config(late=not joins))
    levels = [Level(world.groups, 1.0 if how == "apart" else within) for _ in range(2)]
    names, chosen = world.names, np.zeros(len(world.contexts), np.int64)
    bills: deque[int] = deque()
    labels: deque[int] = deque()
    for i, x in enumerate(world.contexts):
        while bills and bills[0] < i - BILLS_LATE:
            j = bills.popleft()
            engine.settle(str(j), cost_usd=float(world.costs[j, chosen[j]]))
        while labels and labels[0] < i - LABELS_LATE:
            j = labels.popleft()
            engine.learn(str(j), reward=float(world.rewards[j, chosen[j]]))
        if joins and i == JOINS:
            engine.configure(world.config(late=True), now=float(i))
        late = world.late if joins and i == JOINS else ()
        _exchange(engine, levels, how, joining=late)
        chosen[i] = names.index(engine.decide(str(i), x, now=float(i)).model)
        bills.append(i)
        labels.append(i)
    return chosen


def _exchange(engine: Played, levels: Sequence[Level], how: str, *, joining: Sequence[str]) -> None:
    if how == "apart" or (how == "at joining" and not joining):
        return
    state = engine.state
    arms = state.arms
    if joining:
        levels[0].due_at = levels[1].due_at = 0.0
    if arms.rewards.seen >= levels[0].due_at:
        for arm in arms:
            arm.rewards.forget(state.t, state.config.knobs.gamma)
    only = joining if how == "at joining" else ()
    moved = levels[0].exchange(arms.rewards, {arm.name: arm.rewards for arm in arms}, only)
    if how == "level of both":
        priced = {arm.name: arm.costs.regression for arm in arms if not arm.costs.free}
        moved |= levels[1].exchange(arms.bills, priced)
    if moved:
        state.journal.jumped = True
        arms.sample.left = 0


def one(job: tuple[int, float, bool], assumed: float, hows: Sequence[str]) -> Found:
    """Play a world; what counts as after joining are the 200 requests after a variant may have
    joined."""
    seed, within, joins = job
    world = drawn(seed, within=within)
    found = {}
    for how in hows:
        chosen = play(world, how, joins=joins, within=assumed)
        rows = np.arange(len(chosen))
        earned, paid = world.quality[rows, chosen], world.costs[rows, chosen]
        found[how] = (
            float(earned.mean()),
            float(paid.mean()) / world.budget,
            float(earned[JOINS : JOINS + 200].mean()),
        )
    return found


@click.command()
@click.option("--worlds", default=30, help="Worlds of each kind.")
@click.option("--first", default=0, help="First seed.")
@click.option("--assumed", default=0.5, help="Part of the variance that the level assumes.")
@click.option("--when", "whens", multiple=True, type=click.Choice(("together", "joins")))
@click.option("--how", "hows", multiple=True, type=click.Choice(HOWS))
def main(
    worlds: int, first: int, assumed: float, whens: Sequence[str], hows: Sequence[str]
) -> None:
    """Compare the level of variants with models that are all apart."""
    hows = ("apart", *hows) if hows else HOWS
    with _pool() as pool:
        for when in whens or ("together", "joins"):
            every: list[Found] = []
            for within in WITHIN:
                jobs = [(seed, within, when == "joins") for seed in range(first, first + worlds)]
                found = list(pool.map(partial(one, assumed=assumed, hows=hows), jobs))
                report(f"{when}, {within:g} within", found)
                every += found
            report(f"{when}, all", every)


def report(label: str, found: Sequence[Found]) -> None:
    """Write means, and differences to `apart` with their 95 % intervals."""
    parts = []
    for how in found[0]:
        mean = np.mean([row[how] for row in found], axis=0)
        parts.append(f"{how} {mean[0]:.4f} ({mean[1]:.2f} B)")
        if how != "apart":
            gains = [row[how][0] - row["apart"][0] for row in found]
            early = [row[how][2] - row["apart"][2] for row in found]
            parts.append(
                f"{np.mean(gains):+.4f} ± {half_width(gains):.4f} (after joining "
                f"{np.mean(early):+.4f} ± {half_width(early):.4f}, least {min(gains):+.4f})"
            )
    click.echo(f"{label}: " + ", ".join(parts))


if __name__ == "__main__":
    main()
