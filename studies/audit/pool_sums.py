"""Prove that the sums agree: grants of pools, and what members hold, have spent and returned."""

from __future__ import annotations

import math
from collections.abc import Iterator

from agents.members.exchange_grants import grant_of, report_of
from router_state.engine import Engine
from router_state.periods.holdings import Grant, Granted, Holdings
from router_state.periods.period_budgets import Periods
from router_state.periods.reporting import Reported
from router_state.pools.pool import Pool
from router_state.pools.pool_member import Member
from router_state.pools.pool_period import MemberGrant, PoolPeriod
from schemas.event import MalformedEvent, decode
from schemas.leases import LeaseNoted
from studies.audit.findings import Findings, Kind
from studies.audit.recovered_state import Evidence
from studies.audit.topic_reading import Progress

CLOSE = 1e-6
"""Dollars by which sums may differ: grants are whole millionths."""


class PoolCheck:
    """A check that collects pools and their members from all partitions, and then compares them.

    A member and its pool may be on different partitions.
    """

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self._pools: dict[str, Pool] = {}
        self._routers: dict[str, tuple[Engine, Holdings]] = {}
        self._heard: dict[tuple[str, str], Reported] = {}
        self._granted: dict[tuple[str, str, int, int], Granted] = {}

    def add(self, evidence: Evidence, read: Progress) -> None:
        """Add one partition's pools and members."""
        for pool_id in evidence.state.pools.names:
            pool = evidence.state.pools.get(pool_id)
            if pool is None:
                why = evidence.state.pools.unreadable[pool_id]
                self._findings.violation(Kind.CORRUPT, f"pool {pool_id}", why)
            else:
                self._pools[pool_id] = pool
        for router_id, engine in evidence.engines.items():
            periods = engine.state.having(Periods)
            if periods is not None and periods.ledger.holdings is not None:
                self._routers[router_id] = engine, periods.ledger.holdings
        last = evidence.watermarks.get("leases", -1)
        for record in read("leases", evidence.number):
            self._findings.checked["leases"] += 1
            try:
                note = decode(LeaseNoted, record.value)
            except MalformedEvent:
                continue  # refused, as its dead letter says
            if note.kind == "grant":
                self._grant(note)
            elif record.offset <= last:
                self._take_report(report_of(note))

    def _grant(self, note: LeaseNoted) -> None:
        """Note a grant; grants of one number must be equal."""
        grant = grant_of(note, offset=-1)
        member = f"{note.member_kind}:{note.member_id}"
        at = note.pool_id, member, note.born, note.n
        before = self._granted.setdefault(at, grant)
        if before != grant and not _follows(before, grant):
            where = f"pool {note.pool_id}, {member}"
            self._findings.violation(Kind.POOL, where, f"grant {note.n} says two things")

    def _take_report(self, report: Reported) -> None:
        at = report.pool_id, report.member
        before = self._heard.get(at)
        if before is None or (report.born, report.moves) >= (before.born, before.moves):
            self._heard[at] = report

    def run(self) -> None:
        """Compare everything."""
        for pool in self._pools.values():
            self._findings.checked["pools"] += 1
            for line in pool.lines.values():
                self._findings.checked["pool_lines"] += 1
                self._check_line(pool, line)
            for name, member in pool.members.items():
                self._check_member(pool, name, member)

    def _check_line(self, pool: Pool, line: PoolPeriod) -> None:
        """Check that no more was granted than the line has."""
        grants = line.grants.values()
        every = (one.before + max(one.usd, one.most) for one in grants)
        granted = math.fsum((line.gone_usd, *every))
        where = f"pool {pool.pool_id}, {line.name} from {line.begin:.0f}"
        if granted <= max(line.usd, line.charged_usd, self._granted_to(pool, line)) + CLOSE:
            return
        why = f"{granted!r} are granted of {line.usd!r}"
        # The budget was lowered: earlier holdings are being returned, in several rounds.
        if all(
            grant.usd <= grant.charged + CLOSE or grant.most or self._shrinks(pool, name, line)
            for name, grant in line.grants.items()
        ):
            self._findings.unprovable("pool", where, why)
        else:
            self._findings.violation(Kind.POOL, where, why)

    def _shrinks(self, pool: Pool, name: str, line: PoolPeriod) -> bool:
        """Tell whether the last change of a member's grant has made it smaller."""
        member = pool.members.get(name)
        if member is None:
            return False
        after = math.inf
        for n in range(member.n, 0, -1):
            grant = self._granted.get((pool.pool_id, name, member.born, n))
            usd = [
                one.usd
                for one in (() if grant is None else grant.lines)
                if (one.line, one.begin) == (line.name, line.begin)
            ]
            if usd and after < usd[0]:
                return True
            if not usd or after not in (math.inf, usd[0]):
                return False
            after = usd[0]
        return False

    def _granted_to(self, pool: Pool, line: PoolPeriod) -> float:
        """Return what the parent pool counts as granted to this pool; money asked back is on its
        way."""
        above = None if pool.config is None else self._pools.get(pool.config.parent or "")
        other = above and above.lines.get((line.name, line.budget.identity, line.begin))
        grant = other and other.grants.get(f"pool:{pool.pool_id}")
        return grant.exposed if grant else 0.0

    def _check_member(self, pool: Pool, name: str, member: Member) -> None:
        """Check the pool's account of a member against the member's reports and holdings."""
        where = f"pool {pool.pool_id}, {name}"
        heard = self._heard.get((pool.pool_id, name))
        if heard is not None and heard.born == member.born and heard.moves != member.moves:
            self._findings.violation(
                Kind.POOL,
                where,
                f"report {heard.moves} was read, {member.moves} is in the state",
            )
        kind, _, member_id = name.partition(":")
        if kind == "pool" or member.left or member_id not in self._routers:
            return
        _, leases = self._routers[member_id]
        if (leases.pool_id, leases.born) != (pool.pool_id, member.born):
            return
        if leases.n > member.n:
            self._findings.violation(
                Kind.POOL, where, f"it has taken grant {leases.n}, the last one is {member.n}"
            )
        for line, grant, usd in _held(pool, name, leases):
            if usd > max(grant.usd, grant.most, grant.holds) + CLOSE:
                self._findings.violation(
                    Kind.POOL,
                    f"{where}, {line.name} from {line.begin:.0f}",
                    f"it holds {usd!r}, and {max(grant.usd, grant.most)!r} were granted",
                )


def _held(
    pool: Pool, name: str, leases: Holdings
) -> Iterator[tuple[PoolPeriod, MemberGrant, float]]:
    """Yield each line of a pool with the pool's grant to a router and the dollars that the router
    holds.
    """
    held = {
        (line.line, begin): holding.usd
        for line in leases.lines
        for begin, holding in line.holdings.items()
    }
    for line in pool.lines.values():
        grant, usd = line.grants.get(name), held.get((line.name, line.begin))
        if grant is not None and usd is not None:
            yield line, grant, usd


def _follows(before: Granted, after: Granted) -> bool:
    """Tell whether a grant only repeats another one without its ended periods."""
    kept: set[Grant] = set(before.lines) & set(after.lines)
    return len(kept) == min(len(before.lines), len(after.lines))
