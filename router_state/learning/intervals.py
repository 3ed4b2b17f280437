"""Intervals that hold at every look: however often one looks, and whatever makes one stop.

They are normal mixtures for a mean of unknown variance (Lai 1976; Wang and Ramdas 2023,
arXiv:2310.03722, section 4). Under a mean m the ratio of the likelihood under a normal prior of
(mean − m) ÷ σ to that under m, both free of scale, is a martingale that starts at 1:

    e_n = √(c ÷ (n + c)) · ((S + n·δ²) ÷ (S + n·δ²·c ÷ (n + c)))^(n/2)

with δ the sample mean less m, and S the sum of squares around the sample mean. By Ville's
inequality the probability that e_n ever exceeds 1/α is at most α. The interval contains every m at
which e_n does not exceed 1/α. It needs n, the mean and S alone, so a pair can be taken back.

The bound is exact where differences are normal. `PSEUDO` widens the interval of a few pairs that
happen to agree.
"""

from __future__ import annotations

import math
from typing import NamedTuple

PRIOR = 4.0
"""c: precision of the prior, in pairs. Relative to a fixed-n interval it is tightest around 60
pairs."""
PSEUDO = 0.25
"""Sum of squares that is assumed beside the observed one, for labels in [0, 1]: that of two pairs
whose differences are 0.7 apart. Without it an interval of pairs that agreed exactly would be a
point."""
SHOWN = 0.05
"""Probability that an interval that is shown is ever wrong."""
TWO_SIDED = 1.96
"""Deviations of a normal variable on either side of its mean that hold 95 %, for the interval of a
posterior, which needs no correction for repeated looks.
"""


class Interval(NamedTuple):
    """An estimate, and the ends of its confidence interval."""

    value: float
    low: float
    high: float

    def rounded(self) -> dict[str, float]:
        """Return the interval as `pb.lambda` publishes it, rounded to four digits."""
        return {name: round(number, 4) for name, number in self._asdict().items()}


def half_width(n: int, alpha: float, *, known: float = 0.0) -> float:
    """Return half of the interval of a mean of n observations, in standard deviations of one
    observation; infinity for too few.

    Args:
        known: observations that inform the deviation but are none of the n.
    """
    if n < 2:
        return math.inf
    exponent = 2.0 / (n + known) * (math.log(1.0 / alpha) + 0.5 * math.log((n + PRIOR) / PRIOR))
    ratio, share = math.exp(min(exponent, 700.0)), PRIOR / (n + PRIOR)
    left = 1.0 - ratio * share
    return math.sqrt((ratio - 1.0) / left) if left > 0.0 else math.inf


def of_mean(n: int, mean: float, squares: float, *, alpha: float = SHOWN) -> Interval:
    """Return the interval of a mean.

    Args:
        squares: Σ of squares around the mean.
        alpha: probability that the interval is ever wrong.
    """
    if n < 1:
        return Interval(0.0, -1.0, 1.0)
    half = half_width(n, alpha) * math.sqrt((squares + PSEUDO) / n)
    # A difference of labels is between −1 and 1.
    return Interval(mean, max(mean - half, -1.0), min(mean + half, 1.0))


def of_correlation(n: int, value: float, *, alpha: float = SHOWN) -> Interval:
    """Return the interval of a correlation of n pairs, by Fisher's transformation: the transformed
    correlation has the standard deviation of a mean of n − 3 observations (Fisher 1921). The
    interval holds at every look while n grows (Waudby-Smith et al. 2021, arXiv:2103.06476).
    """
    half = half_width(n - 3, alpha)
    if math.isinf(half):
        return Interval(value, -1.0, 1.0)
    z = math.atanh(min(max(value, -0.999999), 0.999999))
    return Interval(value, math.tanh(z - half), math.tanh(z + half))
