"""Synthetic traffic over three models: contexts, rewards and costs."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import cycle, islice

import numpy as np

from ground.files.array_folder import Array
from router_state.config import Price

BINDING_USD, LOOSE_USD = 6.62e-4, 2.0e-2
PRICES = {"llama": Price(0.1, 0.1), "mistral": Price(0.5, 1.5), "gemini": Price(1.25, 10.0)}
NAMES = tuple(PRICES)
_MEAN_REWARDS, _MEAN_COSTS = (0.80, 0.90, 0.93), (3e-5, 5e-4, 1.5e-2)


def prices(K: int) -> dict[str, Price]:
    """Return the list prices of K models."""
    return {
        name if k < len(NAMES) else f"{name}-{k}": PRICES[name]
        for k, name in enumerate(islice(cycle(NAMES), K))
    }


@dataclass(frozen=True, eq=False)
class Feed:
    """Contexts (n, d), and of each model {name: n rewards} and {name: n costs in dollars}."""

    contexts: list[Array]
    rewards: dict[str, list[float]]
    costs: dict[str, list[float]]

    @classmethod
    def make(cls, n: int, *, d: int, K: int = 3, seed: int = 0) -> Feed:
        """Draw n requests of dimension d with linear rewards and costs like the benchmark's; more
        than three models are like these three in turn."""
        rng = np.random.default_rng(seed)
        contexts = rng.normal(size=(n, d)) * 0.5
        contexts[:, -1] = 1.0
        weights = rng.normal(size=(K, d)) * (0.25 / np.sqrt(d))
        weights[:, -1] = np.resize(_MEAN_REWARDS, K)
        rewards = np.clip(contexts @ weights.T + rng.normal(size=(n, K)) * 0.1, 0.0, 1.0)
        costs = np.resize(_MEAN_COSTS, K) * rng.lognormal(-0.25, 0.7, size=(n, K))
        columns = [
            {name: table[:, k].tolist() for k, name in enumerate(prices(K))}
            for table in (rewards, costs)
        ]
        return cls(list(contexts), *columns)
