"""The paper's pacer: a step of λ_t along the mean cost (ParetoBandit Eq. 3–4)."""

from __future__ import annotations

from router_state.pacing.pacer import Terms, Unpaced

EMA_STEP = 0.05
"""Share of the newest cost in the mean (ParetoBandit Eq. 3), and step of λ_t for each budget by
which the mean differs from the budget (Eq. 4).
"""
LAMBDA_MAX = 5.0
"""Largest λ_t of the paper's pacer (Eq. 4)."""


class EmaPacer(Unpaced):
    """λ ← clip(λ + 0.05(c̄/B − 1), 0, 5), c̄ ← 0.95c̄ + 0.05c, c̄_0 = B (ParetoBandit Eq. 3–4).

    Attributes:
        cost_ema_usd: c̄, dollars per request.
    """

    __slots__ = ("cost_ema_usd",)
    budget_usd: float

    def __init__(self, budget_usd: float, *, per_log_price: float) -> None:
        """Start with a mean cost of the budget."""
        super().__init__(per_log_price, budget_usd=budget_usd)
        self.cost_ema_usd = budget_usd

    def settle(self, cost_usd: float, charged_usd: float, first: bool) -> None:
        """See Pacer. Only the first bill counts: the paper charges a cost when the bill comes."""
        if first:
            mean = (1.0 - EMA_STEP) * self.cost_ema_usd + EMA_STEP * cost_usd
            moved = self.lambda_t + EMA_STEP * (mean / self.budget_usd - 1.0)
            self.cost_ema_usd, self.lambda_t = mean, min(max(moved, 0.0), LAMBDA_MAX)

    def terms(self) -> Terms:
        """See Pacer."""
        return {"cost_ema_usd": self.cost_ema_usd}
