"""Synthetic worlds for one question each: a clear winner among ten, and tasks whose mix changes."""

from __future__ import annotations

import numpy as np

from benchmarks.arena import Rows
from benchmarks.elsewhere import drawing
from benchmarks.elsewhere.world import BILLS_LATE, REWARDS_LATE, World, late
from router_state.config import Price

ORDERS = ("mixed", "in turn", "growing", "alternating")
BLOCK = 150  # requests of a task before the next one takes over


def winner(seed: int) -> World:
    """Ten models; a cheap one is better by 0.2 than every other. Rewards come 100 requests
    late.
    """
    rng = np.random.default_rng([17, seed])
    n, K, d = 1400, 10, 26
    X, tasks = drawing.contexts(n, d, "gaussian", rng)
    best = int(rng.integers(K))
    base = rng.uniform(0.3, 0.6, K)
    base[best] = 0.8
    expected = np.clip(
        base + 0.05 * drawing.effects(X, 1, rng) + 0.03 * drawing.effects(X, K, rng), 0.02, 0.98
    )
    outputs = 10.0 ** rng.uniform(-0.3, 1.3, K)
    outputs[best] = 0.3
    listed = tuple(Price(float(o / 3.0), float(o)) for o in outputs)
    bills = drawing.bills(listed, X, tasks, "lognormal", rng, by_prompt=0.3)
    return World(
        kind="a clear winner",
        name=str(seed),
        models=tuple(f"m{k}" for k in range(K)),
        prices=listed,
        contexts=X,
        rewards=drawing.rewards(expected, 0.3, rng),
        costs=bills.costs,
        budget=2.0 * float(bills.costs[:, best].mean()),
        bill_delay=late(n, BILLS_LATE),
        reward_delay=late(n, REWARDS_LATE),
        phases={"after 400": slice(400, n), "whole": slice(0, n)},
        expected=expected,
        input_tokens=bills.input_tokens,
        facts={"best": best},
    )


def ordered(sources: Rows, order: str, rng: np.random.Generator) -> Rows:
    """Return the rows of several tasks in an order, every row once.

    Mixed, one task after the other, one that grows from nothing to all there is, or blocks of each
    in turn.

    Args:
        sources: shape (n,), the task of each row, 0..T-1.
    """
    rows = rng.permutation(len(sources))
    of_row = sources[rows]
    tasks = rng.permutation(int(sources.max()) + 1)
    rank = np.empty(len(tasks), np.int64)
    rank[tasks] = np.arange(len(tasks))
    place = rng.random(len(rows))
    if order == "in turn":
        place += rank[of_row]
    elif order == "growing":  # density of the last task 2t, of the others 2(1 - t)
        place = np.where(rank[of_row] == len(tasks) - 1, np.sqrt(place), 1.0 - np.sqrt(1.0 - place))
    elif order == "alternating":
        within = np.empty(len(rows))
        for task in tasks:
            mine = of_row == task
            blocks = max(1, len(rows) // (BLOCK * len(tasks)))
            within[mine] = (
                np.floor(np.arange(mine.sum()) * blocks / mine.sum()) * len(tasks) + rank[task]
            )
        place += within
    return np.asarray(rows[np.argsort(place, kind="stable")], dtype=np.int64)


def tasks(order: str, seed: int) -> World:
    """Three tasks over six models, that differ in who is good at them and by a factor of up to
    three in what calls cost.
    """
    rng = np.random.default_rng([18, seed])
    n, K, d = 3000, 6, 26
    sources = np.arange(n, dtype=np.int64) % 3
    X = np.concatenate(
        [1.2 * rng.normal(size=(3, d - 1))[sources] + rng.normal(size=(n, d - 1)), np.ones((n, 1))],
        axis=1,
    )
    quality = np.sort(rng.uniform(0.45, 0.8, K)) + rng.normal(0.0, 0.1, (3, K))
    expected = np.clip(
        quality[sources] + 0.05 * drawing.effects(X, 1, rng) + 0.03 * drawing.effects(X, K, rng),
        0.02,
        0.98,
    )
    outputs = np.geomspace(0.2, 10.0, K)
    listed = tuple(Price(float(o / 3.0), float(o)) for o in outputs)
    bills = drawing.bills(listed, X, sources, "by task", rng, by_prompt=0.1)
    found = ordered(sources, order, rng)
    costs = bills.costs[found]
    return World(
        kind=f"three tasks, {order}",
        name=str(seed),
        models=tuple(f"m{k}" for k in range(K)),
        prices=listed,
        contexts=X[found],
        rewards=drawing.rewards(expected, 0.3, rng)[found],
        costs=costs,
        budget=float(np.exp(np.log(costs.mean(0)).mean())),
        bill_delay=late(n, BILLS_LATE),
        reward_delay=late(n, REWARDS_LATE),
        phases={"whole": slice(0, n)},
        expected=expected[found],
        input_tokens=bills.input_tokens[found],
        stationary=True,
    )
