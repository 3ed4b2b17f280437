"""A sum from which anything can be taken off again: what floats round off is kept."""

from router_state.kernel.numbers.words cimport Real


cdef class Total:
    """A sum of dollars in twice a float's precision: a term of a million leaves no residue in what
    remains behind it.

    Knuth 1997, The Art of Computer Programming 2, 4.2.2, Theorem B.

    Attributes:
        usd: the sum, rounded; rest: what rounding has taken from it.
    """

    cpdef void add(self, Real usd):
        """Add a term, or take it off by its negative."""
        total: Real = self.usd + usd
        rest: Real = self.rest + rounded_off(self.usd, usd)
        self.usd = total + rest
        self.rest = rounded_off(total, rest)


cdef inline Real rounded_off(Real a, Real b) noexcept:
    """Return a + b less its float: exact, whichever is larger."""
    total: Real = a + b
    of_b: Real = total - a
    return (a - (total - of_b)) + (b - of_b)
