"""The prior that all models of a router share, and how large their differences are.

Every model's coefficients scatter around shared ones, see `evidence`: R and R_0 have one entry for
all features and one for the bias. Ridges and noise are estimated from the data: the ridges by the
fixed point of the evidence (MacKay 1992), the noise by the errors of predictions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from router_state.config import GUESSED, MEMORY, Vector
from router_state.journal import Journal
from router_state.learning.evidence import Sizes

GROWTH = 0.16
"""Share by which the evidence grows between two estimates (0.08 is no better: eleven models and the
paper's benchmark without priors, benchmarks.elsewhere); their cost thus falls as 1/n."""
WIDE_FROM = 32
"""Dimensions from which on they are rarer, as each costs O(K·d³)."""
MOST_GROWTH = 3.0
"""Of that share."""
LATE = 16
"""Observations, beside as many as there were when it was due, that an estimate waits at most for a
decision that needs it."""
LEAST_NOISE = 1e-6
"""Of the variance σ²: where every observation is predicted exactly, scores must stay finite."""
FEATURES_WITHIN, BIAS_WITHIN = (1e-2, 1e5), (2e-2, 1e4)
"""Bounds of the ridges, in observations; those of features per (d − 1) mean squares of a
feature."""


@dataclass(frozen=True, slots=True)
class Guess:
    """What is assumed before the first observation, `GUESSED` coefficients strong.

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
COSTS = Guess(mean=-0.65, deviation=1.5, noise=0.3, features=4.0, bias=0.3, absolute=True)
"""Logarithms of bills: a factor of 4 is not known beforehand, prompts differ by as much, and models
by a factor of e: some think before they answer. What two terse models cost says little of a
third."""


class Ridges(NamedTuple):
    """Of the features and the bias of δ_a, and of the features of θ_0, in observations."""

    own: float
    bias: float
    shared: float


class SharedPrior:
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
        self.noise, self.fourth, self.noise_count = guess.noise, 3.0 * guess.noise**2, GUESSED
        self.seen, self.due_at = 0, max(1, d // WIDE_FROM)

    @property
    def ridges(self) -> Vector:
        """The diagonal of R, shape (d,)."""
        return _diagonal(self.d, self.ridge, self.bias_ridge)

    @property
    def shared_bias_ridge(self) -> float:
        """Of the bias of θ_0, in observations."""
        return self.noise / self._guess.deviation**2

    @property
    def guess(self) -> float:
        """The bias that is shared by the first guess; that of features is 0."""
        return self._guess.mean

    @property
    def deviation(self) -> float:
        """The deviation of the observations that make up the noise: above σ where most of them are
        far tighter than the rest.

        Of normal observations the fourth moment is 3σ⁴; of a mixture √(fourth ÷ 3σ²) is about that
        of its widest part.
        """
        return math.sqrt(max(self.noise, self.fourth / (3.0 * self.noise)))

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

    def observe(self, residual: float, variance: float) -> None:
        """Count an observation; its residual, of variance σ²(1 + `variance`), tells of the
        noise."""
        self.seen += 1
        self._journal.pieces.add(self.name)
        count, noise = self.noise_count + 1.0, self.noise
        self.noise_count = count = count if count < MEMORY else MEMORY
        square = residual * residual / (1.0 + variance)
        self.fourth += (square * square - self.fourth) / count
        noise += (square - noise) / count
        self.noise = noise if noise > LEAST_NOISE else LEAST_NOISE

    @property
    def scales(self) -> Ridges:
        """The ridges as they are."""
        return Ridges(self.ridge, self.bias_ridge, self.shared_ridge)

    def conclude(self, ridges: Ridges, center: Vector, mean: Vector) -> None:
        """Take over what was estimated, and note after how many more observations the next estimate
        is made."""
        self.ridge, self.bias_ridge, self.shared_ridge = ridges
        # Copies: rows of an array would keep all of it.
        self.center, self.mean = center.copy(), mean.copy()
        growth = min(GROWTH * max(1.0, (self.d / WIDE_FROM) ** 2), MOST_GROWTH)
        self.due_at = self.seen + max(self.d // WIDE_FROM, int(growth * min(self.seen, MEMORY)), 1)
        self._journal.pieces.add(self.name)

    def rescaled(self, found: Sizes, square: float) -> Ridges:
        """Return the ridges one step nearer to those at which the evidence is largest: what is
        determined by data ÷ Σ coefficients².

        Args:
            found: at the scales as they are.
            square: mean square of a feature.
        """
        guess, noise, unit = self._guess, self.noise, (self.d - 1) * square
        low, high = FEATURES_WITHIN[0] * unit, FEATURES_WITHIN[1] * unit
        measured = noise / guess.noise if guess.absolute else 1.0
        # The first guesses count as so many coefficients of the size that they expect.
        first = GUESSED / (guess.features * unit * measured)
        known_bias, bias_squares = found.known.pop(), found.squares.pop()
        own = (sum(found.known, 0.0) + GUESSED) / (sum(found.squares, 0.0) / noise + first)
        bias = (known_bias + GUESSED) / (
            bias_squares / noise + GUESSED / (guess.bias * measured)
        )
        center = (self.mean + found.shift)[:-1]
        shared = (sum(found.known_shared[:-1], 0.0) + GUESSED) / (
            center.dot(center).item() / noise + first
        )
        return Ridges(
            min(max(own, low), high),
            min(max(bias, BIAS_WITHIN[0]), BIAS_WITHIN[1]),
            min(max(shared, low), high),
        )


def _diagonal(d: int, features: float, bias: float) -> Vector:
    diagonal = np.full(d, features)
    diagonal[-1] = bias
    return diagonal
