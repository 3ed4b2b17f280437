"""Estimate the outcome of any model on any context from the outcomes of the models that were
called.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from router_state.config import Matrix, Vector
from studies.simulate.chosen_by import chosen_by_products
from studies.simulate.shared_lines import STUDENT, Lines, Sums

MISFIT = 0.5
"""Deviation by which a line may be wrong for other contexts, as a share. The share applies to the
line's correction for these contexts, and to the deviation that the line leaves times
`Lines.apart`. This assumes that choices depend on unobserved features as much as on observed ones
(Altonji, Elder and Taber 2005, JPE 113). `python -m benchmarks.off_policy` chose it on drawn
worlds. Without either part, intervals contain the truth of curved outcomes 84 times in 100. With
the first part alone they contain that of bills by products of features 83 to 88 times, with both
95 to 98 times.
"""

Guesses = Mapping[str | None, tuple[float, Vector]]
"""Number and sum (d,) of the contexts that an outcome is guessed for, by its model. The difference
of two guesses is one as well."""


class Expectations(NamedTuple):
    """The expected outcomes of every model for n contexts, shape (n, K + 1); the last column is
    for unknown models.
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
    """One line a model, see `Lines`, with a free constant: where contexts tell nothing, a model's
    mean is expected.

    Args:
        noise: first guess of the variance of an outcome around its expectation.
        relative: whether models are compared in units of their mean outcome, as for bills: the same
            prompt makes all models write more.
    """

    def __init__(self, *, noise: float, relative: bool = False) -> None:
        self._noise, self._relative = noise, relative
        self._sums: dict[str, Sums] = {}
        self._fitted: tuple[Lines, dict[str, tuple[Vector, float]]] | None = None
        self._scales: tuple[float, float] | None = None
        self._by_products: bool | None = None

    def observe(self, models: Sequence[str], X: Matrix, values: Vector) -> None:
        """Learn n outcomes, shape (n,), of these models for contexts, shape (n, d); NaN: the
        outcome is unknown.
        """
        rows: dict[str, list[int]] = {}
        for at in np.flatnonzero(np.isfinite(values)).tolist():
            rows.setdefault(models[at], []).append(at)
        for model, of_model in rows.items():
            if model not in self._sums:
                self._sums[model] = Sums(X.shape[1])
            self._sums[model].add(X[of_model], values[of_model])
            self._fitted = self._by_products = None

    def predict(self, model: str, x: Vector) -> float:
        """Return the expected outcome for a context, shape (d,). For a model that was never seen,
        it is the mean over all outcomes.
        """
        if model not in self._sums:
            return self._mean
        slope, constant = self._fit()[1][model]
        seen = self._sums[model]
        return min(max(float(slope.dot(x)) + constant, seen.low), seen.high)

    def predict_all(self, X: Matrix) -> Expectations:
        """Return the expected outcomes of every model for contexts, shape (n, d). For a model that
        was never seen, it is 0: a mean over dear models is many times the cost of a cheap one.
        """
        table = np.zeros((len(X), len(self._sums) + 1))
        for k, (model, seen) in enumerate(self._sums.items()):
            slope, constant = self._fit()[1][model]
            # Far from the observed contexts a line may have any value.
            table[:, k] = np.clip(X.dot(slope) + constant, seen.low, seen.high)
        return Expectations({model: k for k, model in enumerate(self._sums)}, table)

    def guess(self, guesses: Guesses) -> tuple[float, float]:
        """Return the sum of the estimated outcomes, and the variance of its error: noise, doubt
        about the lines, and departures from lines. The variance is infinite if a model was never
        called, or if history chose by products of features.
        """
        unseen = [count for model, (count, _) in guesses.items() if model not in self._sums]
        if unseen:
            total = self._mean * sum(unseen)
            rest: Guesses = {model: one for model, one in guesses.items() if model in self._sums}
            return total + self.guess(rest)[0], math.inf
        if not guesses:
            return 0.0, 0.0
        lines, names = self._fit()[0], list(self._sums)
        k = np.array([names.index(model or "") for model in guesses])
        count = np.array([count for count, _ in guesses.values()], dtype=np.float64)
        units = lines.units[k]
        away = np.array([x for _, x in guesses.values()]) - count[:, None] * lines.means[k]
        corrections = units * (away * lines.B[k]).sum(axis=1)
        noise = lines.noise[k] * (1.0 + STUDENT / lines.degrees[k]) ** 2
        doubt = np.einsum("ki,kij,kj->k", away, lines.own[k], away)
        doubt += noise * (count**2 / lines.n[k] + abs(count))
        moved = np.einsum("k,kij,kj->i", units, lines.drawn[k], away)
        variance = (units**2 * doubt).sum() + moved @ lines.shared @ moved
        untold = units * np.sqrt(noise) * lines.apart(k, away)
        variance += MISFIT**2 * (abs(corrections).sum() ** 2 + untold.sum() ** 2)
        guessed = (units * count * lines.levels[k] + corrections).sum().item()
        return guessed, math.inf if self.by_products else variance.item()

    @property
    def units(self) -> dict[str, float]:
        """The units in which models are compared: their mean outcomes for bills, else 1."""
        return {
            model: one.y / one.n if self._relative else 1.0 for model, one in self._sums.items()
        }

    @property
    def by_products(self) -> bool:
        """Tell whether history chose by products of features, which no line follows."""
        if self._by_products is None:
            self._by_products = chosen_by_products(list(self._sums.values()))
        return self._by_products

    @property
    def _mean(self) -> float:
        count = sum(one.n for one in self._sums.values())
        return sum(one.y for one in self._sums.values()) / count if count else 0.0

    def _fit(self) -> tuple[Lines, dict[str, tuple[Vector, float]]]:
        """Return the lines, and slope and constant of each in the outcomes' own unit."""
        # Fitted on demand: many outcomes come between two predictions.
        if self._fitted is None:
            lines = Lines(
                list(self._sums.values()),
                first_noise=self._noise,
                relative=self._relative,
                scales=self._scales,
            )
            slopes = lines.units[:, None] * lines.B
            constants = lines.units * lines.levels - (slopes * lines.means).sum(axis=1)
            told = zip(self._sums, slopes, constants.tolist(), strict=True)
            self._fitted = lines, {model: (slope, at) for model, slope, at in told}
            self._scales = lines.scales
        return self._fitted
