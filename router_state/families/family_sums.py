"""The evidence about one model as sums, in a router's report to its family and in the family's
prior for the router.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from router_state.config import Matrix, Vector
from router_state.errors import UnusablePrior
from router_state.families import sum_bytes
from router_state.families.sum_bytes import lower

LEAST_REPORTED = 20.0
"""Least number of requests in sums that leave their router: no single prompt can be read off
them."""


@dataclass(frozen=True, slots=True, eq=False)
class Sums:
    """Σ xxᵀ, shape (d, d), and Σ y·x, shape (d,), over observations that fade.

    In a family's prior they are a Gaussian over coefficients in units of σ²: A is the precision, b
    the precision times the mean.
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
        """Return these sums minus other sums."""
        return Sums(self.A - other.A, self.b - other.b)

    def times(self, share: float) -> Sums:
        """Return these sums times `share`."""
        return Sums(share * self.A, share * self.b)

    @classmethod
    def of_triangle(cls, values: Vector, d: int) -> Sums:
        """Invert `triangle`."""
        A, at = np.zeros((d, d)), lower(d)
        A[at] = values[: len(at[0])]
        return cls(A + np.tril(A, -1).T, values[len(at[0]) :])

    def triangle(self) -> Vector:
        """Return the lower triangle of A, row by row, then b."""
        return np.concatenate([self.A[lower(len(self.b))], self.b])


def bytes_of(sums: Sums) -> bytes:
    """Return sums as bytes, rounded."""
    return sum_bytes.pack(sums.A, sums.b)


@lru_cache(maxsize=64)
def sums_of(data: bytes, d: int) -> Sums:
    """Invert `bytes_of`, but for the rounding. A report, or a prior, asks for the same sums several
    times.

    Raises:
        UnusablePrior: these are no sums of d dimensions.
    """
    found = Sums(*sum_bytes.unpack(data, d))
    for shared in (found.A, found.b):
        shared.flags.writeable = False
    return found


def require_usable(sums: Sums) -> None:
    """Check that A is positive semidefinite. Raises UnusablePrior."""
    d, largest = len(sums.b), float(np.diag(sums.A).max())
    try:
        np.linalg.cholesky(sums.A + 1e-6 * (1.0 + largest) * np.eye(d))
    except np.linalg.LinAlgError:
        raise UnusablePrior("the sums of a family must be positive semidefinite") from None
