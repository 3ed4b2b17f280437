"""The debt: dollars charged beyond the budget, and the target that pays them back.

A decision charges its expected cost; its bill charges the difference. So the debt includes calls
in flight. Bills scatter, and scatter cancels in the mean. Only a debt beyond this scatter is paid
back: with n requests of deviation s, chance alone moves the debt D by √n·s, so

    p = D·D²/(D² + n·s²)/n,    target = B − p,    target = B − p·S/√(p² + S²) where p > 0,

where S is the part of the budget that the cheapest models would save. The factor keeps a large
debt from taking all money for better models.
"""

from libc.math cimport sqrt

from router_state.kernel.learning.counts cimport GUESSED, MEMORY
from router_state.kernel.numbers.words cimport Flag, Real

cdef Real HORIZON = 100.0
"""Number n of requests over which a debt is paid back and chance is measured; from 50 to 200 it
makes no difference (lab/docs).
"""
cdef Real SAVED = 25.0
"""Most savings, in budgets of a request: a quarter of a horizon. Spent within a thousand requests
they are 2.5 % of the budget. Another 2.5 % is left for prompts that turn out dearer than expected
(benchmarks.elsewhere, in turn).
"""
cdef Real JUMP = 25.0
"""Least charge that is a jump and not scatter, in budgets of a request: λ_t is solved before the
next decision.
"""
cdef Real MOST_AWAY = 25.0
"""Budgets of a request at which a settlement is cut in the scatter: a larger difference is not
chance.
"""


cdef class Debt:
    """Dollars charged less the budget of every decision.

    Attributes:
        usd: the debt; below 0: what was saved.
        scatter: mean square of a settlement (bill − expectation), in dollars²; its first guess is
            the square of one budget, −1 stands for no settlement yet.
        settled: number of settlements behind `scatter`.
    """

    def __init__(self, Real usd=0.0, Real scatter=-1.0, Real settled=0.0):
        self.usd, self.scatter, self.settled = usd, scatter, settled

    cpdef Flag charge(self, Real usd, Real budget_usd):
        """Add dollars to the debt; return whether they are a jump."""
        self.usd += usd
        return abs(usd) > JUMP * budget_usd

    cpdef void note(self, Real difference_usd, Real budget_usd):
        """Update the scatter with a bill's difference from its expectation."""
        away: Real = min(abs(difference_usd), MOST_AWAY * budget_usd)
        if self.settled < MEMORY:
            self.settled += 1.0
        before: Real = self._scatter(budget_usd)
        self.scatter = before + (away * away - before) / (GUESSED + self.settled)

    cpdef Flag settle(self, Real difference_usd, Real budget_usd, Flag first):
        """Add a bill's difference from what was charged before, and to the scatter if it is the
        request's first bill; return as `charge`.
        """
        if first:
            self.note(difference_usd, budget_usd)
        return self.charge(difference_usd, budget_usd)

    cdef Real _scatter(self, Real budget_usd):
        return self.scatter if self.scatter >= 0.0 else budget_usd * budget_usd

    def target(self, Real budget_usd, Real cheapest_usd):
        """Return the target: the mean cost of a request, in dollars, that pays the debt back.

        Args:
            cheapest_usd: expected cost of a request at its cheapest model.
        """
        square: Real = self.usd * self.usd
        chance: Real = HORIZON * self._scatter(budget_usd)
        # Both squares may underflow to 0.
        if square + chance <= 0.0:
            return budget_usd
        paid: Real = self.usd / HORIZON * square / (square + chance)
        if paid > 0.0:
            saved: Real = max(budget_usd - cheapest_usd, 0.0)
            if saved <= 0.0:
                return budget_usd
            share: Real = paid / saved
            paid /= sqrt(1.0 + share * share)
        return budget_usd - paid

    def bound(self, Real budget_usd):
        """Drop savings beyond `SAVED` budgets, which would be overspent within a thousand
        requests."""
        self.usd = max(self.usd, -SAVED * budget_usd)


# For Python, which does not see numbers of C.
globals().update(HORIZON=HORIZON, SAVED=SAVED)
