"""Made-up traffic over three models: contexts, and what each model would have earned and cost."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from router_state.config import Price
from streams.files.array_folder import Array

BINDING_USD, LOOSE_USD = 6.62e-4, 2.0e-2
PRICES = {"llama": Price(0.1, 0.1), "mistral": Price(0.5, 1.5), "gemini": Price(1.25, 10.0)}
NAMES = tuple(PRICES)
_MEAN_REWARDS, _MEAN_COSTS = (0.80, 0.90, 0.93), (3e-5, 5e-4, 1.5e-2)


@dataclass(frozen=True, eq=False)
class Feed:
    """Contexts (n, d), and of each model {name: n rewards} and {name: n costs in dollars}."""

    contexts: list[Array]
    rewards: dict[str, list[float]]
    costs: dict[str, list[float]]

    @classmethod
    def make(cls, n: int, *, d: int, seed: int = 0) -> Feed:
        """Draw n requests of dimension d with linear rewards and costs like the benchmark's."""
        rng = np.random.default_rng(seed)
        contexts = rng.normal(size=(n, d)) * 0.5
        contexts[:, -1] = 1.0
        weights = rng.normal(size=(3, d)) * (0.25 / np.sqrt(d))
        weights[:, -1] = _MEAN_REWARDS
        rewards = np.clip(contexts @ weights.T + rng.normal(size=(n, 3)) * 0.1, 0.0, 1.0)
        costs = np.array(_MEAN_COSTS) * rng.lognormal(-0.25, 0.7, size=(n, 3))
        columns = [
            {name: table[:, k].tolist() for k, name in enumerate(NAMES)}
            for table in (rewards, costs)
        ]
        return cls(list(contexts), *columns)
