"""The spend of requests that may have plans, compared with the expectation of the dollar dual.

A solution lets every request of the window have its best plan. Fewer plans are made: draws count
for half where plans are compared, verdicts are assumed to tell little, and a limit of money may
rule out a second call. So requests cost more or less than the solution says. That ratio is learned,
and λ_t is solved for the target divided by this ratio. All dollars are in budgets of a request.
"""

from __future__ import annotations

import math

from msgspec import Struct

from router_state.kernel import HORIZON, WINDOW

REMEMBERED = 5.0 * HORIZON
"""Requests after which older ones fade; `HORIZON` requests with the expected cost are assumed
before them."""
MOST_FACTOR = 2.0
"""Largest factor between the cost of requests and the expected cost that is believed."""


class PlannedSpend(Struct, array_like=True, gc=False):
    """The charges of requests since the first solution, and the costs that solutions expected.

    Attributes:
        charged, expected: sums over the last requests.
        mean: mean cost of a request in the last solution; 0: there is none.
        debt: the debt at the last solution; slot: the slot of the window that came next.
    """

    charged: float = 0.0
    expected: float = 0.0
    mean: float = 0.0
    debt: float = 0.0
    slot: int = 0

    @property
    def share(self) -> float:
        """Return the cost of requests as a share of the cost that solutions expect."""
        found = (HORIZON + self.charged) / (HORIZON + self.expected)
        return min(max(found, 1.0 / MOST_FACTOR), MOST_FACTOR)

    def count(self, debt: float, slot: int) -> None:
        """Count the requests since the last solution. The debt has grown by what these requests and
        the bills since were charged, less one budget for each request.
        """
        n = (slot - self.slot) % WINDOW
        if self.mean > 0.0 and n:
            fades = 1.0 - n / REMEMBERED
            self.charged = max(fades * self.charged + debt - self.debt + n, 0.0)
            self.expected = fades * self.expected + n * self.mean

    def solved(self, mean: float, debt: float, slot: int) -> None:
        """Note a solution."""
        self.mean, self.debt, self.slot = mean, debt, slot

    @property
    def is_sound(self) -> bool:
        """Tell whether the sums are possible."""
        numbers = (self.charged, self.expected, self.mean, self.debt)
        counts = min(self.charged, self.expected, self.mean) >= 0.0 and 0 <= self.slot < WINDOW
        return counts and all(map(math.isfinite, numbers))
