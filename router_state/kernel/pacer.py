"""The dollar dual as decisions and bills move it: λ_t, the debt, and the window of contexts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from router_state.kernel.debt import SAVED, Debt
from router_state.kernel.dual import FAR
from router_state.kernel.portfolio import Portfolio
from router_state.kernel.sample import EVERY
from router_state.kernel.window import PRICE_OF, Window
from router_state.kernel.words import Flag, Index, Real, ccall, cclass

if TYPE_CHECKING:
    from router_state.changes import Journal
    from router_state.config import Vector


@cclass
class DualPacer:
    """Paces spend by a penalty linear in expected dollars: λ_t·ê/B. A subclass solves for λ_t.

    Attributes:
        budget_usd: B, the dollars that a request may cost.
        lambda_t: dual variable, dimensionless: the reward that one budget's worth of dollars must
            earn.
        debt: dollars charged beyond the budget.
        target_usd: mean cost per request that λ_t was last solved for.
        unreachable: whether even the cheapest models cost more than the budget.
        window: the contexts to solve over.
    """

    journal: Journal
    budget_usd: float
    lambda_t: Real
    target_usd: Real
    unreachable: Flag
    debt: Debt
    window: Window

    def __init__(self, budget_usd: float, d: int, journal: Journal) -> None:
        """Start without a history; the first decision solves."""
        self.budget_usd, self.journal = budget_usd, journal
        self.window, self.debt = Window(d, journal), Debt()
        self.lambda_t = self.target_usd = 0.0
        self.unreachable = False
        journal.jumped = True

    def solve(self, arms: Portfolio, now: float) -> None:
        """Solve for λ_t."""
        raise NotImplementedError

    def weigh(
        self,
        arms: Portfolio,
        x: Vector,
        limited_to: frozenset[str] | None,
        seq: Index,
        now: Real,
    ) -> tuple[float, float, float]:
        """See Pacer; takes the context into the window, and solves again where something has
        jumped."""
        slot: Index = self.window.push(x, limited_to)
        if arms.tokens.in_use:
            arms.tokens.place(slot)
        caching = arms.caching
        if caching.latest is not None or caching.slots:
            caching.place(slot)
        # Solved again at the latest when levels were measured. In a short window every context
        # changes the solution.
        if self.journal.jumped or self.window.size < EVERY:
            self.solve(arms, now)
            self.journal.jumped = False
        return self.lambda_t, 0.0, self.per_dollar(PRICE_OF[slot])

    @ccall
    def per_dollar(self, multiple: Real) -> Real:
        """Return the price of a dollar in reward, for a request's own multiple of λ_t or for 1."""
        budget: Real = self.budget_usd
        return min(self.lambda_t * multiple / budget, FAR)

    @ccall
    def commit(self, expected_usd: Real) -> None:
        """See Pacer."""
        budget: Real = self.budget_usd
        self.charge(expected_usd - budget)

    @ccall
    def settle(self, cost_usd: Real, charged_usd: Real, first: Flag) -> None:
        """See Pacer."""
        difference: Real = cost_usd - charged_usd
        if first:
            self.debt.note(difference, self.budget_usd)
        self.charge(difference)

    @ccall
    def charge(self, usd: Real) -> None:
        """Add to the debt; a change by several budgets makes λ_t be solved before the next
        decision."""
        budget: Real = self.budget_usd
        self.debt.usd += usd
        if abs(usd) > SAVED * budget:
            self.journal.jumped = True
