"""The pacer of budgets of a period: the dollar dual, whose budget per request is the money left ÷
the number of requests still to come.

Charges reduce the money left, so an overspending is paid back by all remaining requests, and no
other debt is needed.
"""

from __future__ import annotations

import math

import numpy as np

from router_state.arms import Arms
from router_state.changes import Journal
from router_state.choice import Choice
from router_state.config import Matrix
from router_state.kernel import Debt, Window
from router_state.pacing.dollar_dual import UNREACHABLE, DollarDual
from router_state.pacing.pacer import Pacer
from router_state.pacing.scoring import candidates
from router_state.periods.floor import Kept, Met, means_of, meet
from router_state.periods.ledger import LEAST_USD, Ledger

MOVED = 0.02
"""Relative change of the budget per request from which on λ_t is solved before the solution is
due.
"""
SHORT_BY = 0.005
"""Reward by which a floor may be missed without an alert: as much as one posterior sample
moves.
"""
SHORT_SOLUTIONS = 25
"""Solutions in a row that must miss the floor before the alert: 200 decisions."""


class PeriodDebt(Debt):
    """The debt against a budget per request that is declared beside budgets of a period.

    Attributes:
        most_usd: budget of a request that the periods allow, in dollars.
    """

    __slots__ = ("most_usd",)

    def __init__(self, most_usd: float) -> None:
        super().__init__()
        self.most_usd = most_usd

    def target(self, budget_usd: float, cheapest_usd: float) -> float:
        """See Debt; the target is at most what the periods allow."""
        return min(super().target(budget_usd, cheapest_usd), self.most_usd)


class PeriodDual(DollarDual):
    """The pacer of the money left in periods, or of the cost of a floor of rewards; see the
    module.

    Attributes:
        declared_usd: declared budget per request; None: the periods' budgets stand alone.
        ledger: the router's ledger.
        short: number of solutions in a row at which the budget did not meet the floor; not durable.
    """

    __slots__ = ("declared_usd", "ledger", "short")
    debt: PeriodDebt

    def __init__(self, ledger: Ledger, declared_usd: float | None, journal: Journal) -> None:
        """Start without a history."""
        self.ledger, self.declared_usd, self.short = ledger, declared_usd, 0
        super().__init__(self._budget(ledger.per_request_usd), journal)
        self.debt = PeriodDebt(self.budget_usd)

    def _budget(self, per_request_usd: float) -> float:
        """Return the least of the budgets per request that the periods, the declaration and the
        floor allow.
        """
        declared = math.inf if self.declared_usd is None else self.declared_usd
        floor = max(self.ledger.floor_usd, LEAST_USD)
        return min(per_request_usd, declared, floor)

    @classmethod
    def after(
        cls, before: Pacer, ledger: Ledger, declared_usd: float | None, journal: Journal
    ) -> PeriodDual:
        """Return the pacer of a router with budgets of a period: `before` if it has the right kind,
        else a new pacer with the contexts and the price of a dollar of `before`.
        """
        if (
            isinstance(before, PeriodDual)
            and before.ledger is ledger
            and (before.declared_usd is None) == (declared_usd is None)
        ):
            before.declared_usd = declared_usd
            return before
        found = cls(ledger, declared_usd, journal)
        if isinstance(before, DollarDual):
            price = before.lambda_t / before.budget_usd
            found.lambda_t = min(price * found.budget_usd, UNREACHABLE)
        return found

    def follows(self, before: Pacer) -> bool:
        """See Pacer."""
        return isinstance(before, DollarDual)

    def begin(self, choice: Choice) -> None:
        """See Pacer; the periods set the budget of a request."""
        self.pace(self.ledger.pace(choice.now, seq=choice.seq))

    def pace(self, per_request_usd: float) -> None:
        """Set the budget of a request from the periods. The price of a dollar stays until the next
        solution.
        """
        budget = self._budget(per_request_usd)
        self.debt.most_usd = budget
        if budget == self.budget_usd:
            return
        self.lambda_t = min(self.lambda_t * (budget / self.budget_usd), UNREACHABLE)
        self.budget_usd = budget
        if abs(budget - self.target_usd) > MOVED * self.target_usd:
            self.journal.jumped = True

    def solve(self, arms: Arms, window: Window, *, now: float) -> None:
        """See DollarDual; the cost of meeting a floor counts as one more budget."""
        ledger = self.ledger
        if not ledger.spending.has_floor:
            super().solve(arms, window, now=now)
            return
        scores, costs = candidates(window, arms).arrays()
        means = means_of(window, arms, scores)
        met = meet(ledger.spending, Kept(ledger.reward, ledger.best), scores, means, costs)
        ledger.floor_usd = met.usd
        self.pace(ledger.per_request_usd)
        super().solve(arms, window, now=now)
        won = (scores - self.per_dollar(1.0) * costs).argmax(1)
        self._compare(met, float(means[np.arange(len(won)), won].mean()), now=now)

    def _compare(self, met: Met, reward: float, *, now: float) -> None:
        """Raise one alert if the budget surely does not meet the floor."""
        self.short = self.short + 1 if met.floor - reward > SHORT_BY else 0
        if self.short != SHORT_SOLUTIONS:
            return
        needed = met.usd if met.floor - met.reward <= SHORT_BY else None
        evidence = {
            "floor": met.floor,
            "expected_reward": reward,
            "budget_usd_per_request": self.budget_usd,
            "needed_budget_usd_per_request": needed,
        } | self._needed(needed, now)
        self.journal.alert(
            "goals_contradict", met.floor - reward, evidence, now=now, direction="down"
        )

    def _needed(self, per_request_usd: float | None, now: float) -> dict[str, object]:
        """Return the alert's evidence about the budget that the tightest period would need."""
        standings = self.ledger.standings(now, seq=0)
        if per_request_usd is None or not standings:
            return {}
        tightest = min(standings, key=lambda one: one.per_request_usd)
        usd = tightest.account.charged_usd + per_request_usd * tightest.requests
        return {"period": tightest.accounts.name, "needed_budget_usd": usd}

    def _review(self, arms: Arms, window: Window, costs: Matrix, *, now: float) -> None:
        """See DollarDual. There is no alert if nothing is left, which has its own, or if a floor
        sets the budget, which can be reached.
        """
        if LEAST_USD < self.budget_usd < self.ledger.floor_usd:
            super()._review(arms, window, costs, now=now)

    def commit(self, expected_usd: float) -> None:
        """See Pacer."""
        if self.declared_usd is not None:
            self._charge(expected_usd - self.declared_usd)

    def settle(self, cost_usd: float, charged_usd: float, first: bool) -> None:
        """See Pacer."""
        if self.declared_usd is None:
            return
        difference = cost_usd - charged_usd
        if first:
            self.debt.note(difference, self.declared_usd)
        self._charge(difference)

    def _charge(self, usd: float) -> None:
        if self.debt.charge(usd, self.budget_usd):
            self.journal.jumped = True
