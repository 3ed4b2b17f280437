"""The paper's pacer: a step of λ_t along the mean cost (ParetoBandit Eq. 3–4)."""

from __future__ import annotations

from router_state.kernel.numbers.words import Flag, Real, ccall, cclass
from router_state.kernel.pacing.pacer import Terms, Unpaced

EMA_STEP = 0.05
"""Share of the newest cost in the mean (ParetoBandit Eq. 3), and step of λ_t, per budget that the
mean is away from the budget (Eq. 4)."""
LAMBDA_MAX = 5.0
"""Largest λ_t of the paper's pacer (Eq. 4)."""


@cclass
class EmaPacer(Unpaced):
    """λ ← clip(λ + 0.05(c̄/B − 1), 0, 5), c̄ ← 0.95c̄ + 0.05c, c̄_0 = B (ParetoBandit Eq. 3–4).

    Attributes:
        cost_ema_usd: c̄, dollars per request.
    """

    cost_ema_usd: Real

    def __init__(self, budget_usd: float, *, per_log_price: float) -> None:
        """Start with a mean cost of the budget."""
        self.budget_usd, self.per_log_price = budget_usd, per_log_price
        self.lambda_t, self.cost_ema_usd, self.unreachable = 0.0, budget_usd, False

    @ccall
    def settle(self, cost_usd: Real, charged_usd: Real, first: Flag) -> None:
        """See Pacer; only the first bill counts: the paper charges when it comes."""
        if not first:
            return
        budget: Real = self.budget_usd
        mean: Real = (1.0 - EMA_STEP) * self.cost_ema_usd + EMA_STEP * cost_usd
        moved: Real = self.lambda_t + EMA_STEP * (mean / budget - 1.0)
        self.cost_ema_usd, self.lambda_t = mean, min(max(moved, 0.0), LAMBDA_MAX)

    def terms(self) -> Terms:
        """See Pacer."""
        return {"cost_ema_usd": self.cost_ema_usd}
