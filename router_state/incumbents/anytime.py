"""Intervals that may be looked at at any time.

An ordinary interval holds at one look. Whoever looks each day, and stops when it pleases, misses
far more often. A confidence sequence holds at all looks together.

This one is the normal mixture for means of terms that need not be alike, asymptotically
(Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas 2024, "Time-uniform central limit theory and
asymptotic confidence sequences", Annals of Statistics 52, arXiv:2103.06476, Theorem 2.2). With n
terms of deviation s it is

    mean ± s·√((nρ² + 1)/(n²ρ²) · ln((nρ² + 1)/α²)).
"""

from __future__ import annotations

from math import inf, sqrt

from router_state.kernel import log_of

MISSED_AT_ANY_LOOK = 0.05
"""Probability with which a sequence misses the truth at any look at all."""
NARROWEST_AT = 5_000
"""Terms at which an interval is narrowest, compared with one that is made for another number. From
500 to 50,000 it is at most a seventh wider than it could be."""


def mixed(missed: float) -> float:
    """Return the ρ² for which the interval is narrowest after `NARROWEST_AT` terms (the same paper,
    appendix C).
    """
    log = -2.0 * log_of(missed)
    return (log + log_of(log + 1.0)) / NARROWEST_AT


def half_width(n: int, variance: float, *, missed: float = MISSED_AT_ANY_LOOK) -> float:
    """Return half of the interval of the mean of n terms of this variance; infinity without terms.
    The mean lies outside the interval with probability `missed` at most.

    >>> round(half_width(5_000, 1.0), 4), round(1.96 / 5_000**0.5, 4)
    (0.0429, 0.0277)
    """
    if n < 2:
        return inf
    rho = mixed(missed)
    wide = n * rho + 1.0
    return sqrt(max(variance, 0.0) * wide / (n * n * rho) * log_of(wide / missed**2))
