"""Find new models that the budget can't pay to try, and tell the operator which budget would."""

from __future__ import annotations

from dataclasses import dataclass, field

from router_state.arms import Arms
from router_state.changes import Journal
from router_state.kernel import EVERY, WINDOW, Arm, Candidates

PATIENCE = WINDOW // EVERY
"""Number of solutions of λ_t in a row that must agree: as many as renew the whole window. λ_t is
high for a while after every debt, but a debt is paid back sooner (`HORIZON`).
"""
LOSS = 0.02
"""Mean loss per request that trying may cost: in reward, dollars included at their price
(lab/docs), or in budgets where dollars have no price.
"""
FEW_BILLS = 40.0
"""Number of bills with which a model stops being a newcomer."""
TRIAL = 0.02
"""Share of requests that would go to a newcomer under the budget that the alert names. Trying
gives this share to an arm whose gap to the best is 1, the largest reward.
"""


@dataclass(frozen=True, slots=True)
class Unaffordable:
    """A newcomer that would not be worth its price at this budget even if each of its answers had
    reward 1.

    Attributes:
        expected_cost_usd: expected cost of one call.
        needed_budget_usd: budget per request with which 20 of the next 1,000 requests can go to the
            newcomer, if nothing else changes.
    """

    model: str
    expected_cost_usd: float
    needed_budget_usd: float


@dataclass(slots=True)
class Newcomers:
    """The check, every few decisions, whether new models can be paid for; its state is not
    durable.
    """

    found: dict[str, Unaffordable] = field(default_factory=dict)
    _looks: dict[str, int] = field(default_factory=dict)

    def look(
        self,
        arms: Arms,
        seen: Candidates,
        k: int,
        *,
        budget: float,
        now: float,
        journal: Journal,
    ) -> None:
        """Note the newcomers that the budget per request can't pay for, after a decision for the
        k-th arm; raise an alert once enough decisions agree.
        """
        # Even with the largest possible reward these would score below the chosen arm.
        hopeless = [arms.all[j] for j in arms.hopeless(seen, k, budget, FEW_BILLS)]
        if not (hopeless or self._looks):
            return
        # A newcomer that has a place now is counted from 0 if it loses that place again.
        self._looks = {arm.name: self._looks.get(arm.name, 0) + 1 for arm in hopeless}
        self.found = {name: one for name, one in self.found.items() if name in self._looks}
        for arm in hopeless:
            if self._looks[arm.name] >= PATIENCE:
                cost_usd = seen.cost_usd(arms.row[arm.name])
                self._alert(arm, cost_usd, budget=budget, now=now, journal=journal)

    def _alert(
        self, arm: Arm, cost_usd: float, *, budget: float, now: float, journal: Journal
    ) -> None:
        news = arm.name not in self.found
        # Calls of the newcomer replace others that cost a budget each, so only the difference
        # counts.
        needed = budget + (cost_usd - budget) * TRIAL
        self.found[arm.name] = Unaffordable(arm.name, cost_usd, needed)
        if news:
            evidence = {
                "expected_cost_usd": cost_usd,
                "budget_usd_per_request": budget,
                "needed_budget_usd_per_request": needed,
                "pulls_left": arm.pulls_left,
            }
            size = cost_usd / budget
            journal.alert("newcomer_unaffordable", size, evidence, now=now, model=arm.name)
