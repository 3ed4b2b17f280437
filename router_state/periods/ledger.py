"""Compute the money left in a router's periods, and the budget of a request with which the money
lasts.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Annotated

from msgspec import Meta, Struct

from ground.json_values import Document
from router_state.changes import Journal
from router_state.config import Vector
from router_state.errors import DamagedState, InvalidConfig
from router_state.packing.framing import Whole, decoded
from router_state.periods import holdings
from router_state.periods.accounts import Account, Accounts, Packed
from router_state.periods.floor import FLOOR_REQUESTS
from router_state.periods.holdings import Granted, HeldAccounts, Holdings
from router_state.periods.hourly_traffic import FIRST, Traffic
from router_state.periods.money_left import Standing
from router_state.periods.spending import Spending
from router_state.record import RequestRecord

PIECE = "\x1fperiods"
"""Name of the piece with the accounts, which every decision and every bill writes."""
RESERVED = 1.28
"""Deviations of the bills in flight that are reserved: enough in nine of ten cases."""
DECISIONS_KEPT = 1000.0
"""Effective number of decisions behind the mean expected cost."""
SETTLEMENTS_KEPT = 1000.0
"""Effective number of settlements behind the scatter."""
MOST_OFF = 20.0
"""Largest difference with which a settlement enters the scatter, in mean costs of a request: a
single bill must not set the scatter.
"""
LEAST_USD = 1e-12
"""Least budget of a request in dollars, used where nothing is left: λ_t is divided by the
budget.
"""
MOST_REQUEST_USD = 1000.0
"""Largest budget of a request in dollars: that of the largest bill (the wire contract)."""


TrafficNumbers = tuple[
    float, float, float, float, float, Whole, Whole, float, float, float, float, float
]
"""Numbers of the traffic, in the order of `Traffic.NUMBERS`."""


class _Kept(Struct):
    budgets: list[Packed]
    traffic: TrafficNumbers
    numbers: Annotated[list[float | None], Meta(min_length=8, max_length=8)]
    leases: holdings.Kept | None = None


class Ledger:
    """The accounts of a router's budgets, and the traffic that they are spread over.

    Only `commit` charges a decision; reading the ledger changes nothing.

    Attributes:
        spending: the declared budgets and limits.
        budgets: accounts of each budget; holdings: money that the router holds of its pool, if it
            has a pool; accounts: accounts of budgets and holdings.
        traffic: forecast of requests.
        scatter: mean square of a settlement, bill − expectation, in dollars².
        settled: number of settlements behind `scatter`.
        mean_usd: mean expected dollars of a decision.
        per_request_usd: budget of the last request, in dollars.
        floor_usd: mean dollars of a request that meet the floor of rewards; infinity: not known, or
            no floor.
        reward, best: recent mean of the expected rewards of the called models, and of the best
            models.
    """

    __slots__ = (
        "_journal",
        "accounts",
        "best",
        "budgets",
        "decided",
        "floor_usd",
        "holdings",
        "mean_usd",
        "per_request_usd",
        "reward",
        "scatter",
        "settled",
        "spending",
        "traffic",
    )
    NUMBERS = (
        *("scatter", "settled", "mean_usd", "decided", "per_request_usd", "floor_usd"),
        *("reward", "best"),
    )

    def __init__(self, spending: Spending, journal: Journal, *, born: int = -1) -> None:
        self._journal = journal
        self.spending = spending
        self.budgets = [Accounts(budget) for budget in spending.budgets]
        self.holdings: Holdings | None = None
        self._join(spending.pool, born)
        self.traffic = Traffic(spending.traffic, self._zone, journal)
        self.scatter = self.settled = self.mean_usd = self.decided = 0.0
        self.per_request_usd, self.floor_usd = MOST_REQUEST_USD, math.inf
        self.reward = self.best = 0.0

    @property
    def _zone(self) -> str:
        return self.accounts[0].budget.zone if self.accounts else "UTC"

    def _join(self, pool_id: str | None, born: int) -> None:
        """Become a member of a pool, or of none; an existing membership goes on."""
        if pool_id is None:
            self.holdings = None
        elif self.holdings is None or self.holdings.pool_id != pool_id:
            self.holdings = Holdings.none(pool_id, born=born)
        self.accounts = [*self.budgets, *(self.holdings.lines if self.holdings is not None else ())]

    def take(self, grant: Granted) -> bool:
        """Put a set of grants in force; return whether anything changed."""
        if self.holdings is None or not self.holdings.take(grant):
            return False
        self.accounts = [*self.budgets, *self.holdings.lines]
        self.traffic.declare(self.spending.traffic, self._zone)
        self._moved()
        return True

    @property
    def held(self) -> list[HeldAccounts]:
        """Return the accounts of the holdings of a pool; none without a pool."""
        return [] if self.holdings is None else self.holdings.lines

    def give_back(self, now: float) -> bool:
        """Give holdings that have ended by a time back to the pool; tell whether there were
        any.
        """
        if self.holdings is None or not self.holdings.give_back(now):
            return False
        self._moved()
        return True

    def _moved(self) -> None:
        if self.holdings is not None:
            self.holdings.moves += 1
        self._journal.pieces.add(PIECE)

    def declare(self, spending: Spending, *, born: int = -1) -> None:
        """Put other budgets in force; a budget with the same periods keeps its charges.

        Args:
            born: offset of the declaration.
        """
        before = {accounts.budget.identity: accounts for accounts in self.budgets}
        self.spending = spending
        self.budgets = [
            replace(before[budget.identity], budget=budget)
            if budget.identity in before
            else Accounts(budget)
            for budget in spending.budgets
        ]
        self._join(spending.pool, born)
        self.traffic.declare(spending.traffic, self._zone)
        if not spending.has_floor:
            self.floor_usd, self.reward, self.best = math.inf, 0.0, 0.0
        self._journal.pieces.add(PIECE)

    def start_over(self) -> None:
        """Start the ledger of a router that continues from another router's state. Decisions are
        counted anew and no bill is awaited; charges stay, like a debt. The other router's holdings
        end.
        """
        self.holdings = None
        self.accounts = [*self.budgets]
        for accounts in self.budgets:
            for account in accounts.kept:
                account.waiting, account.first_seq = 0, 1
                account.gone, account.gone_usd = account.count, account.charged_usd

    def is_sound(self) -> bool:
        """Tell whether the values are possible."""
        traffic, accounts = self.traffic, [one for all_of in self.accounts for one in all_of.kept]
        amounts = [n for one in accounts for n in (one.begin, one.end, one.charged_usd)]
        carried = [one.carried_usd for one in accounts]
        sums = [self.scatter, self.mean_usd, self.per_request_usd, traffic.requests, traffic.hours]
        week, others = traffic.week().tolist(), [self.reward, self.best, *traffic.numbers()]
        return (
            all(map(math.isfinite, (*amounts, *carried, *sums, *week, *others)))
            and min(0.0, *sums, *week, *carried) >= 0.0
            and all(one.begin < one.end and min(one.waiting, one.count) >= 0 for one in accounts)
            and (self.holdings is None or self.holdings.is_sound())
        )

    def standings(self, now: float, *, seq: int) -> list[Standing]:
        """Return the money left in every budget that is in force, before decision `seq`."""
        return [
            self._standing(accounts, account, now)
            for accounts in self.accounts
            if (account := accounts.at(now, seq=seq)) is not None
        ]

    def _standing(self, accounts: Accounts, account: Account, now: float) -> Standing:
        usd = accounts.usd(account, now)
        left = usd - account.charged_usd
        reserved = self.reserved_usd(account)
        first = FIRST * (account.end - account.begin)
        requests = 1.0 + self.traffic.left(now, account.end, first=first)
        free = left - reserved
        if free <= 0.0 and self.spending.when_spent == "overrun":
            per_request = usd / (account.count + requests)
        else:
            per_request = free / requests
        bounded = min(max(per_request, LEAST_USD), MOST_REQUEST_USD)
        return Standing(accounts, account, usd, left, reserved, requests, bounded)

    def reserved_usd(self, account: Account) -> float:
        """Return the dollars reserved for bills in flight beyond their expected costs."""
        return RESERVED * math.sqrt(account.waiting * self.scatter)

    def is_over(self, now: float) -> bool:
        """Tell whether all budgets have ended for good, so that nothing is left."""
        budgets = [accounts.budget for accounts in self.accounts]
        return bool(budgets) and all(budget.is_over(now) for budget in budgets)

    def pace(self, now: float, *, seq: int) -> float:
        """Return the budget of decision `seq` with which the tightest budget lasts."""
        standings = self.standings(now, seq=seq)
        for standing in standings:
            standing.accounts.open(standing.account)
        usual = LEAST_USD if self.is_over(now) else MOST_REQUEST_USD
        self.per_request_usd = min([one.per_request_usd for one in standings] or [usual])
        return self.per_request_usd

    def commit(self, record: RequestRecord) -> None:
        """Charge a decision's expected cost."""
        expected_usd, now = record.expected_cost_usd, record.decided_at
        for accounts in self.accounts:
            if (account := accounts.at(now, seq=0)) is not None:
                account.charged_usd += expected_usd
                account.waiting += 1
                account.count += 1
        self.decided = min(self.decided + 1.0, DECISIONS_KEPT)
        self.mean_usd += (expected_usd - self.mean_usd) / self.decided
        if self.accounts:
            self.traffic.note(now)
        if self.spending.has_floor:
            self._earn(record)
        self._moved()

    def _earn(self, record: RequestRecord) -> None:
        """Note the expected reward of a decision, and that of the best model."""
        seen = record.candidates
        assert seen is not None
        open_to = [k for k, why in enumerate(seen.excluded) if why is None]
        weight = 1.0 / min(self.decided, FLOOR_REQUESTS)
        self.reward += (record.expected_reward - self.reward) * weight
        self.best += (max(seen.terms[3 * k] for k in open_to) - self.best) * weight

    def settle(self, difference_usd: float, *, at: float, seq: int, awaited: bool) -> None:
        """Replace the charge of a decision by its bill.

        Args:
            at, seq: time and number of the decision.
            awaited: whether the bill was still awaited.
        """
        for accounts in self.accounts:
            if (account := accounts.of(at, seq)) is not None:
                account.charged_usd += difference_usd
                account.waiting -= awaited
        if awaited:
            off = min(abs(difference_usd), MOST_OFF * self.mean_usd)
            self.settled = min(self.settled + 1.0, SETTLEMENTS_KEPT)
            self.scatter += (off * off - self.scatter) / self.settled
        self._moved()

    def expire(self, *, at: float, seq: int) -> None:
        """Stop waiting for a bill; the expected cost stays charged."""
        for accounts in self.accounts:
            if (account := accounts.of(at, seq)) is not None:
                account.waiting -= 1
        self._moved()

    def forget(self, record: RequestRecord) -> None:
        """Note that a request is forgotten; its cost stays charged."""
        bill = record.bill
        usd = record.charged_usd if bill is None else bill.cost_usd
        for accounts in self.accounts:
            if (account := accounts.of(record.decided_at, record.seq)) is not None:
                account.gone += 1
                account.gone_usd += usd
        self._journal.pieces.add(PIECE)

    def pack(self) -> Document:
        """Return the state that decisions and bills change, as JSON's types."""
        numbers = [getattr(self, name) for name in self.NUMBERS]
        leases = {} if self.holdings is None else {"leases": self.holdings.pack()}
        return {
            "budgets": [accounts.pack() for accounts in self.budgets],
            "traffic": self.traffic.numbers(),
            # JSON has no infinity.
            "numbers": [None if math.isinf(number) else number for number in numbers],
            **leases,
        }

    def restore(self, body: bytes, week: Vector) -> None:
        """Invert `pack`, as JSON, and `Traffic.week`. Raises DamagedState."""
        packed = decoded(body, _Kept, "periods")
        if len(packed.budgets) != len(self.spending.budgets):
            raise DamagedState(f"periods: {len(packed.budgets)} budgets are not those declared")
        self.budgets = [
            Accounts.unpack(budget, accounts)
            for budget, accounts in zip(self.spending.budgets, packed.budgets, strict=True)
        ]
        try:
            self.holdings = None if packed.leases is None else Holdings.unpack(packed.leases)
        except InvalidConfig as error:
            raise DamagedState(f"periods: {error}") from None
        self.accounts = [*self.budgets, *(self.holdings.lines if self.holdings is not None else ())]
        self.traffic.declare(self.spending.traffic, self._zone)
        for name, number in zip(self.NUMBERS, packed.numbers, strict=True):
            setattr(self, name, math.inf if number is None else number)
        self.traffic.restore(packed.traffic, week)
