"""Rival policies: every model learned by itself, with the same dual.

Ridge regressions of rewards, mean costs, λ_t solved over the last contexts as `live` does. With
ε-greedy exploration, or with coefficients drawn from N(θ, σ²A⁻¹) (Agrawal and Goyal 2013).
"""

from __future__ import annotations

from copy import deepcopy

import numpy as np

from benchmarks.arena import Array, Policy
from benchmarks.ridge import observe
from router_state.changes import Alert
from router_state.config import RouterConfig
from router_state.kernel import Options

WINDOW = 128
"""Contexts that the dual is solved over."""
EVERY = 8
"""Decisions that one solution serves."""
HORIZON = 100.0
"""Requests over which a debt is paid back."""
UNREACHABLE = 1e6
"""λ_t where no price of a dollar meets the budget."""


class Apart:
    """Models that learn apart; see the module.

    Args:
        epsilon: share of requests that go to a random model.
        sigma: deviation of the draws of coefficients; 0: none.
        ridge: of each regression.
    """

    def __init__(
        self, seed: int, *, epsilon: float = 0.0, sigma: float = 0.0, ridge: float = 1.0
    ) -> None:
        self.rng = np.random.default_rng(seed)
        self.epsilon, self.sigma, self.ridge = epsilon, sigma, ridge
        self.models: list[str] = []
        self.A_inv: dict[str, Array] = {}
        self.theta: dict[str, Array] = {}
        self.bills: dict[str, tuple[float, int]] = {}
        self.window: list[Array] = []
        self.open: dict[int, tuple[str, Array, float]] = {}
        self.waiting: dict[int, tuple[str, Array]] = {}
        self.debt = self.budget = self.lambda_t = 0.0
        self.decided = 0

    def declare(self, config: RouterConfig, *, at: int) -> None:
        self.models = list(config.models)
        self.budget = config.budget_usd_per_request or float("inf")
        for model, declared in config.models.items():
            if model not in self.theta:
                self.A_inv[model] = np.eye(config.dimensions) / self.ridge
                self.theta[model] = np.zeros(config.dimensions)
                self.bills[model] = (3.0 * declared.price.per_1k, 1)

    def decide(self, i: int, x: Array) -> tuple[str, float, str]:
        self.window = [*self.window[1 - WINDOW :], x]
        costs = np.array([self.bills[model][0] for model in self.models])
        if self.budget < float("inf") and (self.decided % EVERY == 0 or self.decided < EVERY):
            scores = np.array(self.window) @ np.array([self.theta[m] for m in self.models]).T
            share = min(max(1.0 - self.debt / self.budget / HORIZON, 0.25), 2.0)
            options = Options.of(scores, np.tile(costs, (len(scores), 1)))
            solved = options.price(target=share * self.budget)
            self.lambda_t = UNREACHABLE if solved is None else solved * self.budget
        self.decided += 1
        theta = np.array([self._drawn(model) for model in self.models])
        scores = theta @ x - self.lambda_t * costs / self.budget
        k, reason = int(scores.argmax()), "score"
        if self.epsilon and self.rng.random() < self.epsilon:
            k, reason = int(self.rng.integers(len(self.models))), "probe"
        model = self.models[k]
        self.open[i], self.waiting[i] = (model, x, float(costs[k])), (model, x)
        self.debt += float(costs[k]) - min(self.budget, 1e9)
        return model, self.lambda_t, reason

    def _drawn(self, model: str) -> Array:
        if not self.sigma:
            return self.theta[model]
        root = np.linalg.cholesky(self.A_inv[model])
        drawn: Array = self.theta[model] + self.sigma * root @ self.rng.standard_normal(len(root))
        return drawn

    def settle(self, i: int, cost_usd: float) -> None:
        if i in self.open:
            model, _, charged = self.open.pop(i)
            self.debt += cost_usd - charged
            mean, count = self.bills[model]
            self.bills[model] = (mean + (cost_usd - mean) / (count + 1), count + 1)

    def learn(self, i: int, reward: float) -> None:
        if i in self.waiting:
            model, x = self.waiting.pop(i)
            observe(self.A_inv[model], self.theta[model], x, reward)

    def take_alerts(self) -> list[Alert]:
        return []

    def copy(self) -> Policy:
        return deepcopy(self)
