"""Families of tenants: drawn ones from alike to unlike, and judged data split into tenants."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from benchmarks.arena import Array
from benchmarks.attempt_worlds import Judged, world
from benchmarks.beside import code
from benchmarks.elsewhere import drawing
from benchmarks.elsewhere.real import eleven
from commands.demo.benchmark import load_rows
from router_state.config import Price

Whole: TypeAlias = npt.NDArray[np.integer[Any]]
"""Positions of models, or of kinds."""
REQUESTS = 200
"""Requests of each tenant that are played."""
LEAST_PROMPTS = 100
"""Fewest prompts that a tenant of judged data has."""
TENANTS = 10
UNLIKE = (0.0, 0.03, 0.06, 0.12, 0.24)
"""Deviations between drawn tenants of a model's mean reward, from alike to unlike."""


@dataclass(frozen=True, slots=True, eq=False)
class Tenant:
    """A router's prompts in order, and what every model earns and costs on them.

    Attributes:
        contexts: shape (n, d); rewards, costs, quality: shape (n, K), quality without noise where
            that is known.
        budget: dollars per request.
    """

    models: tuple[str, ...]
    prices: tuple[Price, ...]
    contexts: Array
    rewards: Array
    costs: Array
    quality: Array
    budget: float


def drawn(seed: int, *, unlike: float, tenants: int = TENANTS) -> list[Tenant]:
    """Draw a family: models, what prompts ask of them, and by how much tenants differ from each
    other in that, in their levels, in their prompts and in their bills."""
    rng = np.random.default_rng([58, seed])
    K, d = int(rng.integers(3, 13)), int(rng.choice((3, 9, 17, 26)))
    sigma = float(np.exp(rng.uniform(np.log(0.1), np.log(0.45))))
    base = rng.uniform(0.45, 0.7) + rng.normal(0.0, 0.12, K)
    slopes = rng.choice((0.0, 0.04, 0.08)) * rng.normal(size=(d - 1, K)) / np.sqrt(d - 1)
    levels = float(rng.choice((0.0, 0.05, 0.1)))
    apart = float(rng.choice((0.0, 0.5, 1.0)))
    by_tenant = float(rng.choice((0.0, 0.3, 0.8)))
    listed = drawing.prices(K, float(rng.uniform(0.5, 2.5)), 0, rng)
    length, at = rng.normal(0.0, 0.5, K), float(rng.uniform(0.2, 1.0))
    found = []
    for _ in range(tenants):
        features = apart * rng.normal(size=d - 1) + rng.normal(size=(REQUESTS, d - 1))
        own = slopes + 0.5 * unlike * rng.normal(size=(d - 1, K)) / np.sqrt(d - 1)
        mean = base + unlike * rng.normal(size=K) + levels * rng.normal() + features @ own
        expected = np.clip(mean, drawing.LEAST, drawing.MOST)
        longer = by_tenant * rng.normal() + 0.5 * by_tenant * rng.normal(size=K) + length
        output = 200.0 * np.exp(longer + 0.5 * rng.normal(size=(REQUESTS, K)))
        input_tokens = 300.0 * np.exp(rng.normal(0.0, 0.7, (REQUESTS, 1)))
        per_m = np.array([(one.input_price_per_m, one.output_price_per_m) for one in listed])
        costs = (input_tokens * per_m[:, 0] + output * per_m[:, 1]) / 1e6
        found.append(
            Tenant(
                tuple(f"m{k:02d}" for k in range(K)),
                listed,
                np.column_stack([features, np.ones(REQUESTS)]),
                drawing.rewards(expected, sigma, rng),
                costs,
                expected,
                budget_of(expected, costs, at),
            )
        )
    return found


def budget_of(quality: Array, costs: Array, at: float) -> float:
    """Return a budget between what the cheapest model costs (0) and what the best one does (1)."""
    mean = costs.mean(0)
    low, high = float(mean.min()), float(mean[quality.mean(0).argmax()])
    return float(max(low * (high / low) ** at, 1.1 * low))


def judged(name: str, seed: int, folder: Path) -> list[Tenant]:
    """Return tenants of judged data: by task, kind of code, cluster, or kind of prompt, each kind
    twice where there are few; prompts are drawn anew where a kind has too few."""
    rng = np.random.default_rng([59, seed])
    one = world(name, folder)
    kinds = _kinds(name, one, folder)
    names = [kind for kind in np.unique(kinds) if (kinds == kind).sum() >= LEAST_PROMPTS]
    while len(names) < TENANTS - 2:
        names = names + names
    found = []
    for kind in rng.permutation(names):
        mine = np.flatnonzero(kinds == kind)
        rows = rng.choice(mine, REQUESTS, replace=len(mine) < REQUESTS)
        whole = one.rewards[mine], one.costs[mine]
        found.append(
            Tenant(
                one.models,
                one.prices,
                one.contexts[rows],
                one.rewards[rows],
                one.costs[rows],
                one.rewards[rows],
                budget_of(*whole, 0.6),
            )
        )
    return found


def _kinds(name: str, one: Judged, folder: Path) -> Whole:
    """Return what each prompt is of."""
    if name == "code":
        return np.asarray(code.tasks().kinds)
    if name == "eleven":
        return np.unique(eleven(folder, "static").sources, return_inverse=True)[1]
    if name == "paper":
        return np.unique(load_rows("test").sources, return_inverse=True)[1]
    # Prompts without a source are split by what they are about.
    from sklearn.cluster import KMeans

    return np.asarray(KMeans(8, n_init=4, random_state=0).fit_predict(one.contexts[:, :-1]))


def broken(tenants: Sequence[Tenant], which: int, how: str) -> list[Tenant]:
    """Return tenants of whom one has labels that are inverted, constant, or on another scale."""
    one = tenants[which]
    rewards = {
        "inverted": 1.0 - one.rewards,
        "constant": np.full_like(one.rewards, 1.0),
        "scale": 0.1 * one.rewards,
    }[how]
    return [
        replace(tenant, rewards=rewards) if k == which else tenant
        for k, tenant in enumerate(tenants)
    ]
