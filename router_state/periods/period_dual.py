"""The pacer of budgets of a period: the dollar dual, whose budget per request is what is left of the
period ÷ the requests that are still to come.

What a request is charged shortens what is left, so a period contains its own debt: an overspending
is paid back by all requests that are still to come, and there is no other debt beside it.
"""

from __future__ import annotations

from router_state.arms import Arms
from router_state.journal import Journal
from router_state.pacing.debt import Debt
from router_state.pacing.dollar_dual import EVERY, UNREACHABLE, DollarDual
from router_state.periods.ledger import LEAST_USD

MOVED = 0.02
"""Share by which what a request may cost must change for λ_t to be solved before it is due."""


class PeriodDebt(Debt):
    """A debt towards a budget per request, where there is one beside those of a period.

    Attributes:
        most_usd: what a request may cost by the period.
    """

    __slots__ = ("most_usd",)

    def __init__(self, most_usd: float) -> None:
        super().__init__()
        self.most_usd = most_usd

    def target(self, budget_usd: float, cheapest_usd: float) -> float:
        """See Debt; no more than the period allows."""
        return min(super().target(budget_usd, cheapest_usd), self.most_usd)


class PeriodDual(DollarDual):
    """Paces what is left of periods; see the module.

    Attributes:
        declared_usd: budget per request as declared, None: there is none beside the periods'.
    """

    __slots__ = ("declared_usd",)
    debt: PeriodDebt

    def __init__(
        self, declared_usd: float | None, per_request_usd: float, d: int, journal: Journal
    ) -> None:
        """Start without a history; `per_request_usd` is what the last request might cost."""
        super().__init__(_tighter(per_request_usd, declared_usd), d, journal)
        self.declared_usd, self.debt = declared_usd, PeriodDebt(per_request_usd)

    def go_on(self, before: DollarDual) -> None:
        """Take over the contexts, and the price of a dollar, of what paced before."""
        self.window = before.window
        self.lambda_t = min(before.lambda_t * self.budget_usd / before.budget_usd, UNREACHABLE)

    def pace(self, per_request_usd: float) -> None:
        """Let a request cost so much by the periods. The price of a dollar stays until it is solved
        anew."""
        self.debt.most_usd = per_request_usd
        budget = _tighter(per_request_usd, self.declared_usd)
        if budget == self.budget_usd:
            return
        self.lambda_t = min(self.lambda_t * (budget / self.budget_usd), UNREACHABLE)
        self.budget_usd = budget
        if abs(budget - self.target_usd) > MOVED * self.target_usd:
            self.stale = EVERY

    def _review(self, arms: Arms, costs: object, *, now: float) -> None:
        """See DollarDual; that nothing is left has an alert of its own."""
        if self.budget_usd > LEAST_USD:
            super()._review(arms, costs, now=now)  # type: ignore[arg-type]  # passed on

    def commit(self, expected_usd: float) -> None:
        """See Pacer."""
        if self.declared_usd is not None:
            self._charge(expected_usd - self.declared_usd)

    def settle(self, cost_usd: float, *, charged_usd: float, first: bool) -> None:
        """See Pacer."""
        if self.declared_usd is None:
            return
        difference = cost_usd - charged_usd
        if first:
            self.debt.note(difference, budget_usd=self.declared_usd)
        self._charge(difference)


def _tighter(per_request_usd: float, declared_usd: float | None) -> float:
    return per_request_usd if declared_usd is None else min(per_request_usd, declared_usd)
