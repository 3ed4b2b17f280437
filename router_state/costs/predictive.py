"""The predictive distribution of a call's cost: zero with some probability, else lognormal.

Every question about money asks it: what is expected, what may be at stake, is this surely above the
budget.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from router_state.learning.shared_prior import MOST_LOG_VARIANCE

Z90 = 1.2816
"""Deviations of a normal distribution that nine values in ten stay below."""


class Predictive(NamedTuple):
    """What a call of one model will cost, in dollars, and how well that is known.

    Attributes:
        mean: expected dollars of one call, calls that cost nothing included.
        level: posterior variance of the logarithm of that mean.
        calibration: relative variance of the mean of the bills behind it.
        noise: variance of the logarithm of one bill around its expectation.
        paid: probability that a call costs anything.
    """

    mean: float
    level: float
    calibration: float
    noise: float
    paid: float

    @property
    def deviation(self) -> float:
        """The standard deviation of one call's dollars, all doubt included."""
        spread = math.exp(min(self.level + self.noise, MOST_LOG_VARIANCE))
        return self.mean * math.sqrt(max(spread / self.paid - 1.0, 0.0))

    @property
    def at_risk(self) -> float:
        """Dollars by which the mean may be above its expectation, in nine of ten cases."""
        return self.mean * math.expm1(Z90 * math.sqrt(self.level))

    def chance_below(self, usd: float) -> float:
        """Return the probability that a call costs less than `usd` on average."""
        if usd <= 0.0:
            return 0.0
        if self.mean <= 0.0:
            return 1.0
        # The mean of a lognormal is above its median by half its variance.
        gap = math.log(usd / self.mean) + 0.5 * self.level
        variance = self.level + self.calibration
        if variance <= 0.0:
            return 1.0 if gap > 0.0 else 0.0
        return 0.5 * math.erfc(-gap / math.sqrt(2.0 * variance))
