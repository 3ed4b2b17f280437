"""The pools of one partition, and its routers that are members of pools."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import structs

from agents.group import Note
from agents.interfaces import Table
from agents.table import keys
from agents.table.member_reports import OFTEN, Reports
from agents.table.pool_notes import grant_note, report_note
from router_state.engine import Engine
from router_state.errors import DamagedState
from router_state.periods.holdings import Granted
from router_state.periods.period_budgets import Periods
from router_state.periods.reporting import Reported
from router_state.pools.pieces import pack_piece, unpack
from router_state.pools.pool import HEAD, Pool
from router_state.pools.pool_config import PoolConfig


class Pools:
    """The pools, unpacked when first needed and written once per group, and the members among the
    routers.

    Attributes:
        dirty: pools that the present group has changed.
        unsent: by pool, members whose grants were set and are neither durable nor sent yet.
        members: the pool of each router that has one.
        reports: the last reports of routers and pools.
        granted_at: by pool, the time at which it last set its grants, and its counter of changes
            then.
        unreadable: pools whose records can't be read, and the reason.
    """

    def __init__(self, table: Table, found: Mapping[bytes, list[bytes]]) -> None:
        self._table = table
        self.index(found)

    def index(self, found: Mapping[bytes, list[bytes]]) -> None:
        """Take them from the table, whose keys were found by their kinds."""
        self._pools: dict[str, Pool | None] = {}
        self._pieces: dict[str, set[str]] = {}
        for raw in found.get(keys.POOL, ()):
            _, name, part = keys.split(raw)
            self._pools[name] = None
            self._pieces.setdefault(name, set()).add(part)
        self.members = dict(keys.split(raw)[1:] for raw in found.get(keys.MEMBER, ()))
        self.dirty: set[str] = set()
        self.unsent: dict[str, dict[str, None]] = {}
        self.reports = Reports()
        self.granted_at: dict[str, tuple[float, int]] = {}
        self.unreadable: dict[str, str] = {}

    def __bool__(self) -> bool:
        return bool(self._pools or self.members)

    @property
    def pools(self) -> list[str]:
        """Return the ids of all pools."""
        return list(self._pools)

    def pool(self, pool_id: str) -> Pool | None:
        """Return a pool; None if it does not exist or can't be read."""
        found = self._pools.get(pool_id)
        if found is None and pool_id in self._pools and pool_id not in self.unreadable:
            pieces = sorted(self._pieces[pool_id])
            try:
                found = self._pools[pool_id] = unpack(
                    pool_id, {name: self._record(pool_id, name) for name in pieces}
                )
            except DamagedState as error:
                self.unreadable[pool_id] = str(error)
        return found

    def _record(self, pool_id: str, piece: str) -> bytes:
        return self._table.get(keys.key(keys.POOL, pool_id, piece)) or b""

    def weight(self, pool_id: str) -> int:
        """Return a bound of the bytes that a record for a pool adds to a record batch beside its
        own.
        """
        return 2 * len(self._record(pool_id, HEAD)) if self._pools else 0

    def forget(self, pool_id: str) -> None:
        """Drop the unwritten changes that timed work has made to a pool."""
        if pool_id in self._pieces:
            self._pools[pool_id] = None
        self.unsent.pop(pool_id, None)
        self.dirty.discard(pool_id)

    def declare(self, pool_id: str, config: PoolConfig | None, *, now: float) -> list[Note]:
        """Put a pool's declaration in force; return its last report to a parent that it leaves."""
        pool = self.pool(pool_id)
        if pool is None:
            if config is None:
                return []
            pool = self._pools[pool_id] = Pool(pool_id)
            # A pool that can't be read starts without its earlier state.
            pool.changed |= self._pieces.setdefault(pool_id, set())
            self.unreadable.pop(pool_id, None)
        report = pool.reported(now=now)
        pool.declare(config)
        self.dirty.add(pool_id)
        after = None if config is None else config.parent
        if report is None or report.pool_id == after:
            return []
        return [report_note(left_of(report), now=now)]

    def take_report(self, report: Reported, *, now: float) -> None:
        """Apply a report to its pool; one for an unknown pool is ignored."""
        pool = self.pool(report.pool_id)
        if pool is not None and pool.hear(report, now=now):
            self.dirty.add(report.pool_id)
            # The member's piece is written with this report; its grant is sent with the next
            # round.
            self.unsent.get(report.pool_id, {}).pop(report.member, None)

    def take_grant(self, pool_id: str, grant: Granted, *, now: float) -> list[Note]:
        """Apply a parent's grant to a pool; return the pool's report."""
        pool = self.pool(pool_id)
        if pool is None or not pool.take(grant):
            return []
        self.dirty.add(pool_id)
        return self.report_pool(pool_id, now=now)

    def grant(self, pool_id: str, *, now: float, limit: int) -> tuple[list[Note], int]:
        """Set a pool's grants again if anything has changed or they are due; write and send some
        of them.

        Args:
            limit: bytes of pieces after which further grants are left in `unsent`, for another
                record batch.
            Returns: the grants, and the number of bytes written for them.
        """
        pool = self.pool(pool_id)
        if pool is None:
            return [], 0
        if not self.unsent.get(pool_id):
            self._set_grants(pool, now=now)
        notes, size, unsent = [], 0, self.unsent.get(pool_id, {})
        while unsent and size < limit:
            member = next(iter(unsent))
            notes.append(grant_note(member, pool.grant(member, now=now), now=now))
            size += self._write(pool, member)
            del unsent[member]
        return notes, size

    def _set_grants(self, pool: Pool, *, now: float) -> None:
        at, moves = self.granted_at.get(pool.pool_id, (-OFTEN, -1))
        if pool.moves == moves and abs(now - at) < OFTEN:
            return
        before = pool.moves
        self.unsent[pool.pool_id] = dict.fromkeys(pool.set_grants(now=now))
        if pool.moves != before:
            self.dirty.add(pool.pool_id)
        self.granted_at[pool.pool_id] = now, pool.moves

    def report_pool(self, pool_id: str, *, now: float, due: bool = False) -> list[Note]:
        """Return a pool's report to its parent; `due`: only if a report is due."""
        pool = self.pool(pool_id)
        # The return of money is durable before it is sent: a clock that steps back does not undo
        # it.
        if pool is not None and pool.give_back(now=now):
            self.dirty.add(pool_id)
        report = None if pool is None else pool.reported(now=now)
        if pool is None or report is None:
            return []
        ends = [line.until for line in pool.lines.values() if line.until < float("inf")]
        until = max(ends, default=None)
        return self.reports.send(f"pool:{pool_id}", report, until, now=now, due=due)

    def report_router(
        self, router_id: str, engine: Engine, *, now: float, due: bool = False
    ) -> list[Note]:
        """Return a router's report to its pool; `due`: only if a report is due."""
        periods, name = engine.state.having(Periods), f"router:{router_id}"
        held = None if periods is None else periods.ledger.holdings
        if held is None or (due and not self.reports.may_be_due(name, held.moves, now=now)):
            return []
        report = None if periods is None else periods.reported(router_id, now=now)
        assert report is not None
        ends = [holding.until for line in held.lines for holding in line.holdings.values()]
        return self.reports.send(name, report, max(ends, default=None), now=now, due=due)

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

    def write(self) -> None:
        """Put the changes into the table, except grants that are not sent yet."""
        for pool_id in sorted(self.dirty):
            pool = self._pools[pool_id]
            assert pool is not None
            if pool.is_done:
                self._drop(pool_id)
                continue
            for piece in sorted(pool.changed - self.unsent.get(pool_id, {}).keys()):
                self._write(pool, piece)
        self.dirty.clear()

    def _write(self, pool: Pool, piece: str) -> int:
        """Put one piece into the table; return its approximate bytes in a record batch."""
        pool.changed.discard(piece)
        at, packed = keys.key(keys.POOL, pool.pool_id, piece), pack_piece(pool, piece)
        if packed is None:
            self._pieces[pool.pool_id].discard(piece)
            self._table.delete(at)
            return len(at)
        self._pieces[pool.pool_id].add(piece)
        self._table.put(at, packed)
        return len(at) + len(packed)

    def _drop(self, pool_id: str) -> None:
        del self._pools[pool_id]
        self.unsent.pop(pool_id, None)
        for piece in sorted(self._pieces.pop(pool_id)):
            self._table.delete(keys.key(keys.POOL, pool_id, piece))


def left_of(report: Reported) -> Reported:
    """Return a report as the last one of its membership."""
    return structs.replace(report, left=True)
