"""The pools of one partition, its routers that are members of pools, and the times at which members
report: soon if their spend moves, seldom if nothing does.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from msgspec import structs

from agents.table import keys
from agents.table.owners import Owners
from router_state.engine import Engine
from router_state.periods.holdings import Granted
from router_state.periods.period_budgets import Periods
from router_state.periods.reporting import Reported
from router_state.pools.pieces import pack_piece, unpack
from router_state.pools.pool import HEAD, Pool
from router_state.pools.pool_config import PoolConfig

OFTEN = 1.0
"""Seconds between two reports of a member whose spend moves."""
MOVED = 0.01
"""Least change of a member's spend, as a share of its money left, for a report at once."""
SELDOM = 10.0
"""Seconds after which a member reports any change, however small."""
QUARTER = 0.25
"""Share of a grant's time after which a member reports even without a change."""
ALONE = 5.0
"""Seconds after which a member without holdings reports again."""


class Last:
    """The last report of a member."""

    __slots__ = ("again_at", "at", "left", "moves", "spent")

    def __init__(self, report: Reported, *, now: float, until: float | None) -> None:
        self.at, self.moves = now, report.moves
        self.spent = sum(held.spent_usd for held in report.lines)
        self.left = sum(max(held.holds_usd - held.spent_usd, 0.0) for held in report.lines)
        left = ALONE if until is None or until <= now else QUARTER * (until - now)
        self.again_at = now + max(left, OFTEN)


class Reports:
    """The last reports of members, "router:…" or "pool:…". They are not durable, so each member
    reports again after a recovery.
    """

    def __init__(self) -> None:
        self._last: dict[str, Last] = {}

    def forget(self, member: str) -> None:
        """Forget a member that has another pool now, or none."""
        self._last.pop(member, None)

    def may_be_due(self, member: str, moves: int, *, now: float) -> bool:
        """Tell whether a report may be due, before it is computed."""
        last = self._last.get(member)
        if last is None or now >= last.again_at or now < last.at:
            return True
        return moves != last.moves and now - last.at >= OFTEN

    def take(
        self, member: str, report: Reported, until: float | None, *, now: float, due: bool
    ) -> Reported | None:
        """Return a report that is to be sent, and note that it is the member's last.

        Args:
            until: time at which the member's last holding ends.
            due: whether to return a report only if one is due.
        """
        last = self._last.get(member)
        if due and last is not None and last.at <= now < last.again_at:
            spent = sum(held.spent_usd for held in report.lines)
            moved = abs(spent - last.spent) > MOVED * last.left
            if now - last.at < (OFTEN if moved else SELDOM) or report.moves == last.moves:
                return None
        self._last[member] = Last(report, now=now, until=until)
        return report


class Pools(Owners[Pool]):
    """The pools, and the members among the routers.

    Attributes:
        unsent: by pool, members whose grants were set and are neither durable nor sent yet.
        members: the pool of each router that has one.
        reports: the last reports of routers and pools.
        granted_at: by pool, the time at which its grants were last set, and the pool's counter of
            changes then.
    """

    kind = keys.POOL

    def index(self, found: Mapping[bytes, list[bytes]]) -> None:
        """Index the pools, and the routers that are members, by the keys of the table, `found` by
        kind.
        """
        super().index(found)
        self.members = dict(keys.split(raw)[1:] for raw in found.get(keys.MEMBER, ()))
        self.unsent: dict[str, dict[str, None]] = {}
        self.reports = Reports()
        self.granted_at: dict[str, tuple[float, int]] = {}

    def __bool__(self) -> bool:
        return bool(self._owners or self.members)

    def _unpack(self, name: str, pieces: Collection[str]) -> Pool:
        return unpack(name, {piece: self.record(name, piece) for piece in sorted(pieces)})

    def _pack(self, owner: Pool, piece: str) -> bytes | None:
        return pack_piece(owner, piece)

    def weight(self, pool_id: str) -> int:
        """Return a bound of the bytes that a record for a pool adds to a record batch beside its
        own.
        """
        return 2 * len(self.record(pool_id, HEAD)) if self._owners else 0

    def forget(self, name: str) -> None:
        """Drop the unwritten changes that timed work has made to a pool."""
        super().forget(name)
        self.unsent.pop(name, None)

    def declare(self, pool_id: str, config: PoolConfig | None, *, now: float) -> Reported | None:
        """Put a pool's declaration in force; return the pool's last report to a parent that it
        leaves.
        """
        pool = self.get(pool_id)
        if pool is None:
            if config is None:
                return None
            pool = self._start(pool_id, Pool(pool_id))
        report = pool.reported(now=now)
        pool.declare(config)
        self.dirty.add(pool_id)
        after = None if config is None else config.parent
        return None if report is None or report.pool_id == after else left_of(report)

    def take_report(self, report: Reported, *, now: float) -> None:
        """Apply a report to its pool; a report to an unknown pool is ignored."""
        pool = self.get(report.pool_id)
        if pool is not None and pool.take_report(report, now=now):
            self.dirty.add(report.pool_id)
            # The member's piece is written with this report; its grant is sent with the next
            # round.
            self.unsent.get(report.pool_id, {}).pop(report.member, None)

    def take_grant(self, pool_id: str, grant: Granted, *, now: float) -> Reported | None:
        """Apply a parent's grant to a pool; return the pool's report."""
        pool = self.get(pool_id)
        if pool is None or not pool.take(grant):
            return None
        self.dirty.add(pool_id)
        return self.report_pool(pool_id, now=now)

    def grant(
        self, pool_id: str, *, now: float, limit: int
    ) -> tuple[list[tuple[str, Granted]], int]:
        """Set a pool's grants again if anything has changed or the grants are due, and write some
        of them. Return the grants to be sent, by member, and the bytes written for them.

        Args:
            limit: bytes of pieces after which further grants are left in `unsent`, for another
                record batch.
        """
        pool = self.get(pool_id)
        if pool is None:
            return [], 0
        if not self.unsent.get(pool_id):
            self._set_grants(pool, now=now)
        grants, size, unsent = [], 0, self.unsent.get(pool_id, {})
        while unsent and size < limit:
            member = next(iter(unsent))
            grants.append((member, pool.grant(member, now=now)))
            size += self._write(pool_id, pool, member)
            del unsent[member]
        return grants, size

    def _set_grants(self, pool: Pool, *, now: float) -> None:
        at, moves = self.granted_at.get(pool.pool_id, (-OFTEN, -1))
        if pool.moves == moves and abs(now - at) < OFTEN:
            return
        before = pool.moves
        self.unsent[pool.pool_id] = dict.fromkeys(pool.set_grants(now=now))
        if pool.moves != before:
            self.dirty.add(pool.pool_id)
        self.granted_at[pool.pool_id] = now, pool.moves

    def report_pool(self, pool_id: str, *, now: float, due: bool = False) -> Reported | None:
        """Return a pool's report to its parent; `due`: only if a report is due."""
        pool = self.get(pool_id)
        # The return of money is durable before it is sent: a clock that steps back does not undo
        # it.
        if pool is not None and pool.give_back(now=now):
            self.dirty.add(pool_id)
        report = None if pool is None else pool.reported(now=now)
        if pool is None or report is None:
            return None
        ends = [line.until for line in pool.lines.values() if line.until < float("inf")]
        until = max(ends, default=None)
        return self.reports.take(f"pool:{pool_id}", report, until, now=now, due=due)

    def report_router(
        self, router_id: str, engine: Engine, *, now: float, due: bool = False
    ) -> Reported | None:
        """Return a router's report to its pool; `due`: only if a report is due."""
        periods, name = engine.state.having(Periods), f"router:{router_id}"
        held = None if periods is None else periods.ledger.holdings
        if held is None or (due and not self.reports.may_be_due(name, held.moves, now=now)):
            return None
        report = None if periods is None else periods.reported(router_id, now=now)
        assert report is not None
        ends = [holding.until for line in held.lines for holding in line.holdings.values()]
        return self.reports.take(name, report, max(ends, default=None), now=now, due=due)

    def joined(self, router_id: str, engine: Engine | None) -> None:
        """Note a router's pool after its declaration; `engine` None: the router is removed."""
        periods = None if engine is None else engine.state.having(Periods)
        pool_id = None if periods is None else periods.ledger.spending.pool
        before = self.members.get(router_id)
        if before == pool_id:
            return
        self.reports.forget(f"router:{router_id}")
        if before is not None:
            del self.members[router_id]
            self._table.delete(keys.key(keys.MEMBER, router_id, before))
        if pool_id is not None:
            self.members[router_id] = pool_id
            self._table.put(keys.key(keys.MEMBER, router_id, pool_id), b"1")

    def _held_back(self, name: str) -> Collection[str]:
        # A grant is written when it is sent.
        return self.unsent.get(name, ())

    def _drop(self, name: str) -> None:
        super()._drop(name)
        self.unsent.pop(name, None)


def left_of(report: Reported) -> Reported:
    """Return a report that says that its member leaves the pool."""
    return structs.replace(report, left=True)
