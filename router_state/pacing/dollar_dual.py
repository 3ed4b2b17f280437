"""The live policy's pacer: a penalty linear in expected dollars, its price found from the last
contexts."""

from __future__ import annotations

import numpy as np

from router_state.config import WINDOW, Matrix
from router_state.kernel import CLOSE_ENOUGH, CLOSED, HORIZON, DualPacer, Portfolio
from router_state.latency import pricing
from router_state.pacing.pacer import Terms

UNREACHABLE = CLOSED
"""λ_t where no price of a dollar meets the budget."""
SURE = 0.01
"""Probability that any model costs less than the budget, below which the budget is unreachable."""


class DollarDual(DualPacer):
    """Solves for λ_t over the window, and tells when no price of a dollar meets the budget."""

    __slots__ = ()

    def set_budget(self, budget_usd: float) -> None:
        """Pace another budget from the next decision on; the debt in dollars stays."""
        if budget_usd != self.budget_usd:
            self.budget_usd, self.journal.jumped = budget_usd, True

    def solve(self, arms: Portfolio, now: float) -> None:
        """See DualPacer; the price of a wait comes first, so that spend follows the budget whatever
        that is."""
        if arms.timing is not None:
            pricing.weigh(
                arms.timing,
                arms,
                self.window,
                per_dollar=self.per_dollar(1.0),
                target_usd=self.target_usd,
                now=now,
            )
        self._solve(arms, now=now)

    def _solve(self, arms: Portfolio, *, now: float) -> None:
        """Solve for λ_t: the smallest at which the mean cost of the window's winners is within the
        target."""
        budget = self.budget_usd
        candidates = self.window.candidates(arms)
        cheapest_usd = candidates.cheapest()
        self.target_usd = self.debt.target(budget, cheapest_usd)
        per_dollar = candidates.price(
            target=self.target_usd, start=self.lambda_t / budget, within=CLOSE_ENOUGH
        )
        self.lambda_t = UNREACHABLE if per_dollar is None else min(per_dollar * budget, UNREACHABLE)
        if cheapest_usd <= budget:
            self.unreachable = False
        elif not self.unreachable:
            self._review(arms, candidates.arrays()[1], now=now)
        self.debt.bound(budget)

    def _review(self, arms: Portfolio, costs: Matrix, *, now: float) -> None:
        """Raise an alert where every model surely costs more than the budget on the window's
        prompts, expected costs of shape (size, K). Requests that allow few models do not count."""
        costs, budget = np.delete(costs, list(self.window.limited), axis=0), self.budget_usd
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
        self.journal.tell("budget_unreachable", size, evidence, now=now, model=arms.names[k])

    @property
    def allowance_usd(self) -> float:
        """See Pacer."""
        return HORIZON * self.budget_usd - self.debt.usd

    @property
    def pieces(self) -> tuple[str, ...]:
        """See Pacer: blocks of the window."""
        return self.window.pieces

    def terms(self) -> Terms:
        """See Pacer."""
        return {
            "debt_usd": self.debt.usd,
            "target_usd": self.target_usd,
            "window": self.window.size,
        }
