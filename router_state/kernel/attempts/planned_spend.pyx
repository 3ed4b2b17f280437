"""The spend of requests that may have plans, compared with the expectation of the dollar dual.

A solution lets every request of the window have its best plan. Fewer plans are made: draws count
for half where plans are compared, verdicts are assumed to tell little, and a limit of money may
rule out a second call. So requests cost more or less than the solution says. That ratio is learned,
and λ_t is solved for the target divided by this ratio. All dollars are in budgets of a request.
"""

from libc.math cimport isfinite

from router_state.kernel.numbers.words cimport Index, Real
from router_state.kernel.pacing.debt import HORIZON as _HORIZON
from router_state.kernel.pacing.window import WINDOW as _WINDOW

cdef Real HORIZON = _HORIZON
cdef Index WINDOW = _WINDOW
cdef Real REMEMBERED = 5.0 * HORIZON
"""Requests after which older ones fade; `HORIZON` requests with the expected cost are assumed
before them."""
cdef Real MOST_FACTOR = 2.0
"""Largest factor between the cost of requests and the expected cost that is believed."""


cdef class PlannedSpend:
    """The charges of requests since the first solution, and the costs that solutions expected.

    Attributes:
        charged, expected: sums over the last requests.
        mean: mean cost of a request in the last solution; 0: there is none.
        debt: the debt at the last solution; slot: the slot of the window that came next.
    """

    def __init__(self, Real charged=0.0, Real expected=0.0, Real mean=0.0, Real debt=0.0, Index slot=0):
        self.charged, self.expected, self.mean = charged, expected, mean
        self.debt, self.slot = debt, slot

    @property
    def numbers(self):
        """The numbers of which the constructor makes the same sums."""
        return self.charged, self.expected, self.mean, self.debt, self.slot

    cpdef Real share(self):
        """Return the cost of requests as a share of the cost that solutions expect."""
        found: Real = (HORIZON + self.charged) / (HORIZON + self.expected)
        return min(max(found, 1.0 / MOST_FACTOR), MOST_FACTOR)

    cpdef void count(self, Real debt, Index slot):
        """Count the requests since the last solution. The debt has grown by what these requests and
        the bills since were charged, less one budget for each request.
        """
        n: Index = (slot - self.slot) % WINDOW
        if self.mean > 0.0 and n:
            fades: Real = 1.0 - n / REMEMBERED
            self.charged = max(fades * self.charged + debt - self.debt + n, 0.0)
            self.expected = fades * self.expected + n * self.mean

    cpdef void solved(self, Real mean, Real debt, Index slot):
        """Note a solution."""
        self.mean, self.debt, self.slot = mean, debt, slot

    @property
    def is_sound(self):
        """Whether the sums are possible."""
        counts = min(self.charged, self.expected, self.mean) >= 0.0 and 0 <= self.slot < WINDOW
        sums = isfinite(self.charged) and isfinite(self.expected)
        return bool(counts and sums and isfinite(self.mean) and isfinite(self.debt))


# For Python, which does not see numbers of C.
globals().update(MOST_FACTOR=MOST_FACTOR, REMEMBERED=REMEMBERED)
