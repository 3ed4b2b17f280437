"""The debt: dollars charged beyond the budget, and the target that pays them back.

A decision charges its expected cost, a bill the difference to that. So the debt knows what is in
flight. Bills scatter: what one of them takes the next ones give back. Only what is more than that
scatter explains is paid back: with n requests of deviation s, chance alone moves the debt D by
√n·s, and

    target = B − D·D²/(D² + n·s²)/n.
"""

from __future__ import annotations

from dataclasses import dataclass

HORIZON = 100.0
"""Requests over which a debt is paid back, and over which chance is counted; from 50 to 200 it
makes no difference (docs/lab)."""
MEMORY = 1000.0
"""Settlements over which the scatter of bills is taken."""
FIRST_SCATTER = 1.0
"""Deviation of a bill around its expectation before any has come, in budgets."""
MOST_SQUARE = 400.0
"""Largest square of one settlement in that scatter, in squared budgets: a bill that is twenty
budgets off is no matter of chance."""
MOST = 2.0
"""Largest target while savings are spent, in budgets."""
SAVED = 25.0
"""Budgets that may be saved: spent within a thousand requests they are half of 5 %, the other half
is for prompts that turn out dearer than expected (benchmarks.elsewhere, in turn)."""
OVERDUE = 200.0
"""Requests of nothing but the cheapest models within which a debt should be paid back."""
CREDIT_KEPT = 0.8
"""Share of what was saved that one solution at which the budget does not bind keeps: a price that
comes back is met soon, and one draw that sees nothing worth its price is no reason to give the
money up."""


@dataclass(slots=True)
class Debt:
    """Dollars charged less the budget of every decision.

    Attributes:
        usd: the debt; below 0: what was saved.
        scatter: mean square of a settlement (bill − expectation), in dollars².
        settled: settlements behind it.
    """

    usd: float = 0.0
    scatter: float = -1.0
    settled: float = 5.0

    def note(self, difference_usd: float, *, budget_usd: float) -> None:
        """Take into the scatter by how much a bill differs from its expectation."""
        square = min(difference_usd**2, MOST_SQUARE * budget_usd**2)
        self.settled = min(self.settled + 1.0, MEMORY)
        self.scatter = self._scatter(budget_usd)
        self.scatter += (square - self.scatter) / self.settled

    def _scatter(self, budget_usd: float) -> float:
        return self.scatter if self.scatter >= 0.0 else (FIRST_SCATTER * budget_usd) ** 2

    def target(self, budget_usd: float, cheapest_usd: float) -> float:
        """Return what a request may cost on average.

        However large the debt is, the target leaves some of what the cheapest models could save:
        where the budget is hardly above them, a debt would take thousands of requests, in which
        every request would be answered worse to save next to nothing.

        Args:
            cheapest_usd: expected cost of a request at its cheapest model.
        """
        owed = self.usd
        if owed == 0.0:
            return budget_usd
        chance = HORIZON * self._scatter(budget_usd)
        square = owed * owed
        # Both may be too small for a floating-point number.
        paid = owed / HORIZON * (square / (square + chance) if square + chance > 0.0 else 0.0)
        if owed < 0.0:
            return min(budget_usd - paid, MOST * budget_usd)
        saved = max(budget_usd - cheapest_usd, 0.0)
        bearable = 1.0 - 0.5 * owed / (owed + OVERDUE * saved) if saved > 0.0 else 0.0
        return budget_usd - min(paid, bearable * saved)

    def bound(self, budget_usd: float, *, binds: bool) -> None:
        """Give up what was saved beyond `SAVED` budgets: it would be overspent within a thousand
        requests; and some of it at each solution at which the budget does not bind."""
        if self.usd < 0.0:
            kept = 1.0 if binds else CREDIT_KEPT
            self.usd = max(self.usd * kept, -SAVED * budget_usd)
