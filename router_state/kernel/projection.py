"""Compute the arms' predictions for one context, and the best score."""

from __future__ import annotations

from math import isfinite, sqrt
from typing import TYPE_CHECKING

from router_state.config import MAX_NORM
from router_state.errors import NonFiniteInput, WrongContext
from router_state.kernel.linear import EPSILON, dot
from router_state.kernel.regression import Regression, multiply, room_of_products, spread_at
from router_state.kernel.words import Floats, Index, Real, cclass, cfunc, known

if TYPE_CHECKING:
    from collections.abc import Sequence

    from router_state.config import Vector

LARGEST_NORM: Real = MAX_NORM


@cclass
class Projection:
    """The arms' predictions for one context, by position.

    Attributes:
        means: expected rewards θᵀx.
        variances: xᵀVx of the rewards' regressions, not decayed.
        exponents: predicted logarithms of bill ÷ list price.
    """

    means: list[float]
    variances: list[float]
    exponents: list[float]

    def __init__(self, means: list[float], variances: list[float], exponents: list[float]) -> None:
        self.means, self.variances, self.exponents = means, variances, exponents


def project(
    x: Vector, d: Index, rewards: Sequence[Regression], bills: Sequence[Regression]
) -> Projection:
    """Return the predictions of rewards and bills for a context, shape (d,), last entry the bias
    1.0.

    Raises:
        WrongContext: another shape or bias, or features out of all proportion.
        NonFiniteInput: a NaN or an infinity.
    """
    space: Floats = checked(x, d)
    multiply(space, d)
    K: Index = len(rewards)
    if len(bills) != K:
        raise ValueError(f"{len(bills)} regressions of bills do not match {K} arms")
    means: list[float] = []
    variances: list[float] = []
    exponents: list[float] = []
    total: Real = 0.0
    one: Regression
    for k in range(K):
        one = rewards[k]
        require_dimensions(one, d)
        mean: Real = dot(one.values, one.at, space, 0, d)
        variance: Real = spread_at(one, space)
        one = bills[k]
        require_dimensions(one, d)
        exponent: Real = dot(one.values, one.at, space, 0, d)
        total += mean + variance + exponent
        means.append(mean)
        variances.append(variance)
        exponents.append(exponent)
    if not isfinite(total):
        raise NonFiniteInput("what an arm has learned is not finite")
    return Projection(means, variances, exponents)


@cfunc
def require_dimensions(one: Regression, d: Index) -> None:
    """Raise ValueError where a regression has other dimensions."""
    if one.d != d:
        raise ValueError(f"a regression of {one.d} dimensions is not of {d}")


def check(x: Vector, d: int) -> None:
    """Check a context and raise errors as `project` does."""
    checked(x, d)


@cfunc
def checked(x: Vector, d: Index) -> Floats:
    """Copy a context into the kernel's room, see `check`."""
    context: Floats
    try:
        context = known(x, d)
    except ValueError:
        if x.shape == (d,):
            raise
        raise WrongContext(
            f"the context has {x.shape[0] if x.ndim == 1 else x.shape} entries; the router has "
            f"{d} dimensions"
        ) from None
    if context[d - 1] != 1.0:
        raise WrongContext("the last entry of a context is the bias, 1.0")
    space: Floats = room_of_products(d)
    for i in range(d):
        space[i] = context[i]
    norm: Real = sqrt(dot(space, 0, space, 0, d))
    if not norm <= LARGEST_NORM:
        for i in range(d):
            if not isfinite(space[i]):
                raise NonFiniteInput("the context holds a NaN or an infinity")
        raise WrongContext(
            f"the features of the context have a norm of {norm:.3g}; {LARGEST_NORM:,.0f} is the "
            "limit"
        )
    return space


def best(terms: list[float], penalties: list[float], excluded: list[str | None]) -> list[int]:
    """Return the eligible arms whose score is the best, one where there is no tie.

    Args:
        terms: mean and bonus of each arm's score, and a third number.

    Raises:
        NonFiniteInput: a score is not finite.
    """
    K: Index = len(penalties)
    if len(terms) != 3 * K or len(excluded) != K:
        raise ValueError(f"{len(terms)} terms are not of {K} arms")
    most: Real = -float("inf")
    found: list[int] = []
    for k in range(K):
        if excluded[k] is None:
            mean: Real = terms[3 * k]
            bonus: Real = terms[3 * k + 1]
            penalty: Real = penalties[k]
            score: Real = mean + bonus - penalty
            if score - most >= EPSILON:
                most, found = score, [k]
            elif most - score < EPSILON:
                found.append(k)
    if not isfinite(most):
        raise NonFiniteInput("a score is not finite")
    return found
