"""Check the sums over earlier observations in a declaration: whether observations can have such
sums.
"""

from __future__ import annotations

import numpy as np

from router_state.config import Matrix, Vector
from router_state.errors import UnusablePrior
from router_state.kernel import MAX_NORM

OBSERVED = 1e-9, 1e15
"""Least and most observations behind a prior, and that a prior may count for: forgetting leaves
parts of an observation, and above 1e15 rounding loses the next one.
"""
MOST_CONDITION = 1e10
"""Largest ratio of two eigenvalues of A, ridge included: up to it, inverting the inverse gives
back the smallest eigenvalue.
"""


def require_observed(what: str, A: Matrix, b: Vector, *, d: int) -> None:
    """Check that A (d, d) and b (d,) are finite, that A is symmetric, and that its contexts are no
    longer than those of requests may be.

    Raises:
        UnusablePrior: one of the checks fails.
    """
    if A.shape != (d, d) or b.shape != (d,):
        raise UnusablePrior(
            f"{what} has shape {A.shape} and {b.shape}; the router has {d} dimensions"
        )
    if not (np.isfinite(A).all() and np.isfinite(b).all()):
        raise UnusablePrior(f"{what} must be finite")
    # The bias is 1 in every context, so the last entry of A counts the observations.
    require_counted(what, count := float(A[-1, -1]))
    with np.errstate(over="ignore"):
        mean = A / count
        if not np.allclose(mean, mean.T, rtol=1e-6, atol=1e-9):
            raise UnusablePrior(f"{what} must have a symmetric A")
        squares = float(np.trace(mean)) - 1.0
    # A ridge in A adds the same to each feature as to the count.
    if not squares <= MAX_NORM**2 + d:
        raise UnusablePrior(
            f"{what} is of features with a mean square of {squares:.3g}; contexts of a norm "
            f"over {MAX_NORM:,.0f} are refused"
        )


def require_counted(what: str, count: float) -> None:
    """Check that the number of observations is within `OBSERVED`.

    Raises:
        UnusablePrior: the number is too large.
    """
    least, most = OBSERVED
    if not least <= count <= most:
        raise UnusablePrior(
            f"{what} counts for {count:.3g} observations; between {least:g} and {most:g} may be"
        )


def require_invertible(what: str, A: Matrix) -> None:
    """Check that A (d, d), ridge included, is well conditioned, in O(d³).

    Raises:
        UnusablePrior: it is not.
    """
    values = np.linalg.eigvalsh(A)
    if not 0.0 < values[-1] <= MOST_CONDITION * values[0]:
        raise UnusablePrior(
            f"{what} knows some features too well beside others: the eigenvalues of A with the "
            f"ridge go from {values[0]:.3g} to {values[-1]:.3g}; declare a lower n_eff"
        )
