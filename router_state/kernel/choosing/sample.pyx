"""The posterior sample: for every decision one draw of each model's expected reward.

A draw is made once the price of a dollar stands (Thompson 1933). So the probability of a choice,
given that price and what is known, is one over normal scores that are independent. An arm's level
is its expected reward on the traffic as it is; of the doubt about it the draw takes `LEVEL`
deviations. Of the rest, how the arm differs between prompts, it takes `FEATURES`: a wrong level is
wrong on every request, and d − 1 coefficients would drown it.
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
"""Deviations that a draw takes (drawn worlds, lab/docs/mechanisms.md: 0.5 to 0.7 and 0.2 to 0.3 do
not differ).
"""
cdef Real LATELY = 32.0
"""Contexts that the traffic's mean is about: a level is one of the prompts that come now."""
SAMPLE_PIECE = "\x1fdraw"
"""Name of the piece of state."""


cdef class PosteriorSample:
    """The variances that draws have, by arm, and the mean context that levels are of.

    Attributes:
        d, K: dimensions and arms.
        decided: decisions so far; left: those that the last measure of levels still serves.
        array: by arm, the variance that a draw of the level takes, over that of the rest (K); the
            mean variance of the rest, of late (K); then the mean context of late (d). `values` is
            what the kernel reads of it.
    """

    def __init__(self, d, journal):
        self.journal, self.d, self.K = journal, d, 0
        self.array = np.zeros(d)
        self.values = view(self.array)
        self.decided = self.left = 0

    def resize(self, K):
        """Reset for K arms; the mean context stays."""
        self.journal.pieces.add(SAMPLE_PIECE)
        center = self.array[2 * self.K :]
        self.K, self.left = K, 0
        self.array = np.concatenate([np.zeros(2 * K), center])
        self.values = view(self.array)

    cpdef Flag serve(self, x):
        """Take a decision's context x, shape (d,), into the mean; return whether the measured
        levels are still in use."""
        d: Index = self.d
        context: Floats = known(x, d)
        self.journal.pieces.add(SAMPLE_PIECE)
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
        """Return the variance of the k-th arm's draw for a request of xᵀVx = `variance`, and follow
        what is usual."""
        found: Real = FEATURES * FEATURES * noise * abs(variance) / decay
        usual: Real = self.values[self.K + k]
        self.values[self.K + k] = usual + (found - usual) / LATELY if usual > 0.0 else found
        return found + self.values[k]

    def deviations(self):
        """Return the usual deviation of each arm's draw, over the last decisions."""
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
