"""The evidence of one member about one model, as sums: what a member tells, and what it is told."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from router_state.config import Matrix, Vector
from router_state.kernel import Regression, SharedPrior, exp_of

LEAST_TOLD = 20.0
"""Least observations that a member's sums are of before they leave it: no single request can be
read off them."""


@dataclass(frozen=True, slots=True, eq=False)
class Sums:
    """Σ xxᵀ, shape (d, d), and Σ y·x, shape (d,), over observations that fade.

    As what a family tells, a Gaussian over coefficients in units of σ²: precision and precision
    times mean.
    """

    A: Matrix
    b: Vector

    @classmethod
    def none(cls, d: int) -> Sums:
        """Return the sums of no observation."""
        return cls(np.zeros((d, d)), np.zeros(d))

    @property
    def count(self) -> float:
        """The number of observations; the last feature of each is 1."""
        return float(self.A[-1, -1])

    def less(self, other: Sums, *, left: float) -> Sums:
        """Return these sums without what is left of others."""
        return Sums(self.A - left * other.A, self.b - left * other.b)

    def packed(self) -> Vector:
        """Return the lower triangle of A, row by row, then b."""
        return np.concatenate([self.A[np.tril_indices(len(self.b))], self.b])


@dataclass(slots=True, eq=False)
class Taken:
    """The sums that a regression took over from its family.

    Attributes:
        sums: as they were taken over.
        forgotten, moved: of the regression at that time: what it forgets and by how much it is
            shifted, it forgets and shifts of these as well.
    """

    sums: Sums
    forgotten: float
    moved: float

    def left(self, one: Regression) -> Sums:
        """Return what is left of it."""
        share, moved = exp_of(self.forgotten - one.forgotten), one.moved - self.moved
        A = share * self.sums.A
        return Sums(A, share * self.sums.b + moved * A[-1])


def own_sums(one: Regression, prior: SharedPrior, taken: Taken | None) -> Sums:
    """Return the evidence that a regression has itself, without its prior and its family's."""
    ridges = prior.ridges
    V = one.V()
    whole = np.linalg.inv(V)
    A = (whole - np.diag(ridges)) * one.decay
    b = (whole @ one.theta - ridges * prior.mean) * one.decay
    found = Sums((A + A.T) / 2.0, b)
    if taken is None:
        return found
    return found.less(taken.left(one), left=1.0)
