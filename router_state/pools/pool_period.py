"""One period of one budget of a pool: its grants to members.

The invariant: the sum of all charges that the grants so far allow never exceeds the budget. A
member counts with the dollars that it reports to hold, and with every grant that it has not
confirmed yet.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from msgspec import Struct

from ground.json_values import Document
from router_state.packing.framing import Whole
from router_state.periods.holdings import Grant, Identity
from router_state.periods.reporting import Curve, Held, bounded_usd
from router_state.periods.spending import PeriodBudget
from router_state.pools.pool_config import Share
from router_state.pools.sharing import Demand, share, together

LEAST_LEFT = 0.5
"""Least share of a member's remaining money that one change of grants leaves, so that spend until
the change is in force stays within the grant.
"""
WORTH_A_CHANGE = 0.02
"""Least change of a grant, as a share of the member's remaining money."""
Kind = tuple[str, tuple[object, ...]]
"""Key of a budget: its name, and the identity of its periods."""
MICRO = 1_000_000
"""Units per dollar: grants are whole millionths of a dollar, which add up without rounding."""


class MemberGrant(Struct, array_like=True):
    """A member's grant of one line.

    Attributes:
        usd: dollars of the last grant.
        most: largest grant that may be in force, as it was not confirmed or replaced.
        holds, spent: dollars held and spent in the member's last report.
        back_usd, back_until: dollars that the member gave back before the grant's end by the pool's
            clock, and the time until which they still count: a member whose clock steps back may
            spend them again.
        before: dollars spent in earlier memberships.
        until: end of the grant, seconds since the epoch.
        curve: dollars that the member would still spend, by price.
    """

    usd: float = 0.0
    most: float = 0.0
    holds: float = 0.0
    spent: float = 0.0
    before: float = 0.0
    until: float = 0.0
    curve: Curve = ()
    back_usd: float = 0.0
    back_until: float = 0.0

    @property
    def exposed(self) -> float:
        """Return the most dollars that the member may be charged under its grants."""
        return self.before + max(self.most, self.holds, self.back_usd)

    @property
    def charged(self) -> float:
        """Return the dollars that the member is known to have been charged."""
        return self.before + self.spent

    def take_report(
        self, held: Held, *, confirmed: bool, moved: bool, newer: bool, left: bool, now: float
    ) -> None:
        """Apply a member's report: the dollars that it holds and has spent under this grant.

        Args:
            held: the reported numbers.
            confirmed: whether the member has accepted the last grant.
            moved: whether anything has changed since the last report. If not, the member can only
                hold less, because its grant has ended: the two reports may come in any order.
            newer: whether the member has accepted a grant since the last report; left: whether it
                has left the pool. Either ends earlier holdings, whatever the member's clock shows.
        """
        if newer or left:
            self.back_usd = 0.0
        self.holds = held.holds_usd if moved else min(self.holds, held.holds_usd)
        self.spent, self.curve = held.spent_usd, held.curve
        if confirmed:
            # A grant that ended before it was renewed was given back.
            if held.holds_usd < self.usd and now < self.until and not left:
                self.back_usd = max(self.back_usd, self.usd)
                self.back_until = max(self.back_until, self.until)
            self.most, self.usd = 0.0, min(self.usd, held.holds_usd)

    def come_back(self, now: float) -> None:
        """Stop counting dollars that were given back, once the grant has ended by the pool's clock
        as well.
        """
        if now >= self.back_until:
            self.back_usd = 0.0

    def begin_anew(self) -> None:
        """Begin another membership; the exposure of the one before counts as spent."""
        self.before = self.exposed
        self.usd = self.most = self.holds = self.spent = self.until = self.back_usd = 0.0
        self.curve = ()


class KeptPeriod(Struct):
    """A line as stored; `numbers` are begin, end, usd, until (null: no end) and gone_usd."""

    number: Whole
    name: str
    budget: Identity
    numbers: tuple[float, float, float, float | None, float]


@dataclass(slots=True)
class PoolPeriod:
    """One period of one budget.

    Attributes:
        number: number among all lines that the pool ever had, by which members' pieces name this
            one.
        name: the budget's pool and name.
        budget: the budget, which defines the periods.
        begin, end: the period, seconds since the epoch.
        usd: dollars that the pool may grant.
        until: time at which they must be back, if another pool granted them; 0: they were given
            back.
        grants: grants by member.
        gone_usd: dollars spent by members that are forgotten.
    """

    number: int
    name: str
    budget: PeriodBudget
    begin: float
    end: float
    usd: float = 0.0
    until: float = math.inf
    grants: dict[str, MemberGrant] = field(default_factory=dict)
    gone_usd: float = 0.0

    @property
    def kind(self) -> Kind:
        """Return the key of the line's budget."""
        return self.name, self.budget.identity

    @property
    def exposed_usd(self) -> float:
        """Return the most dollars that all members may be charged by the end of the period."""
        return math.fsum((self.gone_usd, *(grant.exposed for grant in self.grants.values())))

    @property
    def charged_usd(self) -> float:
        """Return the dollars that all members are known to have been charged."""
        return math.fsum((self.gone_usd, *(grant.charged for grant in self.grants.values())))

    def curve(self) -> Curve:
        """Return the dollars that all members together would still spend, by price."""
        return together([grant.curve for grant in self.grants.values() if grant.curve])

    def forget(self, member: str) -> None:
        """Forget a member; dollars that it has spent or still holds count as spent."""
        if (grant := self.grants.pop(member, None)) is not None:
            self.gone_usd += grant.exposed

    def set_grants(self, members: Mapping[str, tuple[Share, float]], *, now: float) -> set[str]:
        """Set the grants of members anew, and return those whose grant has changed.

        A grant is reduced at once, and the difference is granted to others once the member has
        confirmed the reduction.

        Args:
            members: members that may have grants now, each with the bounds of its share and the
                time until which its grant may last.
        """
        for grant in self.grants.values():
            grant.come_back(now)
        bounds = {name: share for name, (share, _) in members.items()}
        for member in bounds:
            self.grants.setdefault(member, MemberGrant())
        # A silent member keeps its grant.
        others = math.fsum(p.exposed for name, p in self.grants.items() if name not in bounds)
        charged = {name: self.grants[name].charged for name in bounds}
        usd = self.usd if now < self.until else 0.0
        left = usd - self.gone_usd - others - math.fsum(charged.values())
        demands = [
            self._demand(name, bounds[name], charged[name], left, len(bounds)) for name in bounds
        ]
        lefts = share(max(left, 0.0), demands)
        aims = {name: charged[name] + dollars for name, dollars in zip(bounds, lefts, strict=True)}
        changed = self._shrink(aims)
        changed |= self._grow(aims, usd - self.exposed_usd)
        return changed | self._renew(members, now=now)

    def _demand(self, name: str, bound: Share, charged: float, left: float, count: int) -> Demand:
        curve = self.grants[name].curve or ((0.0, max(left, 0.0) / count),)
        least = max(bound.least * self.usd - charged, 0.0)
        most = max(bound.most * self.usd - charged, 0.0)
        return Demand(curve, min(least, most), most)

    def _shrink(self, aims: dict[str, float]) -> set[str]:
        changed = set()
        for name, aim in aims.items():
            grant = self.grants[name]
            has = grant.before + grant.usd
            kept = grant.charged + LEAST_LEFT * max(has - grant.charged, 0.0)
            # Spend of earlier memberships is not a whole number of millionths, so the difference
            # is kept above 0.
            less = max(_whole(max(aim, kept)) - grant.before, 0.0)
            # Half a millionth distinguishes rounding from a real difference, so that no remainder
            # of a grant is left.
            if grant.usd - less > max(WORTH_A_CHANGE * (has - grant.charged), 0.5 / MICRO):
                grant.most = max(grant.most, grant.usd)
                grant.usd = less
                changed.add(name)
        return changed

    def _grow(self, aims: dict[str, float], free: float) -> set[str]:
        wanted = {
            name: aim - self.grants[name].exposed
            for name, aim in aims.items()
            if aim - self.grants[name].exposed
            > max(WORTH_A_CHANGE * (aim - self.grants[name].charged), 1.0 / MICRO)
        }
        whole = math.fsum(wanted.values())
        if free <= 0.0 or whole <= 0.0:
            return set()
        changed = set()
        for name, more in wanted.items():
            grant = self.grants[name]
            usd = _whole(bounded_usd(grant.exposed - grant.before + more * min(1.0, free / whole)))
            if usd > grant.usd:
                grant.usd, grant.most = usd, max(grant.most, usd)
                changed.add(name)
        return changed

    def _renew(self, members: Mapping[str, tuple[Share, float]], *, now: float) -> set[str]:
        """Renew the grants that have less than half of their time left."""
        changed = set()
        for name, (_, most) in members.items():
            grant, until = self.grants[name], min(most, self.until)
            if until > grant.until and grant.until - now < 0.5 * (until - now):
                grant.until, grant.most = until, max(grant.most, grant.usd)
                changed.add(name)
        return changed

    def grant_to(self, member: str) -> Grant:
        """Return a member's grant, of 0 dollars if it has none."""
        budget, grant = self.budget, self.grants.get(member, MemberGrant())
        return Grant(
            self.name,
            budget.per,
            budget.zone,
            budget.starts,
            budget.until,
            self.begin,
            self.end,
            grant.usd,
            grant.until,
        )

    def pack(self) -> Document:
        """Return this period as JSON's types. The grants are left out, as they are stored with the
        members.
        """
        budget = self.budget
        until = None if math.isinf(self.until) else self.until
        return {
            "number": self.number,
            "name": self.name,
            "budget": [budget.per, budget.zone, budget.starts, budget.until],
            "numbers": [self.begin, self.end, self.usd, until, self.gone_usd],
        }

    @classmethod
    def unpack(cls, kept: KeptPeriod) -> PoolPeriod:
        """Invert `pack`, without its grants. Raises InvalidConfig."""
        per, zone, starts, ends = kept.budget
        begin, end, usd, until, gone = kept.numbers
        budget = PeriodBudget(0.0, per, zone, starts, ends)
        until = math.inf if until is None else until
        return cls(kept.number, kept.name, budget, begin, end, usd, until, gone_usd=gone)


def _whole(usd: float) -> float:
    """Return dollars rounded down to whole millionths."""
    return int(usd * MICRO) / MICRO
