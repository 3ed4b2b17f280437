"""Pacers spend a budget over requests: their base, and the pacer of a router without a budget."""

from __future__ import annotations

from typing import ClassVar, TypedDict

from router_state.arms import Arms
from router_state.choice import Choice
from router_state.kernel import Window


class Terms(TypedDict, total=False):
    """Inputs of λ_t, by the names of `pb.lambda`."""

    cost_ema_usd: float
    debt_usd: float
    target_usd: float


class Pacer:
    """A pacer, which spends a budget over requests.

    Attributes:
        budget_usd: dollars per request; None: there is no budget.
        lambda_t: dual variable as it was last used, dimensionless.
        unreachable: whether even the cheapest models are known to cost more than the budget.
        solves: whether λ_t is solved for over the window of the last contexts.
        target_usd: mean cost per request that λ_t was last solved for.
    """

    __slots__ = ("budget_usd", "lambda_t", "unreachable")
    budget_usd: float | None
    solves: ClassVar[bool] = False
    target_usd: float = 0.0

    def __init__(self, budget_usd: float | None) -> None:
        self.budget_usd, self.lambda_t, self.unreachable = budget_usd, 0.0, False

    @property
    def allowance_usd(self) -> float:
        """The largest expected dollars of a call that only serves to learn."""
        return float("inf")

    def follows(self, before: Pacer) -> bool:
        """Tell whether this pacer can take over the contexts of the pacer before it."""
        return before is self

    def begin(self, choice: Choice) -> None:
        """Set the budget of a request, if budgets differ from request to request."""

    def solve(self, arms: Arms, window: Window, *, now: float) -> None:
        """Solve for λ_t over the last contexts."""

    def per_dollar(self, multiple: float) -> float:
        """Return the weight of money in scores for a request with this multiple of λ_t: reward per
        dollar, or under `paper` reward per unit of the logarithmic scale of prices.
        """
        return 0.0

    def commit(self, expected_usd: float) -> None:
        """Charge a decision's expected cost."""

    def settle(self, cost_usd: float, charged_usd: float, first: bool) -> None:
        """Replace a charge by a bill. The charge is the expected cost before the `first` bill,
        else the previous bill.
        """

    def terms(self) -> Terms:
        """Return the inputs of λ_t, by the names of `pb.lambda`."""
        return {}


class Unpaced(Pacer):
    """A router without a budget: λ_t stays 0, and spend is only counted.

    Attributes:
        per_log_price: weight of a list price under `paper`, beside λ_t.
    """

    __slots__ = ("per_log_price",)

    def __init__(self, per_log_price: float = 0.0, *, budget_usd: float | None = None) -> None:
        super().__init__(budget_usd)
        self.per_log_price = per_log_price

    def follows(self, before: Pacer) -> bool:
        """See Pacer; without a budget there is nothing to go on with."""
        return type(before) is type(self)

    def per_dollar(self, multiple: float) -> float:
        """See Pacer."""
        return self.per_log_price + self.lambda_t
