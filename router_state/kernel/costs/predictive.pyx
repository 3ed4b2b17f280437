"""The predictive distribution of a call's cost: zero with some probability, else lognormal.

Expected cost, exposure and comparison with the budget all use this distribution.
"""

from libc.math cimport sqrt

from typing import NamedTuple

from router_state.kernel.numbers.elementary cimport below, exp, log
from router_state.kernel.numbers.words cimport Real

MOST_LOG_VARIANCE = 2.0
"""Largest variance of a logarithm: the deviation of its lognormal is 2.5 times the mean."""
Z90 = 1.2816
"""Number of deviations below which a normal variable stays in nine of ten cases."""


def lognormal_mean(Real variance):
    """Return the mean of a lognormal whose logarithm has mean 0 and this variance."""
    return exp(0.5 * min(variance, MOST_LOG_VARIANCE))


def relative_variance(Real variance):
    """Return a lognormal's variance ÷ its squared mean, its logarithm having this variance."""
    return exp(min(variance, MOST_LOG_VARIANCE)) - 1.0


class Predictive(NamedTuple):
    """The predictive distribution of a call's cost in dollars, with the doubt of its mean.

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
    def deviation(self):
        """The standard deviation of one call's dollars, all doubt included."""
        spread: Real = 1.0 + relative_variance(self.level + self.noise)
        return self.mean * sqrt(max(spread / self.paid - 1.0, 0.0))

    def chance_below(self, Real usd):
        """Return the probability that a call costs less than `usd` on average."""
        if usd <= 0.0:
            return 0.0
        if self.mean <= 0.0:
            return 1.0
        # The mean of a lognormal is above its median by half its variance.
        gap: Real = log(usd / self.mean) + 0.5 * self.level
        variance: Real = self.level + self.calibration
        if variance <= 0.0:
            return 1.0 if gap > 0.0 else 0.0
        return below(gap / sqrt(variance))


# For Python, which does not see numbers of C.
globals().update(MOST_LOG_VARIANCE=MOST_LOG_VARIANCE, Z90=Z90)
