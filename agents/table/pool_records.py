"""The pools of one partition, and its routers that are members of pools."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import structs

from agents.table import keys
from agents.table.pool_notes import Note, grant_note, report_note
from agents.table.request_records import Table
from router_state.errors import DamagedState
from router_state.periods.holdings import Granted
from router_state.periods.period_budgets import Periods
from router_state.periods.reporting import Reported
from router_state.pools.pieces import pack_piece, unpack
from router_state.pools.pool import HEAD, Pool
from router_state.pools.pool_config import PoolConfig

if TYPE_CHECKING:
    from router_state.engine import Engine

OFTEN = 1.0
"""Seconds between two reports of a member whose spend moves."""
MOVED = 0.01
"""Share of what is left by which a member's spend must have moved for a report at once."""
SELDOM = 10.0
"""Seconds after which a member reports any change, however small."""
QUARTER = 0.25
"""Share of a lease's time after which a member reports that it is alive."""
ALONE = 5.0
"""Seconds after which a member that has no lease asks again."""


class Said:
    """The last report of a member; not durable, so it is repeated after a recovery."""

    __slots__ = ("again_at", "at", "left", "moves", "spent")

    def __init__(self, report: Reported, *, now: float, until: float | None) -> None:
        self.at, self.moves = now, report.moves
        self.spent = sum(held.spent_usd for held in report.lines)
        self.left = sum(max(held.holds_usd - held.spent_usd, 0.0) for held in report.lines)
        left = ALONE if until is None or until <= now else QUARTER * (until - now)
        self.again_at = now + max(left, OFTEN)


class Lending:
    """Pools, unpacked when first needed, written once a group; and the members among the routers.

    Attributes:
        dirty: pools that the group that is being applied has changed.
        unsaid: members of each pool whose leases were set, and are neither durable nor said yet.
        members: the pool of each router that has one.
        said: the last reports of routers and pools.
        granted_at: when each pool set its leases last, and at which move.
    """

    def __init__(self, table: Table) -> None:
        self._table = table
        self._pools: dict[str, Pool | None] = {}
        self._pieces: dict[str, set[str]] = {}
        self.dirty: set[str] = set()
        self.unsaid: dict[str, dict[str, None]] = {}
        self.members: dict[str, str] = {}
        self.said: dict[str, Said] = {}
        self.granted_at: dict[str, tuple[float, int]] = {}
        self.unreadable: dict[str, str] = {}

    def found(self, raw: bytes) -> None:
        """Take in a key found by a recovery."""
        kind, name, part = keys.split(raw)
        if kind == keys.POOL:
            self._pools[name] = None
            self._pieces.setdefault(name, set()).add(part)
        else:
            self.members[name] = part

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
        """Bound the bytes that a record to a pool adds to a record batch, itself apart."""
        return 2 * len(self._record(pool_id, HEAD))

    def forget(self, pool_id: str) -> None:
        """Let a pool be as it was before what the clock has done to it."""
        if pool_id in self._pieces:
            self._pools[pool_id] = None
        self.unsaid.pop(pool_id, None)
        self.dirty.discard(pool_id)

    def declare(self, pool_id: str, config: PoolConfig | None, *, now: float) -> list[Note]:
        """Put a pool's declaration in force; return its last report to a parent that it leaves."""
        pool = self.pool(pool_id)
        if pool is None:
            if config is None:
                return []
            pool = self._pools[pool_id] = Pool(pool_id)
            # Of one that can't be read nothing is left.
            pool.changed |= self._pieces.setdefault(pool_id, set())
            self.unreadable.pop(pool_id, None)
        report = pool.reported(now=now)
        pool.declare(config)
        self.dirty.add(pool_id)
        after = None if config is None else config.parent
        if report is None or report.pool_id == after:
            return []
        return [report_note(left_of(report), now=now)]

    def hear(self, report: Reported, *, now: float) -> None:
        """Apply a report to its pool; one for an unknown pool is ignored."""
        pool = self.pool(report.pool_id)
        if pool is not None and pool.hear(report, now=now):
            self.dirty.add(report.pool_id)
            # Its piece is written with this report; what it was lent is said with the next round.
            self.unsaid.get(report.pool_id, {}).pop(report.member, None)

    def take(self, pool_id: str, grant: Granted, *, now: float) -> list[Note]:
        """Apply a parent's grant to a pool; return the pool's report."""
        pool = self.pool(pool_id)
        if pool is None or not pool.take(grant):
            return []
        self.dirty.add(pool_id)
        return self.report_pool(pool_id, now=now)

    def lend(self, pool_id: str, *, now: float, limit: int) -> tuple[list[Note], int]:
        """Set a pool's leases again if anything has changed, or it is due; write and say some.

        Args:
            limit: bytes of pieces after which the others are left in `unsaid`, for another record
                batch.

        Returns: what there is to say, and how many bytes are written for it.
        """
        pool = self.pool(pool_id)
        if pool is None:
            return [], 0
        if not self.unsaid.get(pool_id):
            self._set_grants(pool, now=now)
        notes, size, unsaid = [], 0, self.unsaid.get(pool_id, {})
        while unsaid and size < limit:
            member = next(iter(unsaid))
            notes.append(grant_note(member, pool.grant(member, now=now), now=now))
            size += self._write(pool, member)
            del unsaid[member]
        return notes, size

    def _set_grants(self, pool: Pool, *, now: float) -> None:
        at, moves = self.granted_at.get(pool.pool_id, (-OFTEN, -1))
        if pool.moves == moves and abs(now - at) < OFTEN:
            return
        before = pool.moves
        self.unsaid[pool.pool_id] = dict.fromkeys(pool.set_grants(now=now))
        if pool.moves != before:
            self.dirty.add(pool.pool_id)
        self.granted_at[pool.pool_id] = now, pool.moves

    def report_pool(self, pool_id: str, *, now: float, due: bool = False) -> list[Note]:
        """Return a pool's report to its own pool; `due`: only where it is worth one."""
        pool = self.pool(pool_id)
        # Durable before it is said: a clock that steps back changes nothing about it.
        if pool is not None and pool.give_back(now=now):
            self.dirty.add(pool_id)
        report = None if pool is None else pool.reported(now=now)
        if pool is None or report is None:
            return []
        lent = [line.until for line in pool.lines.values() if line.until < float("inf")]
        return self._report(f"pool:{pool_id}", report, max(lent, default=None), now=now, due=due)

    def report_router(
        self, router_id: str, engine: Engine, *, now: float, due: bool = False
    ) -> list[Note]:
        """Return a router's report to its pool; `due`: only where it is worth one."""
        periods, name = engine.state.having(Periods), f"router:{router_id}"
        leases = None if periods is None else periods.ledger.holdings
        if leases is None or (due and not self._is_due(name, leases.moves, now=now)):
            return []
        report = None if periods is None else periods.reported(router_id, now=now)
        assert report is not None
        lent = [holding.until for line in leases.lines for holding in line.holdings.values()]
        return self._report(name, report, max(lent, default=None), now=now, due=due)

    def _is_due(self, name: str, moves: int, *, now: float) -> bool:
        """Tell whether a report may be due, before it is computed."""
        said = self.said.get(name)
        if said is None or now >= said.again_at or now < said.at:
            return True
        return moves != said.moves and now - said.at >= OFTEN

    def _report(
        self, name: str, report: Reported, until: float | None, *, now: float, due: bool
    ) -> list[Note]:
        said = self.said.get(name)
        if due and said is not None and said.at <= now < said.again_at:
            spent = sum(held.spent_usd for held in report.lines)
            moved = abs(spent - said.spent) > MOVED * said.left
            if now - said.at < (OFTEN if moved else SELDOM) or report.moves == said.moves:
                return []
        self.said[name] = Said(report, now=now, until=until)
        return [report_note(report, now=now)]

    def joined(self, router_id: str, engine: Engine | None) -> None:
        """Note a router's pool after its declaration; `engine` None: the router is removed."""
        periods = None if engine is None else engine.state.having(Periods)
        pool_id = None if periods is None else periods.ledger.spending.pool
        before = self.members.get(router_id)
        if before == pool_id:
            return
        self.said.pop(f"router:{router_id}", None)
        if before is not None:
            del self.members[router_id]
            self._table.delete(keys.key(keys.MEMBER, router_id, before))
        if pool_id is not None:
            self.members[router_id] = pool_id
            self._table.put(keys.key(keys.MEMBER, router_id, pool_id), b"1")

    def write(self) -> None:
        """Put what has changed into the table, the leases apart that are not said yet."""
        for pool_id in sorted(self.dirty):
            pool = self._pools[pool_id]
            assert pool is not None
            if pool.is_done:
                self._drop(pool_id)
                continue
            for piece in sorted(pool.changed - self.unsaid.get(pool_id, {}).keys()):
                self._write(pool, piece)
        self.dirty.clear()

    def _write(self, pool: Pool, piece: str) -> int:
        """Put one piece into the table; return about how many bytes a record batch has of it."""
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
        self.unsaid.pop(pool_id, None)
        for piece in sorted(self._pieces.pop(pool_id)):
            self._table.delete(keys.key(keys.POOL, pool_id, piece))


def left_of(report: Reported) -> Reported:
    """Return a report as the last one of its membership."""
    return structs.replace(report, left=True)
