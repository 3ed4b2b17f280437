"""Compute what the arms say of one context, and whose score is best."""

from __future__ import annotations

import math
from typing import NamedTuple

from router_state import kernel
from router_state.arms import Arms
from router_state.config import Vector
from router_state.errors import NonFiniteInput
from router_state.kernel import Projection
from router_state.record import Candidates


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
    seen = kernel.project(x, arms.d, arms.regressions, arms.billed)
    if not arms.suspect:
        return seen
    return seen._replace(
        means=[mean + arm.offset for mean, arm in zip(seen.means, arms, strict=True)]
    )


def expected_costs(arms: Arms, exponents: list[float], tokens: int | None) -> list[float]:
    """Return what a call of each arm is expected to cost in dollars.

    Raises:
        NonFiniteInput: a cost is not finite.
    """
    costs = kernel.expected_costs(arms.costs, exponents, arms.tokens.of(tokens))
    if not math.isfinite(sum(costs, 0.0)):
        raise NonFiniteInput("what an arm has learned of its costs is not finite")
    return costs


def best(candidates: Candidates) -> list[int]:
    """Return the eligible arms whose score is the best, one where there is no tie.

    Raises:
        NonFiniteInput: a score is not finite.
    """
    return kernel.best(candidates.terms, candidates.penalty, candidates.excluded)
