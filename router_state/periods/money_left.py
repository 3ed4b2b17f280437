"""The standing of a budget: the money left, and the budget of a request with which the money
lasts.
"""

from __future__ import annotations

from typing import NamedTuple

from router_state.periods.accounts import Account, Accounts


class Standing(NamedTuple):
    """The standing of one budget before a request.

    Attributes:
        usd: dollars of the period.
        left_usd: dollars that are left; below 0: the period is overspent.
        reserved_usd: part of `left_usd` that is reserved for bills in flight beyond their expected
            costs.
        requests: expected number of requests until the period ends, including this one.
        per_request_usd: budget of each of these requests, in dollars.
    """

    accounts: Accounts
    account: Account
    usd: float
    left_usd: float
    reserved_usd: float
    requests: float
    per_request_usd: float

    @property
    def free_usd(self) -> float:
        """Dollars that this request may cost."""
        return self.left_usd - self.reserved_usd
