"""Leases that a router holds from its pool: dollars, each for one period of one budget.

A lease is a number of dollars that the router may have been charged in the period, all in all, and
a time until which it may go on spending. A lease has the accounts of a budget of a period, so it is
paced in the same way.
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
"""Name of the line that stands for a pool's budgets until the first lease names them."""


class Lent(Struct, frozen=True):
    """A lease of one period of one budget.

    Attributes:
        line: the pool whose budget it is, and the budget's name: "acme/month".
        per, zone, starts, ends: the budget's periods, see PeriodBudget; `ends` as its `until`.
        begin, end: the period, seconds since the epoch.
        usd: dollars that may be charged in it, all in all.
        until: seconds since the epoch; from then on nothing more may be spent of it.
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
        """Return the budget that says when its periods begin; its dollars are those of leases."""
        return PeriodBudget(0.0, self.per, self.zone, self.starts, self.ends)


class Granted(OfCapability, frozen=True):
    """A grant: all leases of a member, sent by its pool.

    Attributes:
        pool_id: the pool.
        born: which membership it is for, see `Leases`; a grant for another one is void.
        n: number of the grant; of several the highest counts.
        offset: where it stands on its topic, −1: on none.
        epoch: number of the pool's owner that sent it, −1: it names none.
    """

    pool_id: str
    born: int
    n: int
    lines: tuple[Lent, ...] = ()
    offset: int = -1
    epoch: int = -1

    def require_epoch(self, least: int) -> None:
        """Raise StaleGrant where it comes from an earlier owner of the pool than another one."""
        if self.epoch < least:
            raise StaleGrant(
                "the grant names no owner of its pool, or an earlier one: only workers write grants"
            )


class Lapsed(OfCapability, frozen=True):
    """Time has passed: leases of the router's pool that have ended are given back."""


class Loan(NamedTuple):
    """Dollars of one period, and until when they may be spent; `back`: the pool was told that its
    time is up, whatever the clock says later."""

    usd: float
    until: float
    back: bool = False

    def lasts(self, now: float) -> bool:
        """Tell whether it may be spent at a time."""
        return now < self.until and not self.back


Identity = tuple[Per | None, str, float | None, float | None]
"""The definition of a budget's periods, see `PeriodBudget.identity`."""


class _Loan(Struct, array_like=True):
    """A loan as it is read, with the begin of its period."""

    begin: float
    usd: float
    until: float
    back: bool = False


class Kept(Struct):
    """The types in which what `Leases.pack` returns is read."""

    pool: str
    born: Whole
    n: Whole
    moves: Whole
    lines: list[tuple[str, Identity, list[_Loan], Packed]]
    epoch: Whole = -1


@dataclass(slots=True)
class LeasedAccounts(Accounts):
    """The periods of one budget of the pool, and what is lent of them.

    Attributes:
        line: its name.
        loans: by begin of the period.
    """

    line: str = UNKNOWN
    loans: dict[float, Loan] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """See Accounts."""
        return self.line or "pool"

    def usd(self, account: Account, now: float) -> float:
        """See Accounts; nothing where nothing is lent, and no more than is charged where the time
        is up."""
        loan = self.loans.get(account.begin)
        if loan is None:
            return 0.0
        # Sums of bills and what was expected leave residues on either side of 0.
        return loan.usd if loan.lasts(now) else min(loan.usd, max(account.charged_usd, 0.0))

    def is_lent(self, account: Account) -> bool:
        """See Accounts."""
        return account.begin in self.loans

    def at(self, now: float, *, seq: int) -> Account | None:
        """See Accounts; before the first lease a period goes on until that comes."""
        if self.line != UNKNOWN:
            return super(LeasedAccounts, self).at(now, seq=seq)
        return self.kept[-1] if self.kept else Account(bounded(now), LATEST + 1.0, first_seq=seq)

    def lend(self, lent: Lent) -> None:
        """Take a lease."""
        self.loans[lent.begin] = Loan(lent.usd, lent.until)
        for begin in sorted(self.loans)[:-PERIODS_KEPT]:
            del self.loans[begin]

    def has_lapsed(self, now: float) -> list[float]:
        """Return the periods whose loan's time is up, and was not given back yet."""
        return [begin for begin, loan in self.loans.items() if now >= loan.until and not loan.back]


@dataclass(slots=True)
class Leases:
    """A router's membership in a pool.

    Attributes:
        pool_id: the pool.
        born: offset of the declaration that named the pool: the membership's number.
        n: number of the last grant, 0: none has come.
        moves: counter of changes; of two reports the one with more is newer.
        lines: what is lent.
        epoch: the last owner of the pool whose grant was taken, −1: none has named itself.
    """

    pool_id: str
    born: int
    n: int = 0
    moves: int = 0
    lines: list[LeasedAccounts] = field(default_factory=list)
    epoch: int = -1

    @classmethod
    def none(cls, pool_id: str, *, born: int) -> Leases:
        """Return those of a router that has just named its pool."""
        unknown = LeasedAccounts(PeriodBudget(0.0, None, starts=0.0, until=LATEST))
        return cls(pool_id, born, lines=[unknown])

    def take(self, grant: Granted) -> bool:
        """Put a grant in force; return False for an older one or one for another membership, which
        change nothing.

        Raises:
            StaleGrant, InvalidConfig: it comes from somebody else, or a lease is of no period.
                Nothing has changed.
        """
        if (grant.pool_id, grant.born) != (self.pool_id, self.born) or grant.n <= self.n:
            return False
        grant.require_epoch(self.epoch)
        budgets = [lent.budget for lent in grant.lines]
        self.n, self.epoch = grant.n, grant.epoch
        before = {(one.line, one.budget.identity): one for one in self.lines}
        loose = before.get((UNKNOWN, self.lines[0].budget.identity)) if self.lines else None
        lines: dict[tuple[object, ...], LeasedAccounts] = {}
        for lent, budget in zip(grant.lines, budgets, strict=True):
            at = lent.line, budget.identity
            line = lines.get(at) or before.get(at)
            if line is None:
                line = LeasedAccounts(budget, line=lent.line)
                _move(loose, line, lent)
            lines[at] = line
            line.lend(lent)
        # A budget that the pool no longer has does not limit the router.
        self.lines = list(lines.values()) or self.lines
        return True

    def give_back(self, now: float) -> bool:
        """Give back the loans whose time is up; tell whether there were any."""
        lapsed = [(line, begin) for line in self.lines for begin in line.has_lapsed(now)]
        for line, begin in lapsed:
            line.loans[begin] = line.loans[begin]._replace(back=True)
        return bool(lapsed)

    def pack(self) -> Document:
        """Return it as JSON's types."""
        return {
            "pool": self.pool_id,
            "born": self.born,
            "n": self.n,
            "moves": self.moves,
            "lines": [_pack(line) for line in self.lines],
            **({} if self.epoch < 0 else {"epoch": self.epoch}),
        }

    @classmethod
    def unpack(cls, kept: Kept) -> Leases:
        """Invert `pack`, in the types in which it is read. Raises InvalidConfig."""
        lines = [_unpack(*line) for line in kept.lines]
        return cls(kept.pool, kept.born, kept.n, kept.moves, lines, kept.epoch)

    def is_sound(self) -> bool:
        """Tell whether its values are possible."""
        loans = [n for line in self.lines for loan in line.loans.values() for n in loan]
        return all(map(math.isfinite, loans)) and min([0.0, *loans]) >= 0.0 <= self.n


def _move(loose: LeasedAccounts | None, line: LeasedAccounts, lent: Lent) -> None:
    """Charge the first lease with what the router spent before it, where it was in its period."""
    account = loose.kept[-1] if loose is not None and loose.kept else None
    if account is not None and lent.begin <= account.begin < lent.end:
        line.kept.append(
            Account(
                lent.begin,
                lent.end,
                0.0,
                account.charged_usd,
                account.waiting,
                account.count,
                account.first_seq,
                account.gone,
                account.gone_usd,
            )
        )


def _pack(line: LeasedAccounts) -> list[Json]:
    budget = line.budget
    identity = [budget.per, budget.zone, budget.starts, budget.until]
    loans = [[begin, *(loan if loan.back else loan[:2])] for begin, loan in line.loans.items()]
    return [line.line, identity, loans, line.pack()]


def _unpack(name: str, identity: Identity, loans: list[_Loan], packed: Packed) -> LeasedAccounts:
    per, zone, starts, ends = identity
    accounts = Accounts.unpack(PeriodBudget(0.0, per, zone, starts, ends), packed)
    return LeasedAccounts(
        accounts.budget,
        accounts.kept,
        accounts.told,
        line=name,
        loans={one.begin: Loan(one.usd, one.until, one.back) for one in loans},
    )
