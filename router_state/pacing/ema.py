"""The paper's pacer: a step of λ_t along the mean cost (ParetoBandit Eq. 3–4)."""

from __future__ import annotations

import math

from router_state.arms import Arms
from router_state.config import Vector
from router_state.pacing.pacer import Terms, Weights

STEP = 0.05
"""Share of the newest cost in the mean (ParetoBandit Eq. 3), and step of λ_t, per budget that the
mean is away from the budget (Eq. 4)."""
LAMBDA_MAX = 5.0
"""Largest λ_t of the paper's pacer (Eq. 4)."""


class EmaPacer:
    """λ ← clip(λ + 0.05(c̄/B − 1), 0, 5), c̄ ← 0.95c̄ + 0.05c, c̄_0 = B (ParetoBandit Eq. 3–4).

    Attributes:
        cost_ema_usd: c̄, dollars per request.
        per_log_price: weight of a price beside λ_t.
    """

    __slots__ = ("budget_usd", "cost_ema_usd", "lambda_t", "per_log_price")
    unreachable = False
    allowance_usd = math.inf
    pieces: tuple[str, ...] = ()

    def __init__(self, budget_usd: float, *, per_log_price: float) -> None:
        """Start with a mean cost of the budget."""
        self.budget_usd, self.per_log_price = budget_usd, per_log_price
        self.lambda_t, self.cost_ema_usd = 0.0, budget_usd

    def weigh(
        self, arms: Arms, x: Vector, limited_to: frozenset[str] | None, seq: int, now: float
    ) -> Weights:
        """See Pacer."""
        return self.lambda_t, self.per_log_price + self.lambda_t, 0.0

    def commit(self, expected_usd: float) -> None:
        """See Pacer; the paper charges when the bill comes."""

    def settle(self, cost_usd: float, charged_usd: float, first: bool) -> None:
        """See Pacer; only the first bill counts."""
        if not first:
            return
        self.cost_ema_usd = mean = (1.0 - STEP) * self.cost_ema_usd + STEP * cost_usd
        moved = self.lambda_t + STEP * (mean / self.budget_usd - 1.0)
        self.lambda_t = min(max(moved, 0.0), LAMBDA_MAX)

    def terms(self) -> Terms:
        """See Pacer."""
        return {"cost_ema_usd": self.cost_ema_usd}
