"""The evidence about one model as sums: what a router tells its family, and what it is told."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from router_state.config import Matrix, Vector
from router_state.errors import UnusablePrior
from router_state.families import sum_bytes
from router_state.families.sum_bytes import lower
from router_state.kernel import Evidence, Regression, SharedPrior, exp_of

LEAST_TOLD = 20.0
"""Least requests that a sum is of before it leaves its router: no single prompt can be read off
it."""


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

    def less(self, other: Sums) -> Sums:
        """Return these sums without others."""
        return Sums(self.A - other.A, self.b - other.b)

    def times(self, share: float) -> Sums:
        """Return this share of the sums."""
        return Sums(share * self.A, share * self.b)

    def triangle(self) -> Vector:
        """Return the lower triangle of A, row by row, then b."""
        return np.concatenate([self.A[lower(len(self.b))], self.b])


def bytes_of(sums: Sums) -> bytes:
    """Return sums as bytes, rounded."""
    return sum_bytes.pack(sums.A, sums.b)


def sums_of(data: bytes, d: int) -> Sums:
    """Invert `bytes_of`, but for the rounding.

    Raises:
        UnusablePrior: these are no sums of d dimensions.
    """
    return Sums(*sum_bytes.unpack(data, d))


def require_usable(sums: Sums) -> None:
    """Check that A is positive semidefinite. Raises UnusablePrior."""
    d, largest = len(sums.b), float(np.diag(sums.A).max())
    try:
        np.linalg.cholesky(sums.A + 1e-6 * (1.0 + largest) * np.eye(d))
    except np.linalg.LinAlgError:
        raise UnusablePrior("the sums of a family must be positive semidefinite") from None


@dataclass(frozen=True, slots=True)
class Share:
    """Sums in a regression that are not its router's own evidence.

    Attributes:
        data: the sums, see `bytes_of`, or as 64-bit floats where they were not rounded.
        count: observations.
        forgotten, moved: of the regression at that time: what it forgets and by how much it is
            shifted, it forgets and shifts of these as well.
    """

    data: bytes
    count: float
    forgotten: float
    moved: float

    @classmethod
    def taken(cls, data: bytes, one: Regression) -> Share:
        """Return what a regression takes from its family now."""
        return cls(data, sums_of(data, one.d).count, one.forgotten, one.moved)

    @classmethod
    def given(cls, sums: Sums, one: Regression) -> Share:
        """Return what a regression was given to start with."""
        data = sums.triangle().astype("<f8").tobytes()
        return cls(data, sums.count, one.forgotten, one.moved)

    def sums(self, d: int) -> Sums:
        """Return the sums as they were taken. Raises UnusablePrior."""
        T = d * (d + 1) // 2
        if len(self.data) != 8 * (T + d):
            return sums_of(self.data, d)
        numbers = np.frombuffer(self.data, "<f8")
        if not np.isfinite(numbers).all():
            raise UnusablePrior("the sums that a router was given must be finite")
        A = np.zeros((d, d))
        A[lower(d)] = numbers[:T]
        return Sums(A + np.tril(A, -1).T, numbers[T:])

    def requests(self, one: Regression) -> float:
        """Return for how many observations it still counts."""
        return self.count * exp_of(self.forgotten - one.forgotten)

    def left(self, one: Regression) -> Sums:
        """Return what is left of the sums."""
        sums, moved = self.sums(one.d), one.moved - self.moved
        A = exp_of(self.forgotten - one.forgotten) * sums.A
        b = exp_of(self.forgotten - one.forgotten) * sums.b
        return Sums(A, b + moved * A[-1])


def whole_sums(one: Regression, prior: SharedPrior) -> Sums:
    """Return all the evidence in a regression, without its shared prior."""
    ridges = prior.ridges
    whole = np.linalg.inv(one.V())
    A = (whole - np.diag(ridges)) * one.decay
    b = (whole @ one.theta - ridges * prior.mean) * one.decay
    return Sums((A + A.T) / 2.0, b)


def given_sums(one: Regression, prior: SharedPrior) -> Sums:
    """Return what `whole_sums` returns, equal to the bit on every machine, of a regression that was
    not observed yet."""
    center = prior.center
    evidence = Evidence(prior, [one])
    evidence.gather([1.0])
    prior.center = center
    d, (triangle, y, *_) = one.d, evidence.arrays
    A = np.zeros((d, d))
    A[lower(d)] = triangle
    A += np.tril(A, -1).T
    return Sums(A, y[:d] + (A * prior.mean).sum(1))


def own_sums(one: Regression, prior: SharedPrior, *shares: Share | None) -> Sums:
    """Return the evidence of a regression that is its router's own."""
    found = whole_sums(one, prior)
    for share in shares:
        if share is not None:
            found = found.less(share.left(one))
    return found
