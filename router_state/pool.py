"""What the arms of a router have in common, and how large their differences are.

Every arm's coefficients scatter around shared ones: θ_a = θ_0 + δ_a, δ_a ~ N(0, σ²R⁻¹), θ_0 ~ N(m,
σ²R_0⁻¹), R and R_0 diagonal, with one entry for all features and one for the bias. Given θ_0 the
arms are independent, so nothing of size (Kd)² is needed: each arm keeps the inverse of A_a + R, and
θ_0 follows from sums of d × d matrices (Lindley and Smith 1972). Ridges and noise are estimated
from the data: the ridges by the fixed point of the evidence (MacKay 1992), the noise by the errors
of predictions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypedDict

import numpy as np

from router_state.arrays import floats, packed
from router_state.config import Matrix, Vector
from router_state.journal import Journal

GROWTH = 0.16
"""Share by which the evidence grows between two estimates (0.08 is no better: eleven models and the
paper's benchmark without priors, benchmarks.elsewhere); their cost thus falls as 1/n."""
WIDE_FROM = 32
"""Dimensions from which on they are rarer, as each costs O(K·d³)."""
MOST_GROWTH = 3.0
"""Of that share."""
MEMORY = 2000.0
"""Observations after which the evidence is taken not to grow any more: what γ = 0.9995 keeps."""
LATE = 16
"""Observations, beside as many as there were when it was due, that an estimate waits at most for a
decision that needs it."""
HELD, HELD_BIAS = 3.0, 2.0
"""Coefficients, and biases, that the first guess of a ridge counts for."""
NOISE_HELD, NOISE_MEMORY = 5.0, 1000.0
"""Observations that the first guess of the noise counts for, and over how many it is taken at
most."""
MOST_VARIANCE = 4.6
"""Of a logarithm, for the deviation of what it is the logarithm of: ten times its mean."""
LEAST_NOISE = 1e-6
"""Of the variance σ²: where every observation is predicted exactly, scores must stay finite."""
LEAST_EVIDENCE = 1e-9
"""Observations, and of a feature's mean square, below which nothing is known of the contexts."""
FEATURES_WITHIN, BIAS_WITHIN = (1e-2, 1e5), (2e-2, 1e4)
"""Bounds of the ridges, in observations; those of features per (d − 1) mean squares of a
feature."""


class Regression(Protocol):
    """One arm's part: its evidence and what is concluded from it."""

    def held(self) -> tuple[Matrix, Vector, float]:
        """Return (A + R)⁻¹ and the coefficients, both of undecayed statistics, and what is left of
        them."""
        ...

    def conclude(self, inverse: Matrix, theta: Vector) -> None:
        """Take over (A + R)⁻¹ and the coefficients."""
        ...


@dataclass(frozen=True, slots=True)
class Guess:
    """What is assumed before the first observation, `HELD` coefficients strong.

    Attributes:
        mean, deviation: of the shared bias.
        noise: variance of an observation around its expectation.
        features: σ² ÷ variance that all features of an arm together explain.
        bias: σ² ÷ variance of the arms' biases around the shared one.
        absolute: whether the two are about variances as such, and not about what they are to the
            noise that is found.
    """

    mean: float
    deviation: float
    noise: float
    features: float
    bias: float
    absolute: bool = False


REWARDS = Guess(mean=0.6, deviation=0.5, noise=0.09, features=12.0, bias=3.0)
"""Rewards between 0 and 1: a third of them is noise, models differ by half of that."""
COSTS = Guess(mean=0.0, deviation=1.5, noise=0.3, features=4.0, bias=0.3, absolute=True)
"""Logarithms of bills: a factor of 4 is not known beforehand, prompts differ by as much, and models
by a factor of e: some think before they answer. What two terse models cost says little of a
third."""


class Assumed(TypedDict):
    """Diagonals of R and R_0, and m, shape (d,)."""

    ridges: Vector
    shared_ridges: Vector
    mean: Vector


class Fitted(NamedTuple):
    """Posterior of all arms at given ridges, in units of σ.

    `inverse` (A_a + R)⁻¹, shape (K, d, d); `pull` the same times R; `information` the inverse of
    the covariance of θ_0, `mean` its mean; `theta` (K, d).
    """

    inverse: Matrix
    pull: Matrix
    information: Matrix
    mean: Vector
    theta: Matrix


def fit(A: Matrix, b: Matrix, *, ridges: Vector, shared_ridges: Vector, mean: Vector) -> Fitted:
    """Return the posterior of K regressions around shared coefficients, in O(K·d³).

    Args:
        A, b: shape (K, d, d) and (K, d).
        ridges, shared_ridges, mean: diagonals of R and R_0, and m, shape (d,).
    """
    inverse = _inverted(_plus(A, ridges))
    own = np.matmul(inverse, b[..., None])[..., 0]
    return _around_shared(inverse, own, ridges=ridges, shared_ridges=shared_ridges, mean=mean)


def _around_shared(
    inverse: Matrix, own: Matrix, *, ridges: Vector, shared_ridges: Vector, mean: Vector
) -> Fitted:
    """As `fit`, given (A_a + R)⁻¹ and the same times b_a, shape (K, d): what the arms would believe
    if all that is shared were 0."""
    pull = inverse * ridges
    # Of R − R(A + R)⁻¹R, what an arm says of θ_0, the sum over the arms.
    information = np.add.reduce(pull) * -ridges[:, None]
    _diagonals(information)[:] += len(inverse) * ridges + shared_ridges
    said = shared_ridges * mean + ridges * np.add.reduce(own)
    center: Vector = np.linalg.solve(information, said)
    return Fitted(inverse, pull, information, center, own + pull.dot(center))


def evidence(
    regressions: Sequence[Regression], *, ridges: Vector, mean: Vector
) -> tuple[Matrix, Matrix]:
    """Return Σ xxᵀ and Σ y·x of each arm, decayed, shape (K, d, d) and (K, d), given the prior that
    their inverses and coefficients contain."""
    return _sums(*_held(regressions), ridges=ridges, mean=mean)


def _held(regressions: Sequence[Regression]) -> tuple[Matrix, Matrix, Vector]:
    """Return what the arms hold, stacked: shape (K, d, d), (K, d) and (K,)."""
    inverses, thetas, left = zip(*(regression.held() for regression in regressions), strict=True)
    return np.array(inverses), np.array(thetas), np.array(left)


def _sums(
    inverse: Matrix, theta: Matrix, left: Vector, *, ridges: Vector, mean: Vector
) -> tuple[Matrix, Matrix]:
    A: Matrix = np.asarray(np.linalg.inv(inverse), dtype=np.float64)
    # What an arm holds solves (A + R)θ = b + R·mean: its own sums follow from it.
    b = np.matmul(A, theta[..., None])[..., 0] - ridges * mean
    _diagonals(A)[:] -= ridges
    A *= left[:, None, None]
    b *= left[:, None]
    return A, b


class Pool:
    """The shared part of K regressions, and the scales of both parts.

    Attributes:
        name: of its piece; d: dimensions.
        mean: θ_0, shape (d,); center: mean context of the evidence.
        ridge, bias_ridge, shared_ridge: of the features and the bias of δ_a, and of the features of
            θ_0, in observations.
        noise: σ²; fourth: mean fourth power of what is left of an observation; noise_count:
            observations behind the two.
        seen: observations so far; due_at: at how many of them the next estimate is made.
    """

    __slots__ = (
        "_guess",
        "_journal",
        "bias_ridge",
        "center",
        "d",
        "due_at",
        "fourth",
        "mean",
        "name",
        "noise",
        "noise_count",
        "ridge",
        "seen",
        "shared_ridge",
    )

    def __init__(self, name: str, d: int, guess: Guess, journal: Journal) -> None:
        self.name, self.d, self._guess, self._journal = name, d, guess, journal
        self.center = np.zeros(d)
        self.center[-1] = 1.0
        self.mean = np.zeros(d)
        self.mean[-1] = guess.mean
        self.ridge = self.shared_ridge = guess.features * (d - 1)
        self.bias_ridge = guess.bias
        self.noise, self.fourth, self.noise_count = guess.noise, 3.0 * guess.noise**2, NOISE_HELD
        self.seen, self.due_at = 0, max(1, d // WIDE_FROM)

    @property
    def ridges(self) -> Vector:
        """The diagonal of R, shape (d,)."""
        return _diagonal(self.d, self.ridge, self.bias_ridge)

    @property
    def deviation(self) -> float:
        """The deviation of the observations that make up the noise: above σ where most of them are
        far tighter than the rest.

        Of normal observations the fourth moment is 3σ⁴; of a mixture √(fourth ÷ 3σ²) is about that
        of its widest part.
        """
        return math.sqrt(max(self.noise, self.fourth / (3.0 * self.noise)))

    @property
    def relative_deviation(self) -> float:
        """The deviation of what observations are the logarithms of, as a share of its mean: that of
        a lognormal."""
        return math.sqrt(math.expm1(min(self.deviation**2, MOST_VARIANCE)))

    @property
    def due(self) -> bool:
        """Whether there is so much new evidence that scales and shared coefficients are to be
        estimated again, before the next decision."""
        return self.seen >= self.due_at

    @property
    def overdue(self) -> bool:
        """Whether they are to be estimated at once: noise and drift are measured against them even
        where nobody asks for a decision."""
        return self.seen > self.due_at and self.seen >= (
            self.due_at + min(self.due_at, MEMORY) + LATE
        )

    def resume(self, seen: int, deviations: Sequence[float]) -> None:
        """Go on from so many observations, of which only the arms' own deviations are known."""
        self.seen = seen
        if seen and deviations:
            self.noise = max(float(np.mean(np.square(deviations))), LEAST_NOISE)
            self.fourth, self.noise_count = (
                3.0 * self.noise**2,
                min(NOISE_HELD + seen, NOISE_MEMORY),
            )

    def observe(self, residual: float, variance: float) -> None:
        """Count an observation; its residual, of variance σ²(1 + `variance`), tells of the
        noise."""
        self.seen += 1
        self._journal.pieces.add(self.name)
        count, noise = self.noise_count + 1.0, self.noise
        self.noise_count = count = count if count < NOISE_MEMORY else NOISE_MEMORY
        square = residual * residual / (1.0 + variance)
        self.fourth += (square * square - self.fourth) / count
        noise += (square - noise) / count
        self.noise = noise if noise > LEAST_NOISE else LEAST_NOISE

    def estimate(self, regressions: Sequence[Regression], *, rescaled: bool = True) -> None:
        """Estimate shared coefficients, and the scales too, from the evidence of all arms, and let
        each conclude. O(K·d³)."""
        if not regressions:
            self._defer()
            return
        held = _held(regressions)
        A, b = _sums(*held, ridges=self.ridges, mean=self.mean)
        self._conclude(regressions, A, b, self._as_held(*held[:2]) if rescaled else None)

    def evidence(self, regressions: Sequence[Regression]) -> tuple[Matrix, Matrix]:
        """Return the evidence of arms whose prior is what is shared now."""
        return evidence(regressions, ridges=self.ridges, mean=self.mean)

    def conclude_from(
        self, regressions: Sequence[Regression], A: Matrix, b: Matrix, *, rescaled: bool = True
    ) -> None:
        """Estimate from this evidence of the arms, shape (K, d, d) and (K, d), and let each
        conclude from all."""
        self._conclude(regressions, A, b, self._fitted(A, b) if rescaled else None)

    def _conclude(
        self, regressions: Sequence[Regression], A: Matrix, b: Matrix, before: Fitted | None
    ) -> None:
        """Conclude from the evidence A, b; `before` is the posterior at the scales as they are, or
        None: they stay."""
        self._defer()
        square, self.center = _spread(A, self.center)
        if before is not None:
            self._rescale(before, square)
        fitted = self._fitted(A, b)
        self.mean = fitted.mean
        for k, regression in enumerate(regressions):
            regression.conclude(fitted.inverse[k], fitted.theta[k])

    def _defer(self) -> None:
        """Note after how many more observations the next estimate is made."""
        growth = min(GROWTH * max(1.0, (self.d / WIDE_FROM) ** 2), MOST_GROWTH)
        self.due_at = self.seen + max(self.d // WIDE_FROM, int(growth * min(self.seen, MEMORY)), 1)
        self._journal.pieces.add(self.name)

    def pack(self) -> bytes:
        """Return shared coefficients, center and scalars."""
        scalars = [
            self.ridge,
            self.bias_ridge,
            self.shared_ridge,
            self.noise,
            self.fourth,
            self.noise_count,
            self.seen,
            self.due_at,
        ]
        return packed(self.mean, self.center, scalars)

    def unpack(self, data: bytes) -> None:
        """Invert `pack`. Raises CorruptSnapshot."""
        size = 2 * self.d + 8
        mean, center, scalars = np.split(floats(data, least=size, most=size), (self.d, 2 * self.d))
        self.mean, self.center = mean.copy(), center.copy()
        (
            self.ridge,
            self.bias_ridge,
            self.shared_ridge,
            self.noise,
            self.fourth,
            self.noise_count,
            seen,
            due_at,
        ) = scalars.tolist()
        self.seen, self.due_at = int(seen), int(due_at)

    def _fitted(self, A: Matrix, b: Matrix) -> Fitted:
        return fit(A, b, **self._assumed())

    def _as_held(self, inverse: Matrix, theta: Matrix) -> Fitted:
        """As `_fitted`, from what the arms hold at the scales as they are, shape (K, d, d) and
        (K, d): without another inversion, and as if nothing was forgotten since the last estimate,
        which scales need not know."""
        own = theta - inverse.dot(self.ridges * self.mean)
        return _around_shared(inverse, own, **self._assumed())

    def _assumed(self) -> Assumed:
        mean = np.zeros(self.d)
        mean[-1] = self._guess.mean
        shared_ridges = _diagonal(self.d, self.shared_ridge, self.noise / self._guess.deviation**2)
        return Assumed(ridges=self.ridges, shared_ridges=shared_ridges, mean=mean)

    def _rescale(self, fitted: Fitted, square: float) -> None:
        """Take one step to the ridges at which the evidence is largest: what is determined by data
        ÷ Σ coefficients²."""
        guess, noise, unit = self._guess, self.noise, (self.d - 1) * square
        own = fitted.theta - fitted.mean
        # Of δ_a = θ_a − θ_0: its own variance, and what doubt about θ_0 adds, as θ_a follows θ_0 by
        # (A + R)⁻¹R of it only.
        away = fitted.pull.copy()
        _diagonals(away)[:] -= 1.0
        shared: Matrix = np.asarray(np.linalg.inv(fitted.information), dtype=np.float64)
        variance = _diagonals(fitted.inverse) + np.add.reduce(
            np.matmul(away, shared) * away, axis=2
        )
        # MacKay's γ: 1 for a coefficient that data determine, 0 for one of which only the prior
        # speaks.
        known = np.add.reduce(np.maximum(1.0 - self.ridges * variance, 0.0))
        squares = np.add.reduce(own * own) / noise
        low, high = FEATURES_WITHIN
        measured = noise / guess.noise if guess.absolute else 1.0
        first = guess.features * unit * measured
        ridge = (known[:-1].sum() + HELD) / (squares[:-1].sum() + HELD / first)
        # The first guesses count as so many coefficients of the size that they expect.
        bias = (known[-1] + HELD_BIAS) / (squares[-1] + HELD_BIAS / (guess.bias * measured))
        known_shared = np.maximum(1.0 - self.shared_ridge * _diagonals(shared)[:-1], 0.0).sum()
        center = fitted.mean[:-1]
        shared_ridge = (known_shared + HELD) / (center.dot(center) / noise + HELD / first)
        self.ridge = float(min(max(ridge, low * unit), high * unit))
        self.shared_ridge = float(min(max(shared_ridge, low * unit), high * unit))
        self.bias_ridge = float(min(max(bias, BIAS_WITHIN[0]), BIAS_WITHIN[1]))


def _diagonal(d: int, features: float, bias: float) -> Vector:
    diagonal = np.full(d, features)
    diagonal[-1] = bias
    return diagonal


def _diagonals(A: Matrix) -> Matrix:
    """Return a view of the diagonals of contiguous A, shape (…, d, d)."""
    d = A.shape[-1]
    view: Matrix = A.reshape(*A.shape[:-2], d * d)[..., :: d + 1]
    return view


def _plus(A: Matrix, diagonal: Vector) -> Matrix:
    """Return A, shape (…, d, d), with a diagonal added."""
    total = A.copy()
    _diagonals(total)[:] += diagonal
    return total


def _inverted(A: Matrix) -> Matrix:
    """Invert symmetric positive definite matrices, exactly symmetric."""
    inverse: Matrix = np.asarray(np.linalg.inv(A), dtype=np.float64)
    symmetric: Matrix = np.add(inverse, np.swapaxes(inverse, -1, -2))
    symmetric *= 0.5
    return symmetric


def _spread(A: Matrix, center: Vector) -> tuple[float, Vector]:
    """Return the mean square of a feature over all that was observed, and the mean context; 1 and
    `center` before anything was."""
    total = np.add.reduce(A)
    count = total.item(-1)
    features = np.add.reduce(_diagonals(total)[:-1]).item() / (len(total) - 1)
    if count < LEAST_EVIDENCE or features <= LEAST_EVIDENCE * count:
        return 1.0, center
    mean: Vector = total[-1] / count
    mean[-1] = 1.0
    return features / count, mean
