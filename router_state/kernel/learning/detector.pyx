"""The detector of a change: a two-sided cumulative sum of standardised residuals (Page 1954).

What residuals give away may be a new kind of prompts instead of a changed model. How far a prompt
is from those before it is its leverage xᵀVx; for rewards it counts in leverages of the bias.
"""

from libc.math cimport sqrt

from typing import NamedTuple

from router_state.kernel.learning.counts cimport GUESSED, MEMORY
from router_state.kernel.numbers.words cimport Flag, Index, Real

cdef Real CUT_AT = 4.0
"""Deviations at which a residual is cut: no single one may raise an alarm."""
cdef Real MOST_SHIFT = 4.0
"""Largest shift that a run is held to be of, in deviations: that of residuals at the cut."""
cdef Real LIMIT = 16.0
"""Log-likelihood ratio of an alarm, in nats: that of two residuals at the cut, each of which brings
half of its square (benchmarks.drift and drawn worlds count false alarms)."""
cdef Real DOUBTED = 4.0
"""Log-likelihood ratio of a run, in nats, that is hardly by chance: half of what the first residual
at the cut brings (benchmarks.drift)."""
cdef Real NOVEL = 4.0
"""Deviations of a mean that a run's mean leverage is above the usual one where its prompts are of a
new kind: chance alone gets there once in 30,000 runs."""
cdef Real LEVERAGE_CUT_AT = 4.0
"""Deviations at which a leverage is cut, so that prompts of a new kind do not stretch what is
usual."""
cdef Real LEVERAGES = 20.0
"""Leverages that the usual one is a mean of: it falls as the model is known better."""
cdef Real UNCUT = 3.0
"""First leverages that are not cut, as nothing else tells what is usual."""


class Shift(NamedTuple):
    """A change that was found: the mean residual `size` of the run that gave it away.

    Its `evidence` exceeded the limit after so many `residuals`, the first at time `since`. `novel`
    says that the run's prompts are of a new kind.
    """

    size: float
    evidence: float
    residuals: int
    since: float
    novel: bool


cdef class Side:
    """One side of the sum since it last was zero: residuals, and leverages of their prompts."""

    def __init__(self):
        self.evidence = self.total = self.since = self.leverage = 0.0
        self.count = 0

    cdef Flag take(self, Real z, Real sigma, Real residual, Real leverage, Real now):
        """Take a residual in, cut and standardised to z towards this side; tell whether that raises
        an alarm."""
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
    none. The mean of the run so far is taken for δ, at least 1 (Lorden and Pollak 2008). So two
    residuals alike that are far out give a shift away, and an ordinary one after an outlier clears
    it.

    Attributes:
        count: residuals so far; sigma: their running deviation.
        leverage, spread: mean and deviation of their prompts' leverages.
        up, down: the two sides.
    """

    def __init__(self):
        self.count = self.sigma = self.leverage = self.spread = 0.0
        self.up, self.down = Side(), Side()

    cpdef observe(self, Real residual, Real deviation, Real leverage, Real now):
        """Take one residual in; return the shift that it gives away, after which both sides start
        anew.

        Args:
            deviation: of residuals as far as those of all models tell, the least that is assumed.
            leverage: of its prompt.
        """
        sigma: Real = max(self.sigma, deviation)
        # Clipped, so that a change does not inflate the deviation that it is measured by.
        cut: Real = min(max(residual, -CUT_AT * sigma), CUT_AT * sigma)
        if self.up.take(cut / sigma, sigma, residual, leverage, now):
            return self._found(self.up)
        if self.down.take(-cut / sigma, sigma, residual, leverage, now):
            return self._found(self.down)
        if not self.doubts():
            self._note(cut, sigma, leverage)
        return None

    cdef Flag doubts(self):
        """Tell whether a run is at hand that is hardly by chance.

        Its residuals are taken into no deviation, so that a change does not stretch the yardstick
        that it is measured by.
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
