"""The pacer of `live`: a penalty linear in expected dollars, whose price is solved over the last
contexts.
"""

from __future__ import annotations

import numpy as np

from router_state.arms import Arms
from router_state.changes import Journal
from router_state.kernel import (
    FAR,
    WINDOW,
    Debt,
    Matrix,
    Window,
)
from router_state.pacing.pacer import Pacer, Terms
from router_state.pacing.scoring import candidates

UNREACHABLE = 1e6
"""λ_t where no price of a dollar meets the budget."""
MOST_TRIED = 100.0
"""Largest expected cost of a call that only serves to learn, plus the debt, in budgets of a
request: as many as one horizon of requests pays back (`Debt`).
"""
SURE = 0.01
"""The budget is unreachable if the probability that any model costs less is below this."""


class DollarDual(Pacer):
    """Paces spend by a penalty linear in expected dollars: λ_t·ê/B.

    Attributes:
        lambda_t: the reward that one budget's worth of dollars must earn.
        debt: dollars charged beyond the budget.
        target_usd: mean cost per request that λ_t was last solved for.
    """

    __slots__ = ("debt", "journal", "target_usd")
    solves = True
    budget_usd: float
    debt: Debt

    def __init__(self, budget_usd: float, journal: Journal) -> None:
        """Start without a history; the first decision solves for λ_t."""
        super().__init__(budget_usd)
        self.journal, self.target_usd = journal, 0.0
        self.debt = Debt()
        journal.jumped = True

    def set_budget(self, budget_usd: float) -> None:
        """Replace the budget from the next decision on; the debt in dollars stays."""
        if budget_usd != self.budget_usd:
            self.budget_usd, self.journal.jumped = budget_usd, True

    def per_dollar(self, multiple: float) -> float:
        """See Pacer."""
        price = self.lambda_t * multiple / self.budget_usd
        return price if price < FAR else FAR

    def commit(self, expected_usd: float) -> None:
        """See Pacer; after a jump of the debt λ_t is solved before the next decision."""
        budget = self.budget_usd
        if self.debt.charge(expected_usd - budget, budget):
            self.journal.jumped = True

    def settle(self, cost_usd: float, charged_usd: float, first: bool) -> None:
        """See Pacer, and `commit`."""
        if self.debt.settle(cost_usd - charged_usd, self.budget_usd, first):
            self.journal.jumped = True

    def solve(self, arms: Arms, window: Window, *, now: float) -> None:
        """Solve for λ_t: the smallest one at which the mean cost of the window's winners is within
        the target.
        """
        budget = self.budget_usd
        found = candidates(window, arms)
        cheapest_usd = found.cheapest()
        self.target_usd = self.debt.target(budget, cheapest_usd)
        target_usd, planner = self.target_usd, arms.planner
        if planner is not None:
            target_usd /= planner.share_of(self.debt.usd / budget)
        per_dollar = found.price(target=target_usd, start=self.lambda_t / budget)
        self.lambda_t = UNREACHABLE if per_dollar is None else min(per_dollar * budget, UNREACHABLE)
        if cheapest_usd <= budget:
            self.unreachable = False
        elif not self.unreachable:
            self._review(arms, window, found.arrays()[1], now=now)
        self.debt.bound(budget)
        if planner is not None:
            # Where a dollar has a price, the winners cost the target but for one of them.
            mean_usd = target_usd if per_dollar else found.dollars / found.n
            planner.solved(mean_usd / budget, self.debt.usd / budget)

    def _review(self, arms: Arms, window: Window, costs: Matrix, *, now: float) -> None:
        """Raise an alert if every model surely costs more than the budget on the window's prompts;
        `costs` are expected dollars, shape (size, K). Limits of single requests to some models are
        ignored.
        """
        costs, budget = np.delete(costs, list(window.limited), axis=0), self.budget_usd
        n = len(costs)
        if n <= WINDOW // 2:
            return
        cheapest_usd, chance = float(costs.min(1).mean()), 0.0
        # The window is a sample of prompts, too.
        means, variances = costs.mean(0).tolist(), (costs.var(0) / n).tolist()
        for model, mean, variance in zip(arms.costs, means, variances, strict=True):
            known = model.predictive(mean)
            doubt = known.calibration + variance / (mean * mean) if mean > 0.0 else 0.0
            chance += known._replace(calibration=doubt).chance_below(budget)
        if chance >= SURE:
            return
        # The alert names the model that is cheapest most often.
        k = int(np.bincount(costs.argmin(1)).argmax())
        self.unreachable = True
        evidence = {"cheapest_usd": cheapest_usd, "budget_usd_per_request": budget}
        size = cheapest_usd / budget
        self.journal.alert("budget_unreachable", size, evidence, now=now, model=arms.names[k])

    @property
    def allowance_usd(self) -> float:
        """See Pacer."""
        return MOST_TRIED * self.budget_usd - self.debt.usd

    def terms(self) -> Terms:
        """See Pacer."""
        return {
            "debt_usd": self.debt.usd,
            "target_usd": self.target_usd,
        }
