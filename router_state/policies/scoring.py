"""Compute what the arms say of one context, and whose score is best."""

from __future__ import annotations

from msgspec import Struct

from router_state import kernel
from router_state.arms import Arms
from router_state.config import Vector
from router_state.kernel import Projection
from router_state.record import Candidates


class Choice(Struct, frozen=True, gc=False):
    """The arm to call, why, with what probability it was to be called, and the doubt about the
    context (see `RequestRecord.unsure`)."""

    k: int
    reason: str
    propensity: float = 1.0
    unsure: list[float] | None = None


def project(arms: Arms, x: Vector) -> Projection:
    """Return what the arms say of a context, shape (d,), last entry the bias 1.0.

    Raises:
        WrongContext: another shape or bias, or features out of all proportion.
        NonFiniteInput: a NaN or an infinity.
    """
    seen = kernel.project(x, arms.d, arms.regressions, arms.billed)
    if arms.suspect:
        seen.means = [mean + arm.offset for mean, arm in zip(seen.means, arms, strict=True)]
    return seen


def best(candidates: Candidates) -> list[int]:
    """Return the eligible arms whose score is the best, one where there is no tie.

    Raises:
        NonFiniteInput: a score is not finite.
    """
    return kernel.best(candidates.terms, candidates.penalty, candidates.excluded)
