"""Fit one line a model to outcomes, with coefficients that models share as far as outcomes support
it.

An outcome of model a is c_a + xᵀ(θ_0 + δ_a) plus noise of variance σ_a². The constants c_a are
free: where features tell nothing, a model's mean is expected. Coefficients are drawn towards shared
ones and these towards 0, δ_a ~ N(0, τ·I) and θ_0 ~ N(0, τ_0·I) (Lindley and Smith 1972). The scales
are those at which the evidence of all models is largest, by its fixed point (MacKay 1992).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from router_state.config import Matrix, Vector

HELD = 1.0
"""Outcomes, and coefficients, that a first guess counts for."""
HELD_NOISE = 5.0
"""Outcomes that the noise, and the spread of contexts, of all models count for in those of one:
few equal ones prove little."""
FEATURES = 12.0
"""First guess of σ² ÷ variance that all features of a model together explain."""
ROUNDS, SETTLED = 20, 0.02
"""Most rounds of the fixed point, and the relative change of the scales at which it ends."""
LEAST_NOISE = 1e-12
"""Least σ_a² ÷ first guess: where outcomes are exact, weights must stay finite."""
NEVER_VARIES = 1e-9
"""Variance ÷ the largest one below which a direction of contexts counts as none."""
STUDENT = 1.21
"""Student's 97.5 % quantile is 1.96·(1 + 1.21/ν) at ν degrees of freedom (Cornish and Fisher)."""

Stack = npt.NDArray[np.float64]


class Sums:
    """The sums of one model's contexts x, shape (d,), and outcomes y, and the outcomes' range."""

    def __init__(self, d: int) -> None:
        self.n, self.y, self.yy = 0, 0.0, 0.0
        self.low, self.high = math.inf, -math.inf
        self.x, self.xy, self.xx = np.zeros(d), np.zeros(d), np.zeros((d, d))

    def add(self, X: Matrix, values: Vector) -> None:
        """Add outcomes, shape (n,), of contexts, shape (n, d)."""
        self.n += len(values)
        self.x += X.sum(axis=0)
        self.xx += X.T @ X
        self.xy += values @ X
        self.y += values.sum().item()
        self.yy += (values @ values).item()
        self.low = min(self.low, values.min().item())
        self.high = max(self.high, values.max().item())


class Lines:
    """The lines of K models, with the symbols of the module: c_a, θ_0, δ_a, σ_a², τ and τ_0.

    Args:
        sums: sums of each model; each has at least one outcome.
        first_noise: first guess of σ_a², for outcomes ÷ their unit.
        relative: whether the unit of a model's outcomes is their mean; otherwise the unit is 1.
        scales: (τ, τ_0) at which the fit begins.

    Attributes:
        units, n, levels: unit of each model's outcomes, their number, and their mean ÷ unit, (K,).
        means, B: mean contexts and coefficients, (K, d).
        noise: σ_a², (K,); degrees: degrees of freedom of these estimates of σ_a², (K,).
        spread: covariances of each model's contexts, (K, d, d). Those of a model with few calls
            are drawn a little towards the covariance of all contexts.
        own: covariances of the coefficients if θ_0 were known; drawn: derivative of the
            coefficients by θ_0; both (K, d, d).
        shared: covariance of θ_0, (d, d).
        scales: (τ, τ_0).
    """

    def __init__(
        self,
        sums: Sequence[Sums],
        *,
        first_noise: float,
        relative: bool,
        scales: tuple[float, float] | None,
    ) -> None:
        self._first_noise = first_noise
        self.n = np.array([one.n for one in sums], dtype=np.float64)
        levels = np.array([one.y for one in sums]) / self.n
        self.units = np.where(relative & (levels > 0.0), levels, 1.0)
        self.levels = levels / self.units
        self.means = np.array([one.x for one in sums]) / self.n[:, None]
        # Sums around the means: the free constants are then out of the way.
        xx, xy, yy = (np.array([getattr(one, name) for one in sums]) for name in ("xx", "xy", "yy"))
        weighted = self.n[:, None] * self.means
        self._S = xx - weighted[:, :, None] * self.means[:, None]
        between = self.means - weighted.sum(axis=0) / self.n.sum()
        of_all = (self._S.sum(axis=0) + (self.n[:, None] * between).T @ between) / self.n.sum()
        held = self.n[:, None, None] + HELD_NOISE
        self.spread = (self._S + HELD_NOISE * of_all) / held
        self._t = xy / self.units[:, None] - weighted * self.levels[:, None]
        self._rest = yy / self.units**2 - self.n * self.levels**2
        self._measure_noise(self._rest, self.n - 1.0)
        self.scales = scales or (self._first, self._first)
        self._settle()

    def apart(self, k: npt.NDArray[np.int_], away: Matrix) -> Vector:
        """Return the size of differences of contexts, in deviations of a model's contexts: the root
        of Mahalanobis' squared distance ÷ number of features.

        Args:
            k: numbers of the models, shape (n,).
            away: differences, one for each of these models, shape (n, d).
        """
        spread = self.spread[k]
        # A feature that never varies, as the constant, has no inverse and is none.
        inverse = np.linalg.pinv(spread, rcond=NEVER_VARIES, hermitian=True)
        features = np.maximum((inverse * spread).sum(axis=(1, 2)), 1.0)
        squares = np.einsum("ki,kij,kj->k", away, inverse, away)
        apart: Vector = np.sqrt(np.maximum(squares, 0.0) / features)
        return apart

    def _settle(self) -> None:
        for _ in range(ROUNDS):
            before = np.array(self.scales)
            self._solve()
            self._rescale()
            left = self._rest - 2.0 * (self._t * self.B).sum(axis=1)
            left += np.einsum("ki,kij,kj->k", self.B, self._S, self.B)
            fitted = (self._S * self.own).sum(axis=(1, 2)) / self.noise
            self._measure_noise(left, self.n - 1.0 - fitted)
            if (abs(np.array(self.scales) / before - 1.0) < SETTLED).all():
                break

    def _measure_noise(self, left: Vector, degrees: Vector) -> None:
        """Take each model's own noise, drawn a little towards that of all."""
        left, degrees = np.maximum(left, 0.0), np.maximum(degrees, 0.0)
        pooled = (left.sum() + HELD * self._first_noise) / (degrees.sum() + HELD)
        self.degrees = degrees + HELD_NOISE
        least = LEAST_NOISE * self._first_noise
        self.noise = np.maximum((left + HELD_NOISE * pooled) / self.degrees, least)
        d = self.means.shape[1]
        square = self._S.trace(axis1=1, axis2=2).sum() / (self.n.sum() * d)
        self._first = (pooled / (FEATURES * d * (square or 1.0))).item()

    def _solve(self) -> None:
        """Compute the coefficients at these scales."""
        tau, tau_0 = self.scales
        eye = np.eye(self.means.shape[1])
        P, said = self._S / self.noise[:, None, None], self._t / self.noise[:, None]
        self.own = np.linalg.inv(P + eye / tau)
        self.drawn = self.own / tau
        self.shared = np.linalg.inv((P @ self.drawn).sum(axis=0) + eye / tau_0)
        self._theta_0 = self.shared @ np.einsum("kij,kj->i", self.drawn, said)
        self.B = np.einsum("kij,kj->ki", self.own, said + self._theta_0 / tau)

    def _rescale(self) -> None:
        """Move the scales: squares of the coefficients ÷ how many of them outcomes determine."""
        (tau, tau_0), (K, d) = self.scales, self.means.shape
        kept = np.eye(d) - self.drawn
        doubt = self.own.trace(axis1=1, axis2=2).sum() + ((kept @ self.shared) * kept).sum()
        self.scales = (
            self._scale(self.B - self._theta_0, K * d - doubt.item() / tau),
            self._scale(self._theta_0, d - self.shared.trace().item() / tau_0),
        )

    def _scale(self, coefficients: Vector | Matrix, known: float) -> float:
        size = (coefficients**2).sum().item()
        return float((size + HELD * self._first) / (max(known, 0.0) + HELD))
