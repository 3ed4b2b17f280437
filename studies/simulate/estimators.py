"""Estimate what another policy would have earned, from rewards of the models that were called.

A policy chooses π(x) where history chose a with probability p. Three estimates of its mean
outcome are made:

- direct: the mean of q(x, π(x)),
- inverse propensity: the mean of w·r with w = 1{π(x) = a}/p,
- doubly robust: the mean of q(x, π(x)) + w·(r − q(x, a)) (Dudík et al. 2011, arXiv:1103.4601).

q is a ridge regression per model, fitted on earlier requests only. So the doubly robust terms are a
martingale around the truth, and their spread gives an honest interval.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from router_state.config import Matrix, Vector
from studies.simulate.limits import ENOUGH, OUT_OF_BALANCE, ROUNDING, SUPPORTED, Z95

RIDGE = 1.0
"""Ridge of the regression of rewards, equal to one observation of zero."""


class Ridge:
    """Ridge regression of an outcome on the context."""

    def __init__(self, d: int) -> None:
        self._A = np.eye(d) * RIDGE
        self._b = np.zeros(d)
        self._theta: Vector | None = None

    def observe(self, X: Matrix, values: Vector) -> None:
        """Take outcomes in, shape (n,), of contexts, shape (n, d)."""
        self._A += X.T.dot(X)
        self._b += values.dot(X)
        self._theta = None

    @property
    def theta(self) -> Vector:
        """Return the coefficients, shape (d,)."""
        if self._theta is None:
            # Solved on demand, once a block, as many outcomes come between two predictions.
            self._theta = np.asarray(np.linalg.solve(self._A, self._b), dtype=np.float64)
        return self._theta


class Expectations(NamedTuple):
    """The outcomes that are expected of every model for n contexts, shape (n, K + 1); the last
    column is for models that are not known.
    """

    column: Mapping[str | None, int]
    table: Matrix

    def of(self, models: Sequence[str | None]) -> Vector:
        """Return the expected outcomes of these models, one per context, shape (n,)."""
        found: Vector = self.table[
            # −1 is the last column, for unknown models.
            np.arange(len(models)), [self.column.get(model, -1) for model in models]
        ]
        return found


class DirectModel:
    """A ridge regression of outcomes per model; an unknown model gets the mean over all."""

    def __init__(self) -> None:
        self._models: dict[str, Ridge] = {}
        self._total = 0.0
        self._count = 0

    def observe(self, models: Sequence[str], X: Matrix, values: Vector) -> None:
        """Learn n outcomes, shape (n,), of these models for contexts, shape (n, d); NaN: nothing is
        known of it.
        """
        rows: dict[str, list[int]] = {}
        for at in np.flatnonzero(np.isfinite(values)).tolist():
            rows.setdefault(models[at], []).append(at)
        for model, of_model in rows.items():
            ridge = self._models.get(model)
            if ridge is None:
                ridge = self._models[model] = Ridge(X.shape[1])
            ridge.observe(X[of_model], values[of_model])
            self._total += values[of_model].sum().item()
            self._count += len(of_model)

    def predict(self, model: str, x: Vector) -> float:
        """Return the expected outcome for a context, shape (d,)."""
        ridge = self._models.get(model)
        return self._mean if ridge is None else ridge.theta.dot(x).item()

    def predict_all(self, X: Matrix) -> Expectations:
        """Return the expected outcomes of every model for contexts, shape (n, d)."""
        table = np.full((len(X), len(self._models) + 1), self._mean)
        for k, ridge in enumerate(self._models.values()):
            table[:, k] = X.dot(ridge.theta)
        return Expectations({model: k for k, model in enumerate(self._models)}, table)

    @property
    def _mean(self) -> float:
        return self._total / self._count if self._count else 0.0


@dataclass(slots=True)
class Moments:
    """Count, sum and sum of squares of a stream of numbers."""

    n: int = 0
    total: float = 0.0
    squares: float = 0.0

    def add(self, values: Vector) -> None:
        """Take numbers in, shape (n,)."""
        self.n += len(values)
        self.total += values.sum().item()
        self.squares += values.dot(values).item()

    @property
    def mean(self) -> float:
        return self.total / self.n if self.n else math.nan

    @property
    def half_width(self) -> float:
        """Half of the 95 % interval of the mean."""
        if self.n < 2:
            return math.nan
        # The difference of two near numbers may round to less than 0.
        variance = max(0.0, self.squares / self.n - self.mean**2) * self.n / (self.n - 1)
        return Z95 * math.sqrt(variance / self.n)


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean outcome and half of its 95 % interval; the direct estimate has none that covers its
    bias.
    """

    value: float
    half_width: float | None = None

    def __str__(self) -> str:
        return (
            f"{self.value:.4g}"
            if self.half_width is None
            else f"{self.value:.4g} ± {self.half_width:.2g}"
        )


@dataclass(slots=True)
class OffPolicy:
    """Estimates of one policy's mean outcome.

    Attributes:
        weight: Σw and Σw²; agreed: how often history chose as the policy does.
        possible: how often history could have chosen so.
    """

    direct: Moments = field(default_factory=Moments)
    ips: Moments = field(default_factory=Moments)
    robust: Moments = field(default_factory=Moments)
    weight: Moments = field(default_factory=Moments)
    agreed: int = 0
    possible: int = 0

    def observe(
        self,
        agrees: Vector,
        propensities: Vector,
        outcomes: Vector,
        q_policy: Vector,
        q_logged: Vector,
        *,
        chance: npt.NDArray[np.bool_],
    ) -> None:
        """Take n cases in, every argument of shape (n,).

        Args:
            agrees: 1.0 where the policy's model is history's, else 0.0.
            propensities: of history's models.
            outcomes: of history's models.
            q_policy, q_logged: what was expected of the policy's models and of history's.
            chance: whether history could have called the policy's models. One that it had ruled
                out has no weight, however random its choice was among the others.
        """
        # Where history could not have chosen so the weight is 0; `support` and `balanced` reveal
        # this.
        weights = np.divide(
            agrees, propensities, out=np.zeros_like(agrees), where=propensities > 0.0
        )
        self.agreed += int(agrees.sum())
        self.possible += int(np.count_nonzero(chance))
        self.direct.add(q_policy)
        self.ips.add(weights * outcomes)
        self.robust.add(q_policy + weights * (outcomes - q_logged))
        self.weight.add(weights)

    @property
    def effective(self) -> float:
        """Return the effective sample size (Σw)²/Σw²."""
        return self.weight.total**2 / self.weight.squares if self.weight.squares else 0.0

    @property
    def support(self) -> float:
        """Return the share of cases in which history gave the policy's choice a chance."""
        return self.possible / self.weight.n if self.weight.n else 0.0

    @property
    def balanced(self) -> bool:
        """Tell whether the weights average 1, as they do if history gave every choice of the policy
        its logged chance.
        """
        # E[w] = 1 if the logged propensities are true: a test of the log that needs no outcome.
        return abs(self.weight.mean - 1.0) <= OUT_OF_BALANCE * max(self.weight.half_width, ROUNDING)

    @property
    def supported(self) -> bool:
        """Tell whether the weighted estimates mean anything."""
        return self.support >= SUPPORTED and self.effective >= ENOUGH and self.balanced

    def estimates(self) -> dict[str, Estimate]:
        """Return the estimates by name; the weighted ones only where history supports them."""
        found = {"direct": Estimate(self.direct.mean)}
        if self.supported:
            found["inverse propensity"] = Estimate(self.ips.mean, self.ips.half_width)
            found["doubly robust"] = Estimate(self.robust.mean, self.robust.half_width)
        return found

    def verdict(self) -> str:
        """Return a sentence on how far the estimates can be trusted."""
        if self.supported:
            return f"supported: effective sample size {self.effective:,.0f} of {self.weight.n:,}"
        if self.support < SUPPORTED:
            return (
                f"not supported: for {1 - self.support:.0%} of the requests history gave this "
                "policy's choice no chance "
                "(its routing was deterministic there, or had ruled that model out: see `excluded` "
                "in `explain`); only the direct model speaks, and its bias is unknown. "
                "Declare an epsilon, and a budget that has a place for the model, so that the next "
                "history can answer"
            )
        if self.effective < ENOUGH:
            return f"not supported: the effective sample size is {self.effective:,.0f}"
        return (
            f"not supported: the weights average {self.weight.mean:.2f} instead of 1, so history "
            "gave part of this policy's "
            "choices another chance than it says, or none"
        )
