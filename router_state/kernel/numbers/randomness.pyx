"""The router's random generator: a mixed counter (SplitMix64: Steele, Lea and Flood 2014).

Its whole state is one number of 64 bits, which is cheap to pack, and its draws are equal to the bit
on every machine.
"""

from libc.math cimport sqrt

from router_state.kernel.numbers.elementary cimport log
from router_state.kernel.numbers.words cimport Floats, Index, Real, Word, of_block, scratch

cdef Word STEP = 0x9E3779B97F4A7C15
cdef Word FIRST_MIX = 0xBF58476D1CE4E5B9
cdef Word SECOND_MIX = 0x94D049BB133111EB
"""Step of the counter and multipliers of the mix, from the paper."""
cdef Real TO_ONE = 1.0 / 9007199254740992.0
"""2⁻⁵³, which scales 53 bits to [0, 1)."""


cdef class Chance:
    """A stream of random numbers; `state` is its whole state."""

    def __init__(self, seed=0):
        self.state = seed & 0xFFFFFFFFFFFFFFFF

    def random(self):
        """Return a number from [0, 1)."""
        return self.next()

    def integers(self, Index n):
        """Return a whole number below n, n ≥ 1."""
        if n < 1:
            raise ValueError(f"n must be at least 1, not {n}")
        return min(int(self.next() * n), n - 1)

    def standard_normal(self, Index n):
        """Return n draws of the standard normal distribution."""
        held = scratch(n)
        space: Floats = of_block(held)
        self.normals(space, 0, n)
        return [space[i] for i in range(n)]

    cdef Real next(self):
        """Return a number from [0, 1)."""
        self.state = self.state + STEP
        z: Word = self.state
        z = (z ^ (z >> 30)) * FIRST_MIX
        z = (z ^ (z >> 27)) * SECOND_MIX
        z = z ^ (z >> 31)
        return (z >> 11) * TO_ONE

    cdef void normals(self, Floats found, Index at, Index n):
        """Write n draws of the standard normal distribution (polar method: Marsaglia and Bray
        1964)."""
        for i in range(0, n, 2):
            square = 2.0
            # A miss has a probability of 0.21, so 64 in a row do not happen.
            for _ in range(64):
                a: Real = 2.0 * self.next() - 1.0
                b: Real = 2.0 * self.next() - 1.0
                square = a * a + b * b
                if 0.0 < square < 1.0:
                    break
            scale: Real = sqrt(-2.0 * log(square) / square) if 0.0 < square < 1.0 else 0.0
            found[at + i] = a * scale
            if i + 1 < n:
                found[at + i + 1] = b * scale
