"""Define the protocol of pacers, and the pacer of a router without a budget."""

from __future__ import annotations

import math
from typing import Protocol, TypedDict

from router_state.arms import Arms
from router_state.config import Vector

Weights = tuple[float, float, float]
"""λ_t, and the penalties of money in reward: per unit of the paper's logarithmic price scale, and
per dollar."""


class Terms(TypedDict, total=False):
    """Inputs of λ_t, by the names of `pb.lambda`."""

    cost_ema_usd: float
    debt_usd: float
    target_usd: float
    window: int


class Pacer(Protocol):
    """A pacer, which spends a budget over requests.

    Attributes:
        budget_usd: dollars per request; None: there is no budget.
        lambda_t: dual variable as it was last used, dimensionless.
        unreachable: whether even the cheapest models are known to cost more than the budget.
        allowance_usd: dollars that one call may be expected to cost whose only use is to learn.
        pieces: names of the pieces of the state that hold its arrays.
    """

    @property
    def budget_usd(self) -> float | None: ...

    @property
    def lambda_t(self) -> float: ...

    @property
    def unreachable(self) -> bool: ...

    @property
    def allowance_usd(self) -> float: ...

    @property
    def pieces(self) -> tuple[str, ...]: ...

    def weigh(
        self, arms: Arms, x: Vector, limited_to: frozenset[str] | None, seq: int, now: float
    ) -> Weights:
        """Return the weights of money in the next request's scores.

        Args:
            x: its context, shape (d,).
            limited_to: the models that it may be given to, None: all.
            seq: number of the decision.
            now: seconds since the epoch.
        """
        ...

    def commit(self, expected_usd: float) -> None:
        """Charge a decision's expected cost."""
        ...

    def settle(self, cost_usd: float, charged_usd: float, first: bool) -> None:
        """Replace a charge by a bill: the expected cost or, if it is not the `first` bill, the
        previous one."""
        ...

    def terms(self) -> Terms:
        """Return the inputs of λ_t, by the names of `pb.lambda`."""
        ...


class Unpaced:
    """A router without a budget: λ_t is 0, and spend is only counted."""

    __slots__ = ("_per_log_price",)
    budget_usd: None = None
    lambda_t = 0.0
    unreachable = False
    allowance_usd = math.inf
    pieces: tuple[str, ...] = ()

    def __init__(self, per_log_price: float = 0.0) -> None:
        self._per_log_price = per_log_price

    def weigh(
        self, arms: Arms, x: Vector, limited_to: frozenset[str] | None, seq: int, now: float
    ) -> Weights:
        """See Pacer."""
        return 0.0, self._per_log_price, 0.0

    def commit(self, expected_usd: float) -> None:
        """See Pacer."""

    def settle(self, cost_usd: float, charged_usd: float, first: bool) -> None:
        """See Pacer."""

    def terms(self) -> Terms:
        """See Pacer."""
        return {}
