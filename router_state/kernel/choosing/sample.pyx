"""The posterior sample: for every decision one draw of each model's expected reward.

A draw is made once the price of a dollar stands (Thompson 1933). Given that price, scores are
independent normal variables, so the probability of a choice can be computed. An arm's level is its
expected reward on present traffic; the draw takes `LEVEL` deviations of the level. The rest is how
the arm's reward differs between prompts; the draw takes `FEATURES` deviations of it. A wrong level
is wrong on every request, and the doubt of d − 1 coefficients would drown that of the level.
"""

from libc.math cimport sqrt

import numpy as np
import struct

from ground.refusing import DamagedState
from router_state.kernel.learning.regression cimport (
    Regression, multiply, room_of_products, spread_at,
)
from router_state.kernel.numbers.words cimport Flag, Floats, Index, Real, known, of_block, view

cdef Real LEVEL = 0.6
cdef Real FEATURES = 0.2
"""Deviations that a draw takes of the level and of the rest. Levels of 0.5 to 0.7, and features of
0.2 to 0.3, do not differ (drawn worlds, lab/docs/mechanisms.md).
"""
cdef Real LATELY = 32.0
"""Effective number of contexts behind the traffic's mean context, at which levels are measured."""
SAMPLE_PIECE = "\x1fdraw"
"""Name of the piece of state."""


cdef class PosteriorSample:
    """The variances of draws, by arm, and the mean context at which levels are measured.

    Attributes:
        d, K: numbers of dimensions and of arms.
        decided: decisions so far; left: decisions that
        the last measure of levels still serves.
        array: by arm, the variance of the level's draw ÷
        that of the rest's draw (K); the recent mean of the rest's variance (K); then the recent
        mean context (d). `values` is the kernel's view of it.
    """

    def __init__(self, d, journal):
        self.journal, self.pieces, self.d, self.K = journal, journal.pieces, d, 0
        self.array = np.zeros(d)
        self.values = view(self.array)
        self.decided = self.left = 0

    def resize(self, K):
        """Reset for K arms; the mean context stays."""
        self.pieces.add(SAMPLE_PIECE)
        center = self.array[2 * self.K :]
        self.K, self.left = K, 0
        self.array = np.concatenate([np.zeros(2 * K), center])
        self.values = view(self.array)

    cpdef Flag serve(self, x):
        """Add a decision's context x, shape (d,), to the mean; return whether the measured levels
        may still be used.
        """
        d: Index = self.d
        context: Floats = known(x, d)
        self.pieces.add(SAMPLE_PIECE)
        self.decided += 1
        count: Real = self.decided
        count = min(count, LATELY)
        center: Index = 2 * self.K
        for i in range(d):
            self.values[center + i] += (context[i] - self.values[center + i]) / count
        if self.left > 0 and self.decided > EVERY:
            self.left -= 1
            return True
        return False

    def measure(self, regressions, *, Real noise, Flag free):
        """Measure the variances of levels again; λ_t is then solved again.

        Args:
            noise: σ²; the regressions' inverses are covariances in units of it.
            free: whether the price of a dollar has lately been 0; then a draw takes the whole
                deviation of a level.
        """
        d, K, values = self.d, self.K, self.values
        if len(regressions) != K:
            raise ValueError(f"{len(regressions)} regressions do not match {K} arms")
        one: Regression
        share: Real = 1.0 if free else LEVEL
        self.left = EVERY - 1
        held = room_of_products(d)
        space: Floats = of_block(held)
        for i in range(d):
            space[i] = values[2 * K + i]
        multiply(space, d)
        for k in range(K):
            one = regressions[k]
            if one.d != d:
                raise ValueError(f"a regression of {one.d} dimensions is not of {d}")
            variance: Real = spread_at(one, space) * noise / one.decay
            values[k] = (share * share - FEATURES * FEATURES) * abs(variance)
        self.journal.jumped = True

    cdef Real spread(self, Index k, Real variance, Real noise, Real decay):
        """Return the variance of the k-th arm's draw for a request with xᵀVx = `variance`, and
        update the recent mean.
        """
        found: Real = FEATURES * FEATURES * noise * abs(variance) / decay
        usual: Real = self.values[self.K + k]
        self.values[self.K + k] = usual + (found - usual) / LATELY if usual > 0.0 else found
        return found + self.values[k]

    def deviations(self):
        """Return the mean deviation of each arm's draw over the last decisions."""
        return [sqrt(self.values[k] + self.values[self.K + k]) for k in range(self.K)]

    def pack(self):
        """Return its bytes."""
        counts = struct.pack("<2d", self.decided, self.left)
        return self.array.astype("<f8", copy=False).tobytes() + counts

    def unpack(self, bytes data, K):
        """Invert `pack`. Raises DamagedState."""
        size = 2 * K + self.d
        if len(data) != 8 * (size + 2):
            raise DamagedState(f"a sample has {len(data)} bytes, not {8 * (size + 2)}")
        values = np.frombuffer(data, "<f8")
        if not (np.isfinite(values).all() and (np.abs(values[size:]) < 2.0**53).all()):
            raise DamagedState("a sample is not finite, or counts what can't be counted")
        self.K, self.array = K, values[:size].astype(np.float64)
        self.values = view(self.array)
        self.decided, self.left = int(values[size]), int(values[size + 1])


# For Python, which does not see numbers of C.
globals().update(LEVEL=LEVEL, EVERY=EVERY, FEATURES=FEATURES, LATELY=LATELY)
