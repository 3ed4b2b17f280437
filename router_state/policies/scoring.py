"""What the arms say of one context, and whose score is best."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from router_state.arms import Arms
from router_state.config import MAX_NORM, Vector
from router_state.errors import NonFiniteInput, WrongContext
from router_state.learning.stack import WIDE
from router_state.record import Candidates

TIE = 1e-12
"""Difference below which scores are equal."""


class Projection(NamedTuple):
    """What the arms say of one context, by position.

    Attributes:
        means: expected rewards θᵀx.
        variances: xᵀVx of the rewards' regressions, not decayed.
        exponents: predicted logarithms of bill ÷ list price.
    """

    means: list[float]
    variances: list[float]
    exponents: list[float]


class Choice(NamedTuple):
    """The arm to call, why, and with what probability it was to be called."""

    k: int
    reason: str
    propensity: float = 1.0


def project(arms: Arms, x: Vector) -> Projection:
    """Return what the arms say of a context, shape (d,), last entry the bias 1.0.

    Raises:
        WrongContext: another shape or bias, or features out of all proportion.
        NonFiniteInput: a NaN or an infinity.
    """
    check(x, arms.d)
    stack = arms.stack
    work = stack.work
    np.matvec(stack.scored, x, work.grid)
    work.x[:] = x
    variances: list[float] = work.grid.dot(work.x_row, work.squares).tolist()
    if arms.d >= WIDE:
        for k, regression in enumerate(arms.regressions):
            if regression.pending:
                tail = regression.tails[: regression.pending].dot(x)
                variances[k] -= float(tail.dot(tail))
    means, exponents = work.tail.T.tolist()
    if arms.suspect:
        means = [mean + arm.offset for mean, arm in zip(means, arms, strict=True)]
    # The product has θᵀx of both in it, times 0: what is not finite in one of them is none of the
    # variances either.
    if not math.isfinite(sum(variances, 0.0)):
        raise NonFiniteInput("what an arm has learned is not finite")
    return Projection(means, variances, exponents)


def expected_costs(arms: Arms, exponents: list[float], tokens: int | None) -> list[float]:
    """Return what a call of each arm is expected to cost in dollars.

    Raises:
        NonFiniteInput: a cost is not finite.
    """
    known = arms.tokens.of(tokens)
    costs = [
        costs.expected(exponent, known)
        for costs, exponent in zip(arms.costs, exponents, strict=True)
    ]
    if not math.isfinite(sum(costs, 0.0)):
        raise NonFiniteInput("what an arm has learned of its costs is not finite")
    return costs


def check(x: Vector, d: int) -> None:
    """Raise what is wrong with a context, see `project`.

    It is finite before the first product: one that overflows, or meets an infinity, sets a flag
    that numpy reports as a warning.
    """
    if x.shape != (d,):
        raise WrongContext(
            f"the context has {x.shape[0] if x.ndim == 1 else x.shape} entries; the router has "
            f"{d} dimensions"
        )
    if x.item(-1) != 1.0:
        raise WrongContext("the last entry of a context is the bias, 1.0")
    if d >= WIDE:
        with np.errstate(all="ignore"):
            square = float(x.dot(x))
        # A product is enough for most; it is not as exact as `hypot`, which takes a while for many.
        if square < 0.99 * MAX_NORM**2:
            return
    norm = math.hypot(*x.tolist())
    if not norm <= MAX_NORM:
        if not math.isfinite(norm):
            raise NonFiniteInput("the context holds a NaN or an infinity")
        raise WrongContext(
            f"the features of the context have a norm of {norm:.3g}; {MAX_NORM:,.0f} is the limit"
        )


def best(candidates: Candidates) -> list[int]:
    """Return the eligible arms whose score is the best, one where there is no tie.

    Raises:
        NonFiniteInput: a score is not finite.
    """
    terms, most = candidates.terms, -math.inf
    found: list[int] = []
    rows = zip(terms[0::3], terms[1::3], candidates.penalty, candidates.excluded, strict=True)
    for k, (mean, bonus, penalty, why) in enumerate(rows):
        if why is None:
            score = mean + bonus - penalty
            if score - most >= TIE:
                most, found = score, [k]
            elif most - score < TIE:
                found.append(k)
    if not math.isfinite(most):
        raise NonFiniteInput("a score is not finite")
    return found
