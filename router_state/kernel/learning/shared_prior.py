"""The shared prior of a router's models, with the scales of their differences.

Every model's coefficients scatter around shared ones, see `evidence`: R and R_0 have one entry for
all features and one for the bias. Ridges and noise are estimated from the data: the ridges by the
fixed point of the evidence (MacKay 1992), the noise by the errors of predictions.
"""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING

import numpy as np

from router_state.config import BELIEVED, GUESSED, MEMORY
from router_state.kernel.learning.gaussian import WIDE
from router_state.kernel.numbers.linear import dot
from router_state.kernel.numbers.words import Array, Flag, Floats, Index, Real, ccall, cclass, cfunc

if TYPE_CHECKING:
    from router_state.changes import Journal
    from router_state.config import Vector
    from router_state.learning.guess import Guess

PRIOR_HELD: Real = GUESSED
PRIOR_MEMORY: Real = MEMORY
PRIOR_BELIEVED: Real = BELIEVED
GROWTH = 0.16
"""Share by which the evidence grows between two estimates (0.08 is no better: eleven models and the
paper's benchmark without priors, benchmarks.elsewhere); their cost thus falls as 1/n."""
LEAST_NOISE = 1e-6
"""Least variance σ²: where every observation is predicted exactly, scores must stay finite."""
MOST_RIDGE = 1e5
"""Largest ridge, in observations, and inverse of the least; those of features per (d − 1) mean
squares of a feature. No data of a memory's length tell more."""


@cclass
class SharedPrior:
    """The shared part of K regressions, and the scales of both parts.

    Attributes:
        name: of its piece; d: dimensions; guess: what is assumed before the first observation.
        mean: θ_0, shape (d,); center: mean context of the evidence.
        ridge, bias_ridge, shared_ridge: of the features and the bias of δ_a, and of the features of
            θ_0, in observations.
        noise: σ²; fourth: mean fourth power of what is left of an observation; noise_count:
            observations behind the two.
        seen: observations so far; due_at: at how many of them the next estimate is made.
    """

    name: str
    d: Index
    guess: Guess
    pieces: set[str]
    mean: Array
    center: Array
    ridge: Real
    bias_ridge: Real
    shared_ridge: Real
    noise: Real
    fourth: Real
    noise_count: Real
    seen: Index
    due_at: Index

    def __init__(self, name: str, d: int, guess: Guess, journal: Journal) -> None:
        self.name, self.d, self.guess, self.pieces = name, d, guess, journal.pieces
        self.center, self.mean = np.zeros(d), np.zeros(d)
        self.center[d - 1], self.mean[d - 1] = 1.0, guess.mean
        self.ridge = self.shared_ridge = guess.features * (d - 1)
        self.bias_ridge = guess.bias
        self.noise, self.noise_count = guess.noise, PRIOR_HELD
        self.fourth = 3.0 * self.noise * self.noise
        self.seen, self.due_at = 0, max(1, d // WIDE)

    @property
    def ridges(self) -> Vector:
        """The diagonal of R, shape (d,)."""
        diagonal = np.full(self.d, self.ridge)
        diagonal[self.d - 1] = self.bias_ridge
        return diagonal

    @property
    def deviation(self) -> float:
        """The deviation of the observations that make up the noise: above σ where most of them are
        far tighter than the rest.

        Of normal observations the fourth moment is 3σ⁴; of a mixture √(fourth ÷ 3σ²) is about that
        of its widest part.
        """
        return self.typical()

    @cfunc
    def typical(self) -> Real:
        """Return the `deviation`."""
        return sqrt(max(self.noise, self.fourth / (3.0 * self.noise)))

    @property
    def due(self) -> bool:
        """Tell whether there is so much new evidence that scales and shared coefficients are to be
        estimated again, before the next decision."""
        return self.is_due()

    @cfunc
    def is_due(self) -> Flag:
        """See `due`."""
        return self.seen >= self.due_at

    @property
    def overdue(self) -> bool:
        """Tell whether they must be estimated at once, as noise and drift are measured against them
        even without decisions.
        """
        return self.late()

    @cfunc
    def late(self) -> bool:
        """See `overdue`."""
        return self.seen >= self.due_at + max(min(self.due_at, PRIOR_MEMORY), PRIOR_BELIEVED)

    @ccall
    def observe(self, residual: Real, variance: Real) -> None:
        """Count an observation, and update the noise by its residual of variance σ²(1 +
        `variance`)."""
        self.seen += 1
        self.pieces.add(self.name)
        count: Real = min(self.noise_count + 1.0, PRIOR_MEMORY)
        self.noise_count = count
        square: Real = residual * residual / (1.0 + variance)
        self.fourth += (square * square - self.fourth) / count
        self.noise = max(self.noise + (square - self.noise) / count, LEAST_NOISE)

    def concluded(self) -> None:
        """Schedule the next estimate, by the number of observations."""
        wide: Real = self.d / WIDE
        growth: Real = GROWTH * max(1.0, wide)
        more: Index = int(growth * min(self.seen, PRIOR_MEMORY))
        self.due_at = self.seen + max(self.d // WIDE, more, 1)
        self.pieces.add(self.name)


@cfunc
def rescale(
    prior: SharedPrior, known: Floats, squares: Floats, center: Floats, shared: Real, square: Real
) -> None:
    """Move the ridges one step nearer to those at which the evidence is largest: what is determined
    by data ÷ Σ coefficients².

    Args:
        known: how many of the δ_a, entry by entry, are determined by data (d,); squares: their
            Σ δ².
        center: θ_0; shared: how many features of it are determined.
        square: mean square of a feature.
    """
    guess, d = prior.guess, prior.d
    features: Real = guess.features
    first_bias: Real = guess.bias
    first_noise: Real = guess.noise
    noise, unit = prior.noise, (d - 1) * square
    measured: Real = noise / first_noise if guess.absolute else 1.0
    # The first guesses count as so many coefficients of the size that they expect.
    first: Real = PRIOR_HELD / (features * unit * measured)
    determined = sizes = 0.0
    for i in range(d - 1):
        determined += known[i]
        sizes += squares[i]
    own: Real = (determined + PRIOR_HELD) / (sizes / noise + first)
    bias: Real = (known[d - 1] + PRIOR_HELD) / (
        squares[d - 1] / noise + PRIOR_HELD / (first_bias * measured)
    )
    common: Real = (shared + PRIOR_HELD) / (dot(center, 0, center, 0, d - 1) / noise + first)
    low, high = unit / MOST_RIDGE, MOST_RIDGE * unit
    prior.ridge = min(max(own, low), high)
    prior.bias_ridge = min(max(bias, 1.0 / MOST_RIDGE), MOST_RIDGE)
    prior.shared_ridge = min(max(common, low), high)
