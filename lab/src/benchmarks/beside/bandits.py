"""Bandits that learn reward less price·dollars, every model by itself: LinUCB, LinTS, ε-greedy, and
those of Vowpal Wabbit.

The price of a dollar is set beforehand, as none of them holds a budget.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any, Literal

import numpy as np

from benchmarks.arena import Array, Policy
from benchmarks.ridge import observe
from router_state.changes import Alert
from router_state.config import RouterConfig

Kind = Literal["ucb", "sample", "greedy"]


class Bandit:
    """A bandit chooses a model, and learns from a reward and its bill.

    Args:
        price: what a dollar is worth in reward.
    """

    def __init__(self, price: float) -> None:
        self.price = price
        self.models: tuple[str, ...] = ()
        self.chosen: dict[int, tuple[int, Array]] = {}
        self.billed: dict[int, float] = {}

    def declare(self, config: RouterConfig, *, at: int) -> None:
        if not self.models:
            self.models = tuple(config.models)
            self.start(len(self.models), config.dimensions)

    def start(self, K: int, d: int) -> None:
        """Begin with K models and contexts of d dimensions."""
        raise NotImplementedError

    def choose(self, i: int, x: Array) -> int:
        """Return the model of request i by its position."""
        raise NotImplementedError

    def observe(self, i: int, k: int, x: Array, value: float) -> None:
        """Learn reward less price·dollars of a request."""
        raise NotImplementedError

    def decide(self, i: int, x: Array) -> tuple[str, float, str]:
        k = self.choose(i, x)
        self.chosen[i] = k, x
        return self.models[k], self.price, "score"

    def settle(self, i: int, cost_usd: float) -> None:
        self.billed[i] = cost_usd

    def learn(self, i: int, reward: float) -> None:
        k, x = self.chosen.pop(i)
        self.observe(i, k, x, reward - self.price * self.billed.pop(i))

    def take_alerts(self) -> list[Alert]:
        return []

    def copy(self) -> Policy:
        return deepcopy(self)


class Linear(Bandit):
    """A ridge regression for each model.

    LinUCB adds `explore`·√(xᵀA⁻¹x) to the mean (Li et al. 2010), LinTS draws coefficients from
    N(θ, explore²·A⁻¹) (Agrawal and Goyal 2013), ε-greedy calls any model in a share `explore` of
    requests.
    """

    def __init__(self, seed: int, price: float, *, kind: Kind, explore: float) -> None:
        super().__init__(price)
        self.rng = np.random.default_rng(seed)
        self.kind, self.explore = kind, explore

    def start(self, K: int, d: int) -> None:
        self.A_inv, self.theta = np.tile(np.eye(d), (K, 1, 1)), np.zeros((K, d))
        self.root = self.A_inv.copy()

    def choose(self, i: int, x: Array) -> int:
        scores = self.theta @ x
        if self.kind == "ucb":
            scores = scores + self.explore * np.sqrt(x @ (self.A_inv @ x).T)
        elif self.kind == "sample":
            drawn = self.rng.standard_normal(self.theta.shape)
            scores = scores + self.explore * np.einsum("kij,kj,i->k", self.root, drawn, x)
        elif self.rng.random() < self.explore:
            return int(self.rng.integers(len(scores)))
        return int(self.rng.choice(np.flatnonzero(scores == scores.max())))

    def observe(self, i: int, k: int, x: Array, value: float) -> None:
        observe(self.A_inv[k], self.theta[k], x, value)
        if self.kind == "sample":
            self.root[k] = np.linalg.cholesky(self.A_inv[k])


class VowpalWabbit(Bandit):
    """Vowpal Wabbit's contextual bandit with one set of coefficients for each model.

    Args:
        options: how it explores, as its command line says it.

    Raises:
        ModuleNotFoundError: it is not installed.
    """

    def __init__(self, seed: int, price: float, *, options: str) -> None:
        super().__init__(price)
        from vowpalwabbit import pyvw

        self.vw = pyvw
        self.rng = np.random.default_rng(seed)
        self.options = f"--cb_explore_adf -q ca {options} --quiet --random_seed {seed + 1}"
        self.drawn: dict[int, float] = {}

    def start(self, K: int, d: int) -> None:
        self.workspace = self.vw.Workspace(self.options)

    def choose(self, i: int, x: Array) -> int:
        chances: Any = np.array(self.workspace.predict(self._lines(x)))
        k = int(self.rng.choice(len(chances), p=chances / chances.sum()))
        self.drawn[i] = float(chances[k])
        return k

    def observe(self, i: int, k: int, x: Array, value: float) -> None:
        self.workspace.learn(self._lines(x, (k, -value, max(self.drawn.pop(i), 1e-6))))

    def _lines(self, x: Array, told: tuple[int, float, float] | None = None) -> list[str]:
        """Return an example: the context, then a line for each model, `told` at the one called."""
        features = " ".join(f"{j}:{value:.6g}" for j, value in enumerate(x))
        lines = [f"shared |c {features}"]
        for k in range(len(self.models)):
            label = "" if told is None or told[0] != k else f"0:{told[1]:.6g}:{told[2]:.6g} "
            lines.append(f"{label}|a m{k}")
        return lines


def has_vowpal_wabbit() -> bool:
    """Tell whether Vowpal Wabbit is installed."""
    try:
        import vowpalwabbit  # noqa: F401
    except ModuleNotFoundError:
        return False
    return True
