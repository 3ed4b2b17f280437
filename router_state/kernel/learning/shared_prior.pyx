"""The shared prior of a router's models, with the scales of their differences.

Every model's coefficients scatter around shared ones, see `evidence`. The diagonals of R and R_0
have one value for all features and one for the bias. Ridges and noise are estimated from the data:
the ridges by the fixed point of the evidence (MacKay 1992), the noise by the errors of
predictions.
"""

from libc.math cimport sqrt

import numpy as np

from router_state.kernel.learning.counts cimport GUESSED, MEMORY
from router_state.kernel.learning.gaussian cimport WIDE
from router_state.kernel.numbers.linear cimport dot
from router_state.kernel.numbers.words cimport Flag, Floats, Index, Real

cdef Real GROWTH = 0.16
"""Share by which the evidence grows between two estimates, so that the cost of estimates per
observation falls as 1/n. 0.08 is no better (eleven models, and the paper's benchmark without
priors: benchmarks.elsewhere).
"""
cdef Real LEAST_NOISE = 1e-6
"""Least variance σ²: where every observation is predicted exactly, scores must stay finite."""
cdef Real OVERDUE = 20.0
"""Number of observations for which a due estimate may wait for a decision, at least."""
cdef Real MOST_RIDGE = 1e5
"""Largest ridge, in observations; 1 ÷ `MOST_RIDGE` is the least. Ridges of features are per (d −
1) mean squares of a feature. Data of a memory's length can't tell ridges beyond these apart.
"""


cdef class SharedPrior:
    """The shared part of K regressions, and the scales of both parts.

    Attributes:
        name: name of its piece; d: dimensions; guess: what is assumed before the first observation.
        mean: θ_0, shape (d,); center: mean context of the evidence.
        ridge, bias_ridge, shared_ridge: ridges of the features of δ_a, of its bias, and of the
            features of θ_0, in observations.
        noise: σ²; fourth: mean fourth power of residuals; noise_count: observations behind `noise`
            and `fourth`.
        seen: observations so far; due_at: the number of observations at which the next estimate is
            due.
    """

    def __init__(self, str name, d, guess, journal):
        self.name, self.d, self.guess, self.pieces = name, d, guess, journal.pieces
        self.center, self.mean = np.zeros(d), np.zeros(d)
        self.center[d - 1], self.mean[d - 1] = 1.0, guess.mean
        self.ridge = self.shared_ridge = guess.features * (d - 1)
        self.bias_ridge = guess.bias
        self.noise, self.noise_count = guess.noise, GUESSED
        self.fourth = 3.0 * self.noise * self.noise
        self.seen, self.due_at = 0, max(1, d // WIDE)

    @property
    def ridges(self):
        """The diagonal of R, shape (d,)."""
        diagonal = np.full(self.d, self.ridge)
        diagonal[self.d - 1] = self.bias_ridge
        return diagonal

    @property
    def deviation(self):
        """The deviation of the observations that make up the noise, which is above σ if most
        residuals are far smaller than the rest.

        Of normal observations the fourth moment is 3σ⁴; of a mixture √(fourth ÷ 3σ²) is about that
        of its widest part.
        """
        return self.typical()

    cdef Real typical(self):
        """Return the `deviation`."""
        return sqrt(max(self.noise, self.fourth / (3.0 * self.noise)))

    @property
    def due(self):
        """Tell whether scales and shared coefficients must be estimated again before the next
        decision, as there is enough new evidence.
        """
        return self.is_due()

    cdef Flag is_due(self):
        """See `due`."""
        return self.seen >= self.due_at

    @property
    def overdue(self):
        """Tell whether scales and shared coefficients must be estimated at once: noise and drift
        are measured against them even without decisions.
        """
        return self.late()

    cdef Flag late(self):
        """See `overdue`."""
        return self.seen >= self.due_at + max(min(self.due_at, MEMORY), OVERDUE)

    cpdef void observe(self, Real residual, Real variance):
        """Count an observation, and update the noise by its residual of variance σ²(1 +
        `variance`)."""
        self.seen += 1
        self.pieces.add(self.name)
        count: Real = min(self.noise_count + 1.0, MEMORY)
        self.noise_count = count
        square: Real = residual * residual / (1.0 + variance)
        self.fourth += (square * square - self.fourth) / count
        self.noise = max(self.noise + (square - self.noise) / count, LEAST_NOISE)

    def concluded(self):
        """Schedule the next estimate, by the number of observations."""
        wide: Real = self.d / WIDE
        growth: Real = GROWTH * max(1.0, wide)
        more: Index = int(growth * min(self.seen, MEMORY))
        self.due_at = self.seen + max(self.d // WIDE, more, 1)
        self.pieces.add(self.name)


cdef void rescale(
    SharedPrior prior, Floats known, Floats squares, Floats center, Real shared, Real square
):
    """Move the ridges one step towards those of the largest evidence: number of coefficients that
    data determine ÷ Σ coefficients².

    Args:
        known: for each entry, how many of the δ_a data determine (d,); squares: Σ δ² for each
            entry.
        center: θ_0; shared: how many of its features data determine.
        square: mean square of a feature.
    """
    guess, d = prior.guess, prior.d
    features: Real = guess.features
    first_bias: Real = guess.bias
    first_noise: Real = guess.noise
    noise, unit = prior.noise, (d - 1) * square
    measured: Real = noise / first_noise if guess.absolute else 1.0
    # Each first guess counts as `GUESSED` coefficients of the size that it expects.
    first: Real = GUESSED / (features * unit * measured)
    determined = sizes = 0.0
    for i in range(d - 1):
        determined += known[i]
        sizes += squares[i]
    own: Real = (determined + GUESSED) / (sizes / noise + first)
    bias: Real = (known[d - 1] + GUESSED) / (
        squares[d - 1] / noise + GUESSED / (first_bias * measured)
    )
    common: Real = (shared + GUESSED) / (dot(center, 0, center, 0, d - 1) / noise + first)
    low, high = unit / MOST_RIDGE, MOST_RIDGE * unit
    prior.ridge = min(max(own, low), high)
    prior.bias_ridge = min(max(bias, 1.0 / MOST_RIDGE), MOST_RIDGE)
    prior.shared_ridge = min(max(common, low), high)


# For Python, which does not see numbers of C.
globals().update(GROWTH=GROWTH)
