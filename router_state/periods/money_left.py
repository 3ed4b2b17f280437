"""The standing of a budget: what is left of it, and what a request may cost so that it lasts."""

from __future__ import annotations

from typing import NamedTuple

from router_state.periods.accounts import Account, Accounts


class Standing(NamedTuple):
    """The standing of one budget before a request.

    Attributes:
        usd: dollars of the period.
        left_usd: dollars that are left; below 0: so many too many were charged.
        reserved_usd: of these, what bills in flight may take beyond their expectations.
        requests: how many are still to come in the period, this one included.
        per_request_usd: what each of them may cost.
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
        """Dollars that this request may take."""
        return self.left_usd - self.reserved_usd
