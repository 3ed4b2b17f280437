"""The paper's budget pacer: an exponential mean of costs drives the dual variable."""

from __future__ import annotations

from dataclasses import dataclass

EMA_STEP = 0.05
DUAL_STEP = 0.05
LAMBDA_MAX = 5.0


@dataclass(slots=True)
class EmaPacer:
    """λ ← clip(λ + 0.05(c̄/B − 1), 0, 5), c̄ ← 0.95c̄ + 0.05c, c̄_0 = B (ParetoBandit Eq. 3–4).

    Attributes:
        lambda_t: dual variable, dimensionless.
        cost_ema_usd: c̄, dollars per request.
    """

    lambda_t: float
    cost_ema_usd: float

    @classmethod
    def start(cls, budget_usd_per_request: float) -> EmaPacer:
        """Return a pacer that believes the budget is being met."""
        return cls(0.0, budget_usd_per_request)

    def observe(self, cost_usd: float, budget_usd_per_request: float) -> None:
        """Follow one bill."""
        self.cost_ema_usd = mean = (1.0 - EMA_STEP) * self.cost_ema_usd + EMA_STEP * cost_usd
        moved = self.lambda_t + DUAL_STEP * (mean / budget_usd_per_request - 1.0)
        self.lambda_t = 0.0 if moved < 0.0 else LAMBDA_MAX if moved > LAMBDA_MAX else moved

    def correct(self, difference_usd: float, *, age: int) -> None:
        """Put a bill in place of the expectation that was followed `age` decisions ago, as far as the mean still has it."""
        left = EMA_STEP * (1.0 - EMA_STEP) ** age
        self.cost_ema_usd = max(0.0, self.cost_ema_usd + left * difference_usd)
