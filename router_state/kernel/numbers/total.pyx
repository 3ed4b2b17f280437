"""A sum from which a term can be subtracted again without residue: the rounding of floats is
kept.
"""

from router_state.kernel.numbers.words cimport Real


cdef class Total:
    """A sum of dollars in twice a float's precision: a term of a million that is added and
    subtracted leaves no residue.

    Knuth 1997, The Art of Computer Programming 2, 4.2.2, Theorem B.

    Attributes:
        usd: the rounded sum; rest: the exact sum less `usd`.
    """

    cpdef void add(self, Real usd):
        """Add a term; a negative term is subtracted."""
        total: Real = self.usd + usd
        rest: Real = self.rest + rounded_off(self.usd, usd)
        self.usd = total + rest
        self.rest = rounded_off(total, rest)


cdef inline Real rounded_off(Real a, Real b) noexcept:
    """Return the rounding error of a + b: exact, whichever of the two is larger."""
    total: Real = a + b
    of_b: Real = total - a
    return (a - (total - of_b)) + (b - of_b)
