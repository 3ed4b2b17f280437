"""Pacers spend a budget over requests: their base, and the pacer of a router without a budget."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

from router_state.kernel.choosing.portfolio import Portfolio
from router_state.kernel.numbers.words import Flag, Index, Real, ccall, cclass

if TYPE_CHECKING:
    from router_state.config import Vector


class Terms(TypedDict, total=False):
    """Inputs of λ_t, by the names of `pb.lambda`."""

    cost_ema_usd: float
    debt_usd: float
    target_usd: float
    window: int


@cclass
class Pacer:
    """A pacer, which spends a budget over requests.

    Attributes:
        budget_usd: dollars per request; None: there is no budget.
        lambda_t: dual variable as it was last used, dimensionless.
        unreachable: whether even the cheapest models are known to cost more than the budget.
        pieces: names of the pieces of the state that hold its arrays.
    """

    budget_usd: float
    lambda_t: Real
    unreachable: Flag

    @property
    def allowance_usd(self) -> float:
        """Dollars that one call may be expected to cost whose only use is to learn."""
        return float("inf")

    @property
    def pieces(self) -> tuple[str, ...]:
        """Names of the pieces of the state that hold its arrays."""
        return ()

    @ccall
    def weigh(
        self,
        arms: Portfolio,
        x: Vector,
        limited_to: frozenset[str] | None,
        seq: Index,
        now: Real,
    ) -> Real:
        """Return the weight of money in the next request's scores, in reward per dollar; under
        `paper` per unit of its logarithmic scale of prices.

        Args:
            x: its context, shape (d,).
            limited_to: the models that it may be given to, None: all.
            seq: number of the decision.
            now: seconds since the epoch.
        """
        return 0.0

    @ccall
    def commit(self, expected_usd: Real) -> None:
        """Charge a decision's expected cost."""

    @ccall
    def settle(self, cost_usd: Real, charged_usd: Real, first: Flag) -> None:
        """Replace a charge by a bill: the expected cost or, if it is not the `first` bill, the
        previous one."""

    def terms(self) -> Terms:
        """Return the inputs of λ_t, by the names of `pb.lambda`."""
        return {}


@cclass
class Unpaced(Pacer):
    """A router without a budget: λ_t stays 0, and spend is only counted.

    Attributes:
        per_log_price: weight of a price under `paper`, beside λ_t.
    """

    per_log_price: Real

    def __init__(self, per_log_price: float = 0.0) -> None:
        self.budget_usd = None  # type: ignore[assignment]
        self.lambda_t, self.unreachable, self.per_log_price = 0.0, False, per_log_price

    @ccall
    def weigh(
        self,
        arms: Portfolio,
        x: Vector,
        limited_to: frozenset[str] | None,
        seq: Index,
        now: Real,
    ) -> Real:
        """See Pacer."""
        return self.per_log_price + self.lambda_t
