"""Keep the accounts of a budget's periods: dollars charged, and dollars carried over."""

from __future__ import annotations

from dataclasses import dataclass, field

from msgspec import Struct, structs

from ground.json_values import Json
from router_state.packing.framing import Whole
from router_state.periods.calendar import bounded
from router_state.periods.spending import PeriodBudget

PERIODS_KEPT = 4
"""Number of periods that are kept: bills of earlier periods still come, and a clock may step
back.
"""
MOST_EMPTY = 1000
"""Most periods without a request whose money is carried over."""


class Account(Struct, array_like=True):
    """One period's money.

    Attributes:
        begin, end: seconds since the epoch.
        carried_usd: dollars that the period before left.
        charged_usd: dollars of the period's requests: their bills, or expected costs while bills
            are awaited.
        waiting: number of the period's requests whose bill is awaited; count: number of all its
            requests.
        first_seq: number of the first decision that may be charged to it.
        gone, gone_usd: number of the period's requests that are forgotten, and their dollars.
    """

    begin: float
    end: float
    carried_usd: float = 0.0
    charged_usd: float = 0.0
    waiting: Whole = 0
    count: Whole = 0
    first_seq: Whole = 1
    gone: Whole = 0
    gone_usd: float = 0.0

    def pack(self) -> tuple[Json, ...]:
        """Return the account as JSON's types."""
        values = structs.astuple(self)
        return values if self.gone else values[:-2]

    def contains(self, at: float, seq: int) -> bool:
        """Tell whether a decision was charged to this account."""
        return self.begin <= bounded(at) < self.end and seq >= self.first_seq


Packed = tuple[float, list[Account]]
"""Accounts of one budget as stored."""


@dataclass(slots=True)
class Accounts:
    """The periods of one budget, in the order in which they were last used.

    Attributes:
        alerted: begin of the last period for which an alert said that nothing is left; −1: none.
    """

    budget: PeriodBudget
    kept: list[Account] = field(default_factory=list)
    alerted: float = -1.0

    @property
    def name(self) -> str:
        """Return the name that tells this budget from a router's other budgets."""
        return self.budget.name

    def usd(self, account: Account, now: float) -> float:
        """Return the dollars of a period."""
        return self.budget.usd + account.carried_usd

    def is_granted(self, account: Account) -> bool:
        """Tell whether a period has money of its own, spent or not."""
        return True

    def at(self, now: float, *, seq: int) -> Account | None:
        """Return the account of a time. If none is kept, the account is a new one, which only
        `open` stores. None: the budget is not in force.
        """
        # The time is clipped to the calendar, as a clock may show anything; settlements clip it
        # the same way.
        now = bounded(now)
        # Mostly the last account is the right one, so the calendar is asked only where a period
        # begins.
        if self.kept and self.kept[-1].begin <= now < self.kept[-1].end:
            return self.kept[-1]
        period = self.budget.period(now)
        if period is None:
            return None
        begin, end = period
        for account in self.kept:
            if account.begin == begin:
                return account
        return Account(begin, end, self._carried(begin), first_seq=seq)

    def _carried(self, begin: float) -> float:
        """Return the dollars carried over to a period that begins at this time."""
        budget = self.budget
        before = [account for account in self.kept if account.end <= begin]
        if budget.carry <= 0.0 or not before:
            return 0.0
        last = max(before, key=lambda account: account.end)
        unspent = budget.usd + last.carried_usd - last.charged_usd
        left, at = min(max(unspent, 0.0), budget.carry), last.end
        for _ in range(MOST_EMPTY):
            period = budget.period(at) if at < begin else None
            if period is None:
                break
            left, at = min(left + budget.usd, budget.carry), period[1]
        return left

    def open(self, account: Account) -> None:
        """Store an account as the one in use."""
        if self.kept and self.kept[-1] is account:
            return
        self.kept = [one for one in self.kept if one is not account][1 - PERIODS_KEPT :]
        self.kept.append(account)

    def of(self, at: float, seq: int) -> Account | None:
        """Return the account that a decision was charged to; None if that account is no longer
        kept."""
        return next((one for one in self.kept if one.contains(at, seq)), None)

    def pack(self) -> tuple[float, list[tuple[Json, ...]]]:
        """Return the accounts as JSON's types."""
        return self.alerted, [account.pack() for account in self.kept]

    @classmethod
    def unpack(cls, budget: PeriodBudget, packed: Packed) -> Accounts:
        """Invert `pack`, once the JSON has been converted to `Packed`."""
        alerted, kept = packed
        return cls(budget, kept, alerted)
