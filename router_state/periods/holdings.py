"""Holdings that a pool has granted to a router: dollars, each for one period of one budget.

A grant names the total dollars that the router may be charged in the period, and the time until
which the router may spend them. A grant is paced like a budget of a period: it has the same
accounts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple

from msgspec import Struct

from ground.json_values import Document, Json
from router_state.errors import StaleGrant
from router_state.events import OfCapability
from router_state.packing.framing import Whole
from router_state.periods.accounts import PERIODS_KEPT, Account, Accounts, Packed
from router_state.periods.calendar import LATEST, Per, bounded
from router_state.periods.spending import PeriodBudget

UNKNOWN = ""
"""Line that stands for a pool's budgets until the first grant names them."""


class Grant(Struct, frozen=True):
    """A grant of one period of one budget.

    Attributes:
        line: the budget's pool and name: "acme/month".
        per, zone, starts, ends: the budget's periods, see PeriodBudget, whose `until` is `ends`
            here.
        begin, end: the period, seconds since the epoch.
        usd: total dollars that may be charged in the period.
        until: end of the grant, seconds since the epoch; nothing may be spent from then on.
    """

    line: str
    per: Per | None
    zone: str
    starts: float | None
    ends: float | None
    begin: float
    end: float
    usd: float
    until: float

    @property
    def budget(self) -> PeriodBudget:
        """Return the budget whose periods this grant belongs to; the budget's dollars come from
        grants.
        """
        return PeriodBudget(0.0, self.per, self.zone, self.starts, self.ends)


class Granted(OfCapability, frozen=True):
    """All grants of a member, as its pool sends them.

    Attributes:
        pool_id: the pool.
        born: number of the membership, see `Holdings`; grants for another membership are void.
        n: number of this set of grants; of several sets the highest number counts.
        offset: offset on the topic; −1: on none.
        epoch: number of the pool's owner that sent the grants; −1: not named.
    """

    pool_id: str
    born: int
    n: int
    lines: tuple[Grant, ...] = ()
    offset: int = -1
    epoch: int = -1

    def require_epoch(self, least: int) -> None:
        """Raise StaleGrant if the sender is an earlier owner of the pool than `least`."""
        if self.epoch < least:
            raise StaleGrant(
                "the grant names no owner of its pool, or an earlier one: only workers write grants"
            )


class Lapsed(OfCapability, frozen=True):
    """Time has passed: holdings whose grants have ended are given back to the pool."""


class Holding(NamedTuple):
    """Dollars of one period, and the time until which they may be spent.

    `back`: the holding was given back to the pool. That stays so even if the clock steps back.
    """

    usd: float
    until: float
    back: bool = False

    def lasts(self, now: float) -> bool:
        """Tell whether the holding may be spent at a time."""
        return now < self.until and not self.back


Identity = tuple[Per | None, str, float | None, float | None]
"""The definition of a budget's periods, see `PeriodBudget.identity`."""


class _Holding(Struct, array_like=True):
    """A holding as stored, with the begin of its period."""

    begin: float
    usd: float
    until: float
    back: bool


class Kept(Struct):
    """The holdings as stored, see `Holdings.pack`."""

    pool: str
    born: Whole
    n: Whole
    moves: Whole
    lines: list[tuple[str, Identity, list[_Holding], Packed]]
    epoch: Whole


@dataclass(slots=True)
class HeldAccounts(Accounts):
    """The periods of one budget of the pool, and the holdings of each.

    Attributes:
        line: the budget's pool and name.
        holdings: holdings by begin of the period.
    """

    line: str = UNKNOWN
    holdings: dict[float, Holding] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """See Accounts."""
        return self.line or "pool"

    def usd(self, account: Account, now: float) -> float:
        """See Accounts; 0 without a holding, and only the charged dollars once the holding's time
        is up.
        """
        holding = self.holdings.get(account.begin)
        if holding is None:
            return 0.0
        # Sums of bills and expected costs leave rounding errors on either side of 0.
        return (
            holding.usd if holding.lasts(now) else min(holding.usd, max(account.charged_usd, 0.0))
        )

    def is_granted(self, account: Account) -> bool:
        """See Accounts."""
        return account.begin in self.holdings

    def at(self, now: float, *, seq: int) -> Account | None:
        """See Accounts; before the first grant there is one period without an end."""
        if self.line != UNKNOWN:
            return super(HeldAccounts, self).at(now, seq=seq)
        return self.kept[-1] if self.kept else Account(bounded(now), LATEST + 1.0, first_seq=seq)

    def take(self, grant: Grant) -> None:
        """Turn a grant into a holding."""
        self.holdings[grant.begin] = Holding(grant.usd, grant.until)
        for begin in sorted(self.holdings)[:-PERIODS_KEPT]:
            del self.holdings[begin]

    def has_lapsed(self, now: float) -> list[float]:
        """Return the periods whose holding has ended and was not given back yet."""
        return [
            begin
            for begin, holding in self.holdings.items()
            if now >= holding.until and not holding.back
        ]


@dataclass(slots=True)
class Holdings:
    """A router's membership in a pool.

    Attributes:
        pool_id: the pool.
        born: offset of the declaration that named the pool: the membership's number.
        n: number of the last set of grants; 0: none has come.
        moves: counter of changes; of two reports the one with the higher counter is newer.
        lines: accounts of each budget of which the router holds money.
        epoch: number of the pool's last owner whose grants were accepted; −1: no owner has named
            itself.
    """

    pool_id: str
    born: int
    n: int = 0
    moves: int = 0
    lines: list[HeldAccounts] = field(default_factory=list)
    epoch: int = -1

    @classmethod
    def none(cls, pool_id: str, *, born: int) -> Holdings:
        """Return the holdings of a router that has just named its pool: none."""
        unknown = HeldAccounts(PeriodBudget(0.0, None, starts=0.0, until=LATEST))
        return cls(pool_id, born, lines=[unknown])

    def take(self, grant: Granted) -> bool:
        """Put a set of grants in force; return False for an older set, or for a set of another
        membership: these change nothing.

        Raises:
            StaleGrant, InvalidConfig: the sender is not the pool's owner, or a grant has no valid
            period. Nothing has changed.
        """
        if (grant.pool_id, grant.born) != (self.pool_id, self.born) or grant.n <= self.n:
            return False
        grant.require_epoch(self.epoch)
        budgets = [line_grant.budget for line_grant in grant.lines]
        self.n, self.epoch = grant.n, grant.epoch
        before = {(one.line, one.budget.identity): one for one in self.lines}
        loose = before.get((UNKNOWN, self.lines[0].budget.identity)) if self.lines else None
        lines: dict[tuple[object, ...], HeldAccounts] = {}
        for line_grant, budget in zip(grant.lines, budgets, strict=True):
            at = line_grant.line, budget.identity
            line = lines.get(at) or before.get(at)
            if line is None:
                line = HeldAccounts(budget, line=line_grant.line)
                _move(loose, line, line_grant)
            lines[at] = line
            line.take(line_grant)
        # A budget that the pool no longer has no longer limits the router.
        self.lines = list(lines.values()) or self.lines
        return True

    def give_back(self, now: float) -> bool:
        """Give back the holdings whose time is up; tell whether there were any."""
        lapsed = [(line, begin) for line in self.lines for begin in line.has_lapsed(now)]
        for line, begin in lapsed:
            line.holdings[begin] = line.holdings[begin]._replace(back=True)
        return bool(lapsed)

    def pack(self) -> Document:
        """Return the holdings as JSON's types."""
        return {
            "pool": self.pool_id,
            "born": self.born,
            "n": self.n,
            "moves": self.moves,
            "lines": [_pack(line) for line in self.lines],
            "epoch": self.epoch,
        }

    @classmethod
    def unpack(cls, kept: Kept) -> Holdings:
        """Invert `pack`, once the JSON has been converted. Raises InvalidConfig."""
        lines = [_unpack(*line) for line in kept.lines]
        return cls(kept.pool, kept.born, kept.n, kept.moves, lines, kept.epoch)

    def is_sound(self) -> bool:
        """Tell whether the values are possible."""
        holdings = [n for line in self.lines for holding in line.holdings.values() for n in holding]
        return all(map(math.isfinite, holdings)) and min([0.0, *holdings]) >= 0.0 <= self.n


def _move(loose: HeldAccounts | None, line: HeldAccounts, line_grant: Grant) -> None:
    """Charge a line with the dollars that the router spent in the same period before the first
    grant.
    """
    account = loose.kept[-1] if loose is not None and loose.kept else None
    if account is not None and line_grant.begin <= account.begin < line_grant.end:
        line.kept.append(
            Account(
                line_grant.begin,
                line_grant.end,
                0.0,
                account.charged_usd,
                account.waiting,
                account.count,
                account.first_seq,
                account.gone,
                account.gone_usd,
            )
        )


def _pack(line: HeldAccounts) -> list[Json]:
    budget = line.budget
    identity = [budget.per, budget.zone, budget.starts, budget.until]
    holdings = [[begin, *holding] for begin, holding in line.holdings.items()]
    return [line.line, identity, holdings, line.pack()]


def _unpack(
    name: str, identity: Identity, holdings: list[_Holding], packed: Packed
) -> HeldAccounts:
    per, zone, starts, ends = identity
    accounts = Accounts.unpack(PeriodBudget(0.0, per, zone, starts, ends), packed)
    return HeldAccounts(
        accounts.budget,
        accounts.kept,
        accounts.alerted,
        line=name,
        holdings={one.begin: Holding(one.usd, one.until, one.back) for one in holdings},
    )
