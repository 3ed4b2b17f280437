"""Find new models that the budget can't afford to try, and tell the operator the budget that they
need."""

from __future__ import annotations

from dataclasses import dataclass, field

from router_state.arms import Arms
from router_state.changes import Journal
from router_state.kernel import EVERY, WINDOW, Arm, Candidates

PATIENCE = WINDOW // EVERY
"""Solutions of λ_t in a row that must agree: those in which the whole window is renewed. It is high
for a while after every debt, but a debt is paid back sooner (`HORIZON`)."""
LOSS = 0.02
"""Reward that trying may cost per request, dollars counted by their price (lab/docs); budgets,
where there is no such price."""
FEW_BILLS = 40.0
"""Bills from which a model is no newcomer any more."""
TRIAL = 0.02
"""Share of requests that would go to a newcomer with the budget that it needs, all else as now:
what trying gets where the gap is 1, the largest reward."""


@dataclass(frozen=True, slots=True)
class Unaffordable:
    """A newcomer that would not be worth its price at this budget even if every answer of it earned
    1.

    Attributes:
        expected_cost_usd: of one call.
        needed_budget_usd: per request, with which 20 of the next 1,000 requests can go to it, all
            else as now.
    """

    model: str
    expected_cost_usd: float
    needed_budget_usd: float


@dataclass(slots=True)
class Newcomers:
    """A watch over new models, every few decisions; its state is not durable."""

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
        """Note whom a budget per request has no place for, given a decision for the k-th arm; raise
        an alert once it is certain."""
        # Even with the largest possible reward they would score below the chosen arm.
        hopeless = [arms.all[j] for j in arms.hopeless(seen, k, budget, FEW_BILLS)]
        if not (hopeless or self._looks):
            return
        # Any other is looked at from the beginning, should it come to that again.
        self._looks = {arm.name: self._looks.get(arm.name, 0) + 1 for arm in hopeless}
        self.found = {name: one for name, one in self.found.items() if name in self._looks}
        for arm in hopeless:
            if self._looks[arm.name] >= PATIENCE:
                cost_usd = seen.cost_usd(arms.row[arm.name])
                self._tell(arm, cost_usd, budget=budget, now=now, journal=journal)

    def _tell(
        self, arm: Arm, cost_usd: float, *, budget: float, now: float, journal: Journal
    ) -> None:
        news = arm.name not in self.found
        # Its calls replace others that cost a budget each, so only its extra cost counts.
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
            journal.tell("newcomer_unaffordable", size, evidence, now=now, model=arm.name)
