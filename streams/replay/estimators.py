"""What another policy would have earned, from rewards of the models that were called.

Three estimates of the mean outcome of a policy that chooses π(x) where history chose a with probability p:
direct, the mean of q(x, π(x)); inverse propensity, the mean of w·r with w = 1{π(x) = a}/p; doubly robust, the mean of
q(x, π(x)) + w·(r − q(x, a)) (Dudík et al. 2011, arXiv:1103.4601). q is a ridge regression per model, fitted on earlier requests
only, so that the doubly robust terms are a martingale around the truth and their spread gives an honest interval.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from router_state.config import Vector

RIDGE = 1.0
BLOCK = 64
Z95 = 1.959964
SUPPORTED = 0.99


class Ridge:
    """Ridge regression of an outcome on the context; observations enter in blocks, small ones at first."""

    def __init__(self, d: int) -> None:
        self.A = np.eye(d) * RIDGE
        self.b = np.zeros(d)
        self.theta: Vector = np.zeros(d)
        self.n = 0
        self._contexts: list[Vector] = []
        self._values: list[float] = []

    def observe(self, x: Vector, value: float) -> None:
        """Take one outcome in; it counts at the latest after `BLOCK` others."""
        self._contexts.append(x)
        self._values.append(value)
        if len(self._values) > min(BLOCK, self.n // 8):
            self.settle()

    def settle(self) -> None:
        """Let everything that was observed count."""
        if self._values:
            X, values = np.array(self._contexts), np.array(self._values)
            self.A += X.T.dot(X)
            self.b += values.dot(X)
            theta: Vector = np.asarray(np.linalg.solve(self.A, self.b), dtype=np.float64)
            self.theta = theta
            self.n += len(values)
            self._contexts, self._values = [], []


class DirectModel:
    """An outcome by context, a ridge regression per model."""

    def __init__(self) -> None:
        self._models: dict[str, Ridge] = {}
        self._total = 0.0
        self._count = 0

    def settle(self) -> None:
        """Let everything that was observed count."""
        for ridge in self._models.values():
            ridge.settle()

    def observe(self, model: str, x: Vector, value: float) -> None:
        """Learn one outcome of a model."""
        ridge = self._models.get(model)
        if ridge is None:
            ridge = self._models[model] = Ridge(len(x))
        ridge.observe(x, value)
        self._total += value
        self._count += 1

    def predict(self, model: str, x: Vector) -> float:
        """Return the expected outcome; a model of which nothing is known gets the mean over all."""
        ridge = self._models.get(model)
        if ridge is None:
            return self._total / self._count if self._count else 0.0
        return ridge.theta.dot(x).item()  # type: ignore[no-any-return]


@dataclass(slots=True)
class Moments:
    """Count, sum and sum of squares of a stream of numbers."""

    n: int = 0
    total: float = 0.0
    squares: float = 0.0

    def add(self, value: float) -> None:
        self.n += 1
        self.total += value
        self.squares += value * value

    @property
    def mean(self) -> float:
        return self.total / self.n if self.n else math.nan

    @property
    def half_width(self) -> float:
        """Half of the 95 % interval of the mean."""
        if self.n < 2:
            return math.nan
        variance = max(0.0, self.squares / self.n - self.mean**2) * self.n / (self.n - 1)
        return Z95 * math.sqrt(variance / self.n)


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean outcome and half of its 95 % interval; the direct estimate has none that covers its bias."""

    value: float
    half_width: float | None = None

    def __str__(self) -> str:
        return f"{self.value:.4g}" if self.half_width is None else f"{self.value:.4g} ± {self.half_width:.2g}"


@dataclass(slots=True)
class OffPolicy:
    """Estimates of one policy's mean outcome, case by case.

    Attributes:
        weight: Σw and Σw²; agreed: how often history chose as the policy does.
        possible: how often history could have: it did, or it chose at random (propensity below 1).
    """

    direct: Moments = field(default_factory=Moments)
    ips: Moments = field(default_factory=Moments)
    robust: Moments = field(default_factory=Moments)
    weight: Moments = field(default_factory=Moments)
    agreed: int = 0
    possible: int = 0

    def observe(self, *, model: str, logged: str, propensity: float, outcome: float, q_policy: float, q_logged: float) -> None:
        """Take one case in: the policy's model, history's with its propensity and outcome, and what was expected of both."""
        agrees = model == logged
        weight = 1.0 / propensity if agrees and propensity > 0.0 else 0.0
        self.agreed += agrees
        self.possible += agrees or propensity < 1.0
        self.direct.add(q_policy)
        self.ips.add(weight * outcome)
        self.robust.add(q_policy + weight * (outcome - q_logged))
        self.weight.add(weight)

    @property
    def effective(self) -> float:
        """Return the effective sample size (Σw)²/Σw²."""
        return self.weight.total**2 / self.weight.squares if self.weight.squares else 0.0

    @property
    def support(self) -> float:
        """Return the share of cases in which history gave the policy's choice a chance."""
        return self.possible / self.weight.n if self.weight.n else 0.0

    @property
    def supported(self) -> bool:
        """Tell whether the weighted estimates mean anything."""
        return self.support >= SUPPORTED and self.effective >= 50

    def estimates(self) -> dict[str, Estimate]:
        """Return the estimates by name; the weighted ones only where history supports them."""
        found = {"direct": Estimate(self.direct.mean)}
        if self.supported:
            found["inverse propensity"] = Estimate(self.ips.mean, self.ips.half_width)
            found["doubly robust"] = Estimate(self.robust.mean, self.robust.half_width)
        return found

    def verdict(self) -> str:
        """Return in a sentence how far the estimates can be trusted."""
        if self.supported:
            return f"supported: effective sample size {self.effective:,.0f} of {self.weight.n:,}"
        if self.support < SUPPORTED:
            return (
                f"not supported: for {1 - self.support:.0%} of the requests history gave this policy's choice no chance "
                "(its routing was deterministic there); only the direct model speaks, and its bias is unknown. "
                "Declare an epsilon, so that the next history can answer"
            )
        return f"not supported: the effective sample size is {self.effective:,.0f}"
