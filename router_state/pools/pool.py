"""One pool: its members, their reports, and its holdings."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from router_state.errors import ImplausibleNumber, InvalidConfig, TooManyMembers
from router_state.periods.calendar import bounded
from router_state.periods.holdings import Granted
from router_state.periods.reporting import Held, Reported, bounded_usd
from router_state.periods.spending import PeriodBudget
from router_state.pools.pool_config import LEASE_SECONDS, PoolConfig
from router_state.pools.pool_member import MOST_COUNTED, MOST_MEMBERS, MOST_NUMBER, Member
from router_state.pools.pool_period import Kind, MemberGrant, PoolPeriod

HEAD, CONFIG = "", "config"
"""Names of the two pieces that belong to no member: counters and lines; the declaration."""
AHEAD = 60.0
"""Seconds before the begin of a period at which its money is granted."""
LINES_KEPT = 4
"""Number of periods of a line that are kept: as many as routers keep accounts."""
MOST_BUDGETS = 32
"""Most budgets from which a pool grants: its own and those of the pools above it. Each has up to
two periods at a time.
"""
MOST_LINES = 2 * MOST_BUDGETS
"""Most periods of all lines; beyond them, ended periods are forgotten."""
AGAIN = 5.0
"""Seconds after which a grant that was not confirmed is sent again."""

At = tuple[str, tuple[object, ...], float]
"""Key of a line: its name, its budget's periods, and the begin of one period."""


@dataclass(slots=True)
class Pool:
    """The state of one pool. A report or a grant that comes again, or late, changes nothing.

    Attributes:
        config: the declaration; None: the pool is gone and grants nothing more.
        born: number of the membership in the parent pool; taken: number of the last set of grants
            from the parent; epoch: number of the parent's owner that sent it, see `Holdings`.
        moves: counter of changes.
        numbered: number of lines that the pool ever had.
        members: members by "router:…" or "pool:…".
        lines: every period of every budget from which the pool grants.
        granted_at: by member, the time at which its last grant was sent; not durable.
        at: time of the last report or grant, seconds since the epoch; not durable.
        changed: names of the pieces that differ from what was last written, see `pieces`.
    """

    pool_id: str
    config: PoolConfig | None = None
    born: int = -1
    taken: int = 0
    moves: int = 0
    numbered: int = 0
    members: dict[str, Member] = field(default_factory=dict)
    lines: dict[At, PoolPeriod] = field(default_factory=dict)
    granted_at: dict[str, float] = field(default_factory=dict)
    changed: set[str] = field(default_factory=set)
    at: float = 0.0
    epoch: int = -1

    def declare(self, config: PoolConfig | None) -> None:
        """Put a declaration in force; None: the pool is gone.

        Raises:
            InvalidConfig: the pool has too many budgets, together with those of the pools above
            it.
        """
        before, after = (None if one is None else one.parent for one in (self.config, config))
        if config is not None:
            self._require_few(config, self._kinds(self._from_above()) if before == after else set())
        if config is not None and before != after:
            self.born, self.taken, self.epoch = config.offset, 0, -1
        if before != after:
            for line in self._from_above():
                line.usd = 0.0
        self.config = config
        self._moved(CONFIG)

    def _require_few(self, config: PoolConfig, above: set[Kind]) -> None:
        """Refuse a declaration with too many budgets, as none of them may be left out."""
        count = len(config.budgets) + len(above)
        if count > MOST_BUDGETS:
            raise InvalidConfig(
                f"pool {self.pool_id} has {count} budgets with those of the pools above it, "
                f"{MOST_BUDGETS} is the most: declare fewer"
            )

    @staticmethod
    def _kinds(lines: Iterable[PoolPeriod]) -> set[Kind]:
        return {line.kind for line in lines}

    def _moved(self, *pieces: str) -> None:
        """Note a change and the pieces that it changed, beside the head."""
        self.moves += 1
        self.changed.update((HEAD, *pieces))

    def take_report(self, report: Reported, *, now: float) -> bool:
        """Apply a member's report; return whether it changed anything.

        Raises:
            TooManyMembers: the member is new, and the pool is full.
            ImplausibleNumber: the member is new, and the number of its last grant is too large to
                be counted on from.
        """
        self.at = now
        member = self.members.get(report.member)
        if member is None:
            self._require_room(report)
        if member is None or report.born > member.born:
            if member is not None:
                for line in self.lines.values():
                    if (grant := line.grants.get(report.member)) is not None:
                        grant.begin_anew()
            # The pool may have forgotten the member, whose next grant must still count as newer.
            n = report.n if member is None else member.n
            member = self.members[report.member] = Member(report.born, n=n, taken=n)
        elif report.born < member.born or report.moves < member.moves:
            return False
        moved = report.moves > member.moves
        member.moves, member.left = report.moves, report.left
        member.reported_at = max(now, member.reported_at)
        newer = report.n > member.taken
        member.taken = max(member.taken, min(report.n, member.n))
        confirmed = report.left or member.taken == member.n
        self._say(report, confirmed=confirmed, moved=moved, newer=newer, now=now)
        self._moved(report.member)
        return True

    def _require_room(self, report: Reported) -> None:
        if len(self.members) >= MOST_MEMBERS:
            raise TooManyMembers(
                f"pool {self.pool_id} has {MOST_MEMBERS} members: let some of them share a pool of "
                "their own whose parent it is"
            )
        if report.n > MOST_COUNTED:
            raise ImplausibleNumber(f"n is above {MOST_COUNTED}: no pool has made so many grants")

    def _say(
        self, report: Reported, *, confirmed: bool, moved: bool, newer: bool, now: float
    ) -> None:
        reported = {(held.line, held.begin): held for held in report.lines}
        for (name, _, begin), line in self.lines.items():
            held = reported.get((name, begin))
            if held is None and report.left and report.member in line.grants:
                # A grant that the member has not accepted can't be spent.
                spent = line.grants[report.member].spent
                held = Held(name, begin, spent, spent)
            if held is not None:
                grant = line.grants.setdefault(report.member, MemberGrant())
                grant.take_report(
                    held,
                    confirmed=confirmed,
                    moved=moved or report.left,
                    newer=newer,
                    left=report.left,
                    now=now,
                )

    def take(self, grant: Granted) -> bool:
        """Put grants of the parent pool in force; return whether they changed anything.

        Raises:
            StaleGrant: the sender is not the parent's owner.
            InvalidConfig: a grant has no valid period, or there are too many budgets. Nothing has
                changed, and earlier grants end at their time.
        """
        config = self.config
        if config is None or (grant.pool_id, grant.born) != (config.parent, self.born):
            return False
        if grant.n <= self.taken:
            return False
        grant.require_epoch(self.epoch)
        # Money that comes back through a circle of pools is the pool's own.
        granted = {
            (one.line, one.budget.identity, one.begin): one
            for one in grant.lines
            if one.line.rpartition("/")[0] != self.pool_id
        }
        kinds = {at[:2] for at in granted}
        self._require_few(config, kinds)
        self.taken, self.epoch = grant.n, grant.epoch
        for line in self._from_above():
            line.usd = 0.0
        for at, one in granted.items():
            line = self._line(at, one.budget, one.end)
            line.usd, line.until = one.usd, one.until
        self._drop_ended(kinds)
        self._moved()
        return True

    def _drop_ended(self, kinds: set[Kind]) -> None:
        """Forget ended periods of budgets that are no longer granted; forget the oldest of other
        periods if there are too many.
        """
        ended = sorted(
            (line.end, at)
            for at, line in self.lines.items()
            if line.end <= self.at and not line.name.startswith(f"{self.pool_id}/")
        )
        most = len(self.lines) - MOST_LINES
        for number, (_, at) in enumerate(ended):
            if number < most or at[:2] not in kinds:
                del self.lines[at]

    def _line(self, at: At, budget: PeriodBudget, end: float) -> PoolPeriod:
        """Return a line, which is new if there was none."""
        if (line := self.lines.get(at)) is None:
            line = self.lines[at] = PoolPeriod(self.numbered, at[0], budget, at[2], end)
            self.numbered += 1
        return line

    def grant_all(self, *, now: float) -> list[tuple[str, Granted]]:
        """Set all grants anew; return the grants to be sent, by member."""
        return [(name, self.grant(name, now=now)) for name in self.set_grants(now=now)]

    def set_grants(self, *, now: float) -> list[str]:
        """Set all grants anew; return the members to which grants must be sent.

        The change of one member may become durable without the others. So money that one member
        loses is granted to another only after the first has confirmed the loss.
        """
        config, self.at = self.config, now
        dropped = self._drop_budgets()
        moved = self._open(now)
        forgotten = self._forget_members(now)
        seconds = PoolConfig().lease_seconds if config is None else config.lease_seconds
        changed: set[str] = set()
        # The demand of a silent member is not known: its grant ends `lease_seconds` after its last
        # report.
        members = {
            name: ((config or PoolConfig()).share(name), member.reported_at + seconds)
            for name, member in self.members.items()
            if not member.left and now < member.reported_at + seconds and member.n < MOST_NUMBER
        }
        for line in self._going_on(now):
            changed |= line.set_grants(members, now=now)
        if dropped:
            changed |= members.keys()
        for name in changed:
            self.members[name].n += 1
        if changed or moved or forgotten:
            self._moved(*changed, *forgotten)
        unheard = {name for name in members if self._is_unheard(name, now)}
        return sorted(changed | unheard)

    def _is_unheard(self, name: str, now: float) -> bool:
        member = self.members[name]
        return member.taken < member.n and abs(now - self.granted_at.get(name, -math.inf)) >= AGAIN

    def grant(self, name: str, *, now: float) -> Granted:
        """Return the present grants of a member.

        The last period of a budget of a pool above stays in the grants until the next period
        comes. A budget that grants do not name would not limit the member.
        """
        member, self.granted_at[name] = self.members[name], now
        lines = [line for line in self._going_on(now) if name in line.grants]
        lines += self._last_of_others(self._kinds(lines))
        return Granted(
            self.pool_id, member.born, member.n, tuple(line.grant_to(name) for line in lines)
        )

    def _last_of_others(self, known: set[Kind]) -> Iterable[PoolPeriod]:
        """Return the last period of each budget of the pools above that is not among the known."""
        last: dict[Kind, PoolPeriod] = {}
        if self.config is not None and self.config.parent is not None:
            for line in sorted(self._from_above(), key=lambda line: line.begin):
                if line.kind not in known:
                    last[line.kind] = line
        return last.values()

    def _going_on(self, now: float) -> Iterator[PoolPeriod]:
        return (line for line in self.lines.values() if bounded(now) < line.end)

    def _from_above(self) -> Iterator[PoolPeriod]:
        """Yield the lines of other pools' money."""
        own = f"{self.pool_id}/"
        return (line for line in self.lines.values() if not line.name.startswith(own))

    def _open(self, now: float) -> bool:
        """Keep one line for each of the pool's own periods, and forget old lines; tell whether any
        line has changed.
        """
        before = {at: line.usd for at, line in self.lines.items()}
        config = self.config or PoolConfig()
        for budget in config.budgets:
            for at in (now, now + AHEAD):
                if (period := budget.period(bounded(at))) is None:
                    continue
                name, (begin, end) = f"{self.pool_id}/{budget.name}", period
                line = self._line((name, budget.identity, begin), budget, end)
                line.usd = bounded_usd(budget.usd + self._carried(line, budget.carry))
        self._forget(now)
        return before != {at: line.usd for at, line in self.lines.items()}

    def _drop_budgets(self) -> bool:
        """Forget budgets that are no longer declared, and tell whether there were any. A pool that
        is gone has nothing left to grant.
        """
        config = self.config
        wanted = set() if config is None else {budget.identity for budget in config.budgets}
        gone = [
            at
            for at, line in self.lines.items()
            if line.name.startswith(f"{self.pool_id}/") and line.budget.identity not in wanted
        ]
        for at in gone:
            if config is None:
                self.lines[at].usd = 0.0
            else:
                del self.lines[at]
        return config is not None and bool(gone)

    def _carried(self, line: PoolPeriod, most: float) -> float:
        """Return the dollars that the period before carries over to this one."""
        if most <= 0.0:
            return 0.0
        for (name, identity, _), other in self.lines.items():
            if (name, identity) == (line.name, line.budget.identity) and other.end == line.begin:
                return min(max(other.usd - other.exposed_usd, 0.0), most)
        return 0.0

    def _forget_members(self, now: float) -> list[str]:
        """Forget members without outstanding grants, and return them.

        These are members that have left, or that hold nothing of a present period. Their last
        report is old enough that none is on its way. Members that the declaration names stay.
        """
        config = self.config or PoolConfig()
        before = now - max(config.lease_seconds, LEASE_SECONDS)
        gone = [
            name
            for name, member in self.members.items()
            if member.reported_at <= before
            and name.partition(":")[2] not in config.shares
            and (member.left or not any(self._exposed(name, now)))
        ]
        for name in gone:
            del self.members[name]
            self.granted_at.pop(name, None)
            for line in self.lines.values():
                line.forget(name)
        return gone

    def _exposed(self, name: str, now: float) -> Iterator[float]:
        """Yield the dollars that a member may be charged in each present period."""
        lines = self._going_on(now)
        return (line.grants[name].exposed for line in lines if name in line.grants)

    def _forget(self, now: float) -> None:
        ended: dict[tuple[str, tuple[object, ...]], list[At]] = {}
        for at, line in self.lines.items():
            if line.end <= now:
                ended.setdefault(at[:2], []).append(at)
        for every in ended.values():
            for at in sorted(every, key=lambda at: at[2])[: 1 - LINES_KEPT]:
                del self.lines[at]

    def give_back(self, *, now: float) -> bool:
        """Give grants that have ended by a time back to the parent pool; tell whether there were
        any.
        """
        lapsed = [
            line for line in self._from_above() if line.until and now >= min(line.until, line.end)
        ]
        for line in lapsed:
            line.until = 0.0
        if lapsed:
            self._moved()
        return bool(lapsed)

    def reported(self, *, now: float) -> Reported | None:
        """Return the pool's report to its parent pool; None without a parent."""
        config = self.config
        if config is None or config.parent is None:
            return None
        lines = []
        for line in self._from_above():
            charged, exposed = line.charged_usd, line.exposed_usd
            is_granted = now < min(line.until, line.end)
            holds = bounded_usd(max(exposed, line.usd) if is_granted else exposed)
            curve = line.curve() if now < line.end else ()
            lines.append(Held(line.name, line.begin, holds, bounded_usd(charged), curve))
        name, held = f"pool:{self.pool_id}", tuple(lines)
        return Reported(config.parent, name, self.born, self.taken, self.moves, False, held)

    @property
    def is_done(self) -> bool:
        """Tell whether the pool is gone, and no grant of it is outstanding."""
        return self.config is None and not self.members
