"""A sum from which anything can be taken off again: what floats round off is kept."""

from __future__ import annotations

from router_state.kernel.numbers.words import Real, ccall, cclass, cfunc


@cclass
class Total:
    """A sum of dollars in twice a float's precision: a term of a million leaves no residue in what
    remains behind it.

    Knuth 1997, The Art of Computer Programming 2, 4.2.2, Theorem B.

    Attributes:
        usd: the sum, rounded; rest: what rounding has taken from it.
    """

    usd: Real
    rest: Real

    def __init__(self) -> None:
        self.usd = self.rest = 0.0

    @ccall
    def add(self, usd: Real) -> None:
        """Add a term, or take it off by its negative."""
        total: Real = self.usd + usd
        rest: Real = self.rest + rounded_off(self.usd, usd)
        self.usd = total + rest
        self.rest = rounded_off(total, rest)


@cfunc
def rounded_off(a: Real, b: Real) -> Real:
    """Return a + b less its float: exact, whichever is larger."""
    total: Real = a + b
    of_b: Real = total - a
    return (a - (total - of_b)) + (b - of_b)
