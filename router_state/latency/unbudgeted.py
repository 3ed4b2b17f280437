"""The pacer of a router that has a target of latency and no budget."""

from __future__ import annotations

import math

from router_state.arms import Arms
from router_state.changes import Journal
from router_state.pacing.dollar_dual import DollarDual
from router_state.pacing.pacer import Terms


class Unbudgeted(DollarDual):
    """A pacer that keeps the window for the price of a wait; the price of a dollar is 0."""

    __slots__ = ()
    allowance_usd = math.inf

    def __init__(self, d: int, journal: Journal) -> None:
        """Start without a history."""
        super().__init__(1.0, d, journal)
        self.budget_usd = None  # type: ignore[assignment]

    def per_dollar(self, multiple: float) -> float:
        """See DollarDual."""
        return 0.0

    def _solve(self, arms: Arms, *, now: float) -> None:
        """See DollarDual; nothing is solved."""

    def commit(self, expected_usd: float) -> None:
        """See Pacer."""

    def settle(self, cost_usd: float, charged_usd: float, first: bool) -> None:
        """See Pacer."""

    def terms(self) -> Terms:
        """See Pacer."""
        return {"window": self.window.size}
