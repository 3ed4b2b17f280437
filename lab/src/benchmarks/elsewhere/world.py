"""A world: requests in order, what every model would earn and cost on each, when feedback comes,
what is measured.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from benchmarks.arena import Array, Episode, declared
from router_state.config import Price, Prior

BILLS_LATE, REWARDS_LATE = 30.0, 100.0  # requests, as in the demo


@dataclass(frozen=True, slots=True, eq=False)
class World:
    """n requests over K models.

    Args:
        kind: the row of the table that it belongs to; name: what tells it from others of its kind.
        contexts: shape (n, d), last entry 1.0.
        rewards, costs: shape (n, K); costs in dollars.
        bill_delay, reward_delay: shape (n,), in requests; infinity: never.
        expected: shape (n, K), rewards without their noise, where they are known; policies are
            measured by them.
        input_tokens: shape (n,), what is known of a prompt's length before the call.
        phases: what is measured, by name.
        mixed_on: where the best fixed mix of a phase is the best one of other requests: which.
        stationary: nothing drifts, so every alarm is false.
        facts: what it was drawn with.
    """

    kind: str
    name: str
    models: tuple[str, ...]
    prices: tuple[Price, ...]
    contexts: Array
    rewards: Array
    costs: Array
    budget: float
    bill_delay: Array
    reward_delay: Array
    phases: Mapping[str, slice]
    mixed_on: Mapping[str, slice] = field(default_factory=dict)
    expected: Array | None = None
    input_tokens: Array | None = None
    priors: Mapping[str, Prior] = field(default_factory=dict)
    stationary: bool = True
    facts: Mapping[str, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.contexts)

    @property
    def quality(self) -> Array:
        """Return what policies are measured by, shape (n, K)."""
        return self.rewards if self.expected is None else self.expected

    def episode(self) -> Episode:
        """Return the world as an arena plays it: one declaration, at the start."""
        prices = dict(zip(self.models, self.prices, strict=True))
        config = declared(prices, self.budget, self.contexts.shape[1], self.priors)
        return Episode(
            self.models,
            self.contexts,
            self.rewards,
            self.costs,
            {0: config},
            self.bill_delay,
            self.reward_delay,
            self.phases,
            input_tokens=self.input_tokens,
        )


def late(n: int, delay: float) -> Array:
    """Return the same delay for n requests."""
    return np.full(n, float(delay))
