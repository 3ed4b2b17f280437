"""The guard of a ramp: what labels show of the routed share, and when the share changes.

Each step has evidence of its own.
A label of a request counts by the term (z/s − (1 − z)/(1 − s))·(reward − c), where z is 1 if the
router answered, which it did with probability s, and c has the means so far. Its expectation is the
difference, see `studies.proof.difference`. The interval of the mean holds at all labels together,
see `anytime`.
"""

from __future__ import annotations

from math import isfinite

from msgspec import Struct

from router_state.incumbents.anytime import half_width

MISSED_BY_A_STEP = 0.01
"""Probability with which a step of a ramp is left for a wrong reason at any time."""
LEAST_LABELS = 50
"""Labels of either side before anything is shown: the law of an interval is a limit."""
ON_BUDGET = 1.05
"""Mean bill of what was routed, in budgets, up to which it is on its budget (DESIGN: 0.95–1.05)."""
ON, BACK = "on", "back"
"""Names of the ways in which a step ends: by the next share, or by the one before."""


class Guard(Struct, array_like=True):
    """The step of a ramp, and the evidence since it began.

    Attributes:
        step: number of the share that is in force; −1: nothing is routed any more.
        incumbent, router: labels of either side; incumbent_sum, router_sum: their rewards.
        total, squares: Σ of the terms, and of their squares.
        bills, spend_usd: number and sum of the bills of requests that the router answered.
    """

    step: int = 0
    incumbent: int = 0
    router: int = 0
    incumbent_sum: float = 0.0
    router_sum: float = 0.0
    total: float = 0.0
    squares: float = 0.0
    bills: int = 0
    spend_usd: float = 0.0

    def judged(self, reward: float, *, routed: bool, share: float) -> float:
        """Add the first label of a request to the evidence, and return the label's term."""
        inside = self.incumbent_sum / max(self.incumbent, 1)
        outside = self.router_sum / max(self.router, 1)
        if not self.incumbent or not self.router:
            center = inside + outside
        else:
            center = (1.0 - share) * outside + share * inside
        term = (reward - center) / (share if routed else share - 1.0)
        self.total, self.squares = self.total + term, self.squares + term * term
        if routed:
            self.router, self.router_sum = self.router + 1, self.router_sum + reward
        else:
            self.incumbent, self.incumbent_sum = self.incumbent + 1, self.incumbent_sum + reward
        return term

    def interval(self) -> tuple[float, float] | None:
        """Return the interval of the mean difference, router − incumbent; None: there are too few
        labels yet.
        """
        if min(self.incumbent, self.router) < LEAST_LABELS:
            return None
        n = self.incumbent + self.router
        mean = self.total / n
        half = half_width(n, (self.squares - n * mean * mean) / (n - 1), missed=MISSED_BY_A_STEP)
        return mean - half, mean + half

    def leads_to(
        self, found: tuple[float, float] | None, margin: float, budget_usd: float | None
    ) -> str | None:
        """Return whether the share goes on or falls back; None: neither is shown.

        Args:
            found: the interval of the difference, of requests or of sessions.
        """
        if found is None:
            return None
        if found[1] < -margin:
            return BACK
        paid = self.spend_usd / self.bills if self.bills else None
        on_budget = budget_usd is None or (paid is not None and paid <= ON_BUDGET * budget_usd)
        return ON if found[0] > -margin and on_budget else None

    def is_sound(self) -> bool:
        """Tell whether its numbers can be true."""
        sums = (self.incumbent_sum, self.router_sum, self.total, self.squares, self.spend_usd)
        return min(self.incumbent, self.router, self.bills) >= 0 and all(map(isfinite, sums))
