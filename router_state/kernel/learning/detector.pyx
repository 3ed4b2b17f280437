"""The detector of a change: a two-sided cumulative sum of standardised residuals (Page 1954).

A shift of residuals may come from a new kind of prompts instead of a changed model. The distance
of a prompt from earlier ones is its leverage xᵀVx; for rewards it is measured in units of the
bias's leverage.
"""

from libc.math cimport sqrt

from typing import NamedTuple

from router_state.kernel.learning.counts cimport GUESSED, MEMORY
from router_state.kernel.numbers.words cimport Flag, Real

cdef Real CUT_AT = 4.0
"""Deviations at which a residual is cut, so that no single residual raises an alarm."""
cdef Real MOST_SHIFT = 4.0
"""Largest shift that a run is tested for, in deviations: that of residuals at the cut."""
cdef Real LIMIT = 16.0
"""Log-likelihood ratio of an alarm, in nats: that of two residuals at the cut, each of which brings
half of its square (benchmarks.drift and drawn worlds count false alarms)."""
cdef Real DOUBTED = 4.0
"""Log-likelihood ratio of a run, in nats, that hardly comes by chance: half of what the first
residual at the cut brings (benchmarks.drift).
"""
cdef Real NOVEL = 4.0
"""Deviations by which the mean leverage of a run exceeds the usual leverage if its prompts are of
a new kind. Chance alone exceeds them once in 30,000 runs.
"""
cdef Real LEVERAGE_CUT_AT = 4.0
"""Deviations at which a leverage is cut, so that prompts of a new kind do not stretch the usual
leverage.
"""
cdef Real LEVERAGES = 20.0
"""Number of leverages in the mean that is the usual leverage. A short mean follows the fall of
leverages as the model is known better.
"""
cdef Real UNCUT = 3.0
"""Number of first leverages that are not cut, as there is no usual leverage yet."""


class Shift(NamedTuple):
    """A detected change: `size` is the mean residual of the run that revealed it.

    `evidence` exceeded the limit after `residuals` residuals, the first of which came at time
    `since`. `novel`: the run's prompts are of a new kind.
    """

    size: float
    evidence: float
    residuals: int
    since: float
    novel: bool


cdef class Side:
    """One side of the sum: residuals since the sum last was zero, and leverages of their
    prompts.
    """

    def __init__(self):
        self.evidence = self.total = self.since = self.leverage = 0.0
        self.count = 0

    cdef Flag take(self, Real z, Real sigma, Real residual, Real leverage, Real now):
        """Add a residual, cut and standardised to z towards this side; tell whether the sum raises
        an alarm.
        """
        size: Real = 1.0
        if self.count:
            size = min(max(abs(self.total) / (self.count * sigma), 1.0), MOST_SHIFT)
        evidence: Real = self.evidence + size * z - size * size / 2.0
        if evidence <= 0.0:
            if self.count:
                self.evidence = self.total = self.leverage = 0.0
                self.count = 0
            return False
        if self.count == 0:
            self.since = now
        self.evidence = evidence
        self.count += 1
        self.total += residual
        self.leverage += leverage
        return evidence > LIMIT


cdef class Detector:
    """A two-sided CUSUM of residuals, each standardised by a running deviation and clipped at four
    deviations.

    A residual z counts as the log-likelihood ratio δz − δ²/2 of a shift by δ deviations against
    none. δ is the mean of the run so far, at least 1 (Lorden and Pollak 2008). So two equal
    residuals far out reveal a shift, and an ordinary residual after an outlier clears the sum.

    Attributes:
        count: number of residuals so far; sigma: their running deviation.
        leverage, spread: mean and deviation of their prompts' leverages.
        up, down: the two sides.
    """

    def __init__(self):
        self.count = self.sigma = self.leverage = self.spread = 0.0
        self.up, self.down = Side(), Side()

    cpdef observe(self, Real residual, Real deviation, Real leverage, Real now):
        """Add one residual; return the shift that it reveals, after which both sides start anew.

        Args:
            deviation: deviation of residuals over all models, the least that is assumed.
            leverage: leverage of the residual's prompt.
        """
        sigma: Real = max(self.sigma, deviation)
        # The residual is clipped, so that a change does not inflate the deviation that measures
        # it.
        cut: Real = min(max(residual, -CUT_AT * sigma), CUT_AT * sigma)
        if self.up.take(cut / sigma, sigma, residual, leverage, now):
            return self._found(self.up)
        if self.down.take(-cut / sigma, sigma, residual, leverage, now):
            return self._found(self.down)
        if not self.doubts():
            self._note(cut, sigma, leverage)
        return None

    cdef Flag doubts(self):
        """Tell whether the present run hardly comes by chance.

        The residuals of such a run enter no deviation, so that a change does not stretch the
        yardstick that measures it.
        """
        return max(self.up.evidence, self.down.evidence) > DOUBTED

    cdef _found(self, Side run):
        count: Real = run.count
        beyond: Real = run.leverage / count - self.leverage
        novel = bool(beyond * sqrt(count) > NOVEL * self.spread)
        self.up, self.down = Side(), Side()
        return Shift(run.total / count, run.evidence, run.count, run.since, novel)

    cdef void _note(self, Real residual, Real sigma, Real leverage):
        """Update the running deviation and the usual leverage."""
        count: Real = min(self.count + 1.0, MEMORY)
        square: Real = sigma * sigma
        self.count = count
        self.sigma = sqrt(square + (residual * residual - square) / (GUESSED + count))
        away: Real = leverage - self.leverage
        spread: Real = self.spread
        if count > UNCUT:
            away = min(max(away, -LEVERAGE_CUT_AT * spread), LEVERAGE_CUT_AT * spread)
        count = min(count, LEVERAGES)
        self.leverage += away / count
        square = spread * spread
        self.spread = sqrt(square + (away * away - square) / count)


# For Python, which does not see numbers of C.
globals().update(CUT_AT=CUT_AT, LIMIT=LIMIT)
