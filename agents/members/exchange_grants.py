"""Apply declarations of pools, reports of members and grants of pools, and let members report and
pools grant. The records between them are encoded and decoded at the end.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from functools import partial

from agents.group import Answers, Note
from agents.members.one_by_one import OneByOne
from agents.partition.lane import SECONDS_AT_ONCE
from agents.partition.partition import Partition
from agents.table import keys
from agents.table.pool_records import left_of
from ground.boundary import undoing
from ground.messages import Record, headers_of
from router_state.changes import Outcome
from router_state.engine import Engine
from router_state.instants import utc
from router_state.periods.holdings import Grant, Granted, Lapsed
from router_state.periods.period_budgets import Periods
from router_state.periods.reporting import Held, Reported
from router_state.pools.pool_config import PoolConfig
from schemas.event import decode_keyed
from schemas.headers import epoch_of
from schemas.leases import Holding, Lease, LeaseNoted
from schemas.pools import decode_pool

UNPACKED_AT_ONCE = 20
"""Most routers that one round unpacks for their report, after a worker has started."""


class DeclarePools(OneByOne):
    """Put declarations of pools in force.

    Reads `pb.pools` (key pool_id; null: the pool is gone). Writes the pool to `router_states`, and
    a last report to `pb.leases` if the pool leaves its parent. A declaration that is read again
    changes nothing. Dead letters: all reasons of `PoolDeclared`, `wrong_partition`,
    `invalid_config`.
    """

    __slots__ = ()
    name = "pools"

    def _apply(self, message: Record, partition: Partition, answers: Answers) -> None:
        pool_id, declared = decode_pool(key=message.key, value=message.value)
        if partition.admit(message, pool_id, answers):
            config = None if declared is None else PoolConfig.read(declared, offset=message.offset)
            now = partition.clock()
            answers.notes += _notes(partition.pools.declare(pool_id, config, now=now), now=now)


class ExchangeGrants(OneByOne):
    """Apply reports of members to their pools, and grants of pools to their members.

    Reads `pb.leases` (key: the recipient). Writes pools and routers to `router_states`, and a
    member's report about a new grant to `pb.leases`. Reports and grants are numbered, so one that
    comes again, or late, changes nothing. Dead letters: all reasons of `LeaseNoted`,
    `wrong_partition`, `stale_grant`, `too_many_members`, `invalid_config`.
    """

    __slots__ = ()
    name = "leases"

    def _apply(self, message: Record, partition: Partition, answers: Answers) -> None:
        note = decode_keyed(LeaseNoted, key=message.key, value=message.value)
        if not partition.admit(message, note.router_id, answers):
            return
        now, pools = partition.clock(), partition.pools
        if note.kind == "report":
            pools.take_report(report_of(note), now=now)
            return
        epoch = epoch_of(headers_of(message))
        grant = grant_of(note, offset=message.offset, epoch=epoch)
        if note.member_kind == "pool":
            answers.notes += _notes(pools.take_grant(note.member_id, grant, now=now), now=now)
        elif (engine := partition.routers.engine(note.member_id)) is not None:
            changes = partition.routers.apply(note.member_id, grant, now=now)
            if changes.refusal is not None:
                raise changes.refusal
            if changes.outcome is Outcome.APPLIED:
                answers.notes += _report_router(partition, note.member_id, engine)


def leaving_pool(partition: Partition, router_id: str, pool_id: str | None) -> list[Note]:
    """Return a router's last report to its pool if the router's next declaration names another
    pool, or none.
    """
    if partition.pools.members.get(router_id) in (None, pool_id):
        return []
    now, engine = partition.clock(), partition.routers.engine(router_id)
    periods = None if engine is None else engine.state.having(Periods)
    report = None if periods is None else periods.reported(router_id, now=now, left=True)
    return _notes(None if report is None else left_of(report), now=now)


def _notes(report: Reported | None, *, now: float) -> list[Note]:
    return [] if report is None else [report_note(report, now=now)]


async def report_and_grant(partition: Partition) -> None:
    """Send the due reports of members, and let pools grant. Raises Gone."""
    if not partition.pools:
        return
    async with partition.lane.group() as answers:
        answers.notes += _report(partition)
    await asyncio.sleep(0)
    pool_ids = deque(partition.pools.names)
    while pool_ids:
        async with partition.lane.group() as answers:
            answers.notes += _grant(pool_ids, partition)
        await asyncio.sleep(0)


def _report(partition: Partition) -> list[Note]:
    """Return the due reports of a partition's members."""
    found: list[Note] = []
    routers, pools, aside = partition.routers, partition.pools, partition.aside
    unpacked = 0
    for router_id in list(pools.members):
        if not routers.is_unpacked(router_id):
            unpacked += 1
            if unpacked > UNPACKED_AT_ONCE:
                continue
        if aside.skips("report", keys.HEAD, router_id):
            continue
        with aside.trying("report", keys.HEAD, router_id):
            if (engine := routers.engine(router_id)) is not None:
                found += _report_router(partition, router_id, engine, due=True)
    for pool_id in pools.names:
        if not aside.skips("report", keys.POOL, pool_id):
            with aside.trying("report", keys.POOL, pool_id):
                now = partition.clock()
                found += _notes(pools.report_pool(pool_id, now=now, due=True), now=now)
    return found


def _report_router(
    partition: Partition, router_id: str, engine: Engine, *, due: bool = False
) -> list[Note]:
    """Return a router's report. Holdings that have ended are first given back in the router's
    state.
    """
    now, periods = partition.clock(), engine.state.having(Periods)
    if periods is not None and any(line.has_lapsed(now) for line in periods.ledger.held):
        partition.routers.apply(router_id, Lapsed(), now=now)
    return _notes(partition.pools.report_router(router_id, engine, now=now, due=due), now=now)


def _grant(pool_ids: deque[str], partition: Partition) -> list[Note]:
    """Let as many pools grant as fit into the bytes of a record batch and the event loop's time; a
    pool that is not done stays the first.
    """
    found: list[Note] = []
    aside, pools, limit = partition.aside, partition.pools, partition.group_bytes // 2
    began = time.perf_counter()
    while pool_ids and limit > 0:
        pool_id = pool_ids[0]
        if not aside.skips("lend", keys.POOL, pool_id):
            with (
                aside.trying("lend", keys.POOL, pool_id),
                undoing(partial(pools.forget, pool_id)),
            ):
                now = partition.clock()
                grants, size = pools.grant(pool_id, now=now, limit=limit)
                found += [grant_note(member, grant, now=now) for member, grant in grants]
                limit -= size + pools.weight(pool_id)
        if not pools.unsent.get(pool_id):
            pool_ids.popleft()
        if time.perf_counter() - began > SECONDS_AT_ONCE:
            break
    return found


def report_note(report: Reported, *, now: float) -> Note:
    """Return a report to a pool."""
    kind, _, member_id = report.member.partition(":")
    note = LeaseNoted(
        kind="report",
        router_id=report.pool_id,
        pool_id=report.pool_id,
        member_id=member_id,
        member_kind="pool" if kind == "pool" else "router",
        born=report.born,
        n=report.n,
        moves=report.moves,
        left=report.left,
        holdings=tuple(
            Holding(
                line=one.line,
                begins=utc(one.begin),
                holds_usd=one.holds_usd,
                spent_usd=one.spent_usd,
                curve=one.curve,
            )
            for one in report.lines
        ),
        observed_at=utc(now),
    )
    return report.pool_id, note


def report_of(note: LeaseNoted) -> Reported:
    """Invert `report_note`."""
    lines = tuple(
        Held(one.line, one.begins.timestamp(), one.holds_usd, one.spent_usd, one.curve)
        for one in note.holdings
    )
    member = f"{note.member_kind}:{note.member_id}"
    return Reported(note.pool_id, member, note.born, note.n, note.moves, note.left, lines)


def grant_note(member: str, grant: Granted, *, now: float) -> Note:
    """Return the record of a grant; `member` is "router:" or "pool:" and an id."""
    kind, _, member_id = member.partition(":")
    note = LeaseNoted(
        kind="grant",
        router_id=member_id,
        pool_id=grant.pool_id,
        member_id=member_id,
        member_kind="pool" if kind == "pool" else "router",
        born=grant.born,
        n=grant.n,
        leases=tuple(map(_lease, grant.lines)),
        observed_at=utc(now),
    )
    return member_id, note


def grant_of(note: LeaseNoted, *, offset: int, epoch: int = -1) -> Granted:
    """Invert `grant_note`; `offset` is the note's offset on its topic, `epoch` the number of the
    owner that sent it.
    """
    return Granted(
        note.pool_id, note.born, note.n, tuple(map(_granted, note.leases)), offset, epoch
    )


def _lease(grant: Grant) -> Lease:
    return Lease(
        line=grant.line,
        per=grant.per,
        timezone=grant.zone,
        starts=None if grant.starts is None else utc(grant.starts),
        expires=None if grant.ends is None else utc(grant.ends),
        begins=utc(grant.begin),
        ends=utc(grant.end),
        usd=grant.usd,
        until=utc(grant.until),
    )


def _granted(lease: Lease) -> Grant:
    return Grant(
        lease.line,
        lease.per,
        lease.timezone,
        None if lease.starts is None else lease.starts.timestamp(),
        None if lease.expires is None else lease.expires.timestamp(),
        lease.begins.timestamp(),
        lease.ends.timestamp(),
        lease.usd,
        lease.until.timestamp(),
    )
