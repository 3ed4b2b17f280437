"""The evidence about one model as sums: what a router tells its family, and what it is told.

On the wire and in the state a matrix is its diagonal, as 32-bit floats, and the correlations beside
it, as 16-bit integers: at 26 dimensions 858 bytes for A and b.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from router_state.config import Matrix, Vector
from router_state.errors import UnusablePrior
from router_state.kernel import Evidence, Regression, SharedPrior, exp_of

Whole: TypeAlias = npt.NDArray[np.intp]
"""Positions in a matrix."""
LEAST_TOLD = 20.0
"""Least requests that a sum is of before it leaves its router: no single prompt can be read off
it."""
CORRELATION_STEPS = 32_767
"""Steps of a correlation between 0 and 1."""


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
        return np.concatenate([self.A[_triangle(len(self.b))], self.b])


@cache
def _triangle(d: int, below: int = 0) -> tuple[Whole, Whole]:
    """Return the rows and columns of a lower triangle; numpy takes longer than all else here.

    Args:
        below: 0: with the diagonal; -1: without.
    """
    return np.tril_indices(d, below)


def bytes_of(sums: Sums) -> bytes:
    """Return sums as bytes, rounded. The diagonal grows by what rounding may take from an
    eigenvalue, so that A stays positive semidefinite."""
    d = len(sums.b)
    diagonal = np.maximum(np.diag(sums.A), 0.0) * (1.0 + d / (2.0 * CORRELATION_STEPS))
    diagonal = diagonal.astype("<f4")
    root = np.sqrt(diagonal.astype(float))
    beside = sums.A[_triangle(d, -1)]
    scale = np.outer(root, root)[_triangle(d, -1)]
    share = np.divide(beside, scale, out=np.zeros_like(beside), where=scale > 0.0)
    rounded = np.rint(np.clip(share, -1.0, 1.0) * CORRELATION_STEPS).astype("<i2")
    found: bytes = diagonal.tobytes() + sums.b.astype("<f4").tobytes() + rounded.tobytes()
    return found


def sums_of(data: bytes, d: int) -> Sums:
    """Invert `bytes_of`, but for the rounding.

    Raises:
        UnusablePrior: these are no sums of d dimensions.
    """
    if len(data) != size_of(d):
        raise UnusablePrior(f"{len(data)} bytes are not the sums of {d} dimensions")
    diagonal = np.frombuffer(data, "<f4", d).astype(float)
    b = np.frombuffer(data, "<f4", d, 4 * d).astype(float)
    if not (np.isfinite(diagonal).all() and np.isfinite(b).all() and (diagonal >= 0.0).all()):
        raise UnusablePrior("the sums of a family must be finite, and their diagonal not negative")
    root, A = np.sqrt(diagonal), np.zeros((d, d))
    A[_triangle(d, -1)] = np.frombuffer(data, "<i2", offset=8 * d) / CORRELATION_STEPS
    A = (A + A.T) * np.outer(root, root)
    np.fill_diagonal(A, diagonal)
    return Sums(A, b)


def require_usable(sums: Sums) -> None:
    """Check that A is positive semidefinite. Raises UnusablePrior."""
    d, largest = len(sums.b), float(np.diag(sums.A).max())
    try:
        np.linalg.cholesky(sums.A + 1e-6 * (1.0 + largest) * np.eye(d))
    except np.linalg.LinAlgError:
        raise UnusablePrior("the sums of a family must be positive semidefinite") from None


def size_of(d: int) -> int:
    """Return the bytes of the sums of d dimensions."""
    return 8 * d + d * (d - 1)


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
        if len(self.data) == size_of(d):
            return sums_of(self.data, d)
        T, numbers = d * (d + 1) // 2, np.frombuffer(self.data, "<f8")
        if len(numbers) != T + d or not np.isfinite(numbers).all():
            raise UnusablePrior(f"{len(self.data)} bytes are not the sums of {d} dimensions")
        A = np.zeros((d, d))
        A[_triangle(d)] = numbers[:T]
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
    A[_triangle(d)] = triangle
    A += np.tril(A, -1).T
    return Sums(A, y[:d] + (A * prior.mean).sum(1))


def own_sums(one: Regression, prior: SharedPrior, *shares: Share | None) -> Sums:
    """Return the evidence of a regression that is its router's own."""
    found = whole_sums(one, prior)
    for share in shares:
        if share is not None:
            found = found.less(share.left(one))
    return found
