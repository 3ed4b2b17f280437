"""Apply declarations of pools, reports of members and grants, and lend."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from functools import partial

from agents.group import Answers, Batch
from agents.parked import Parked
from agents.partition.partitions import Service
from agents.table import keys
from agents.table.own_routers import Shard
from agents.table.pool_notes import Note, grant_of, report_note, report_of
from agents.table.pool_records import left_of
from agents.taking.intake import WrongPartition, check_size, is_at_home
from ground.boundary import undoing
from ground.messages import Record, headers_of
from router_state.changes import Outcome
from router_state.engine import Engine
from router_state.errors import RouterStateError
from router_state.periods.holdings import Lapsed
from router_state.periods.period_budgets import Periods
from router_state.pools.pool_config import PoolConfig
from schemas.event import MalformedEvent, decode_keyed
from schemas.headers import epoch_of
from schemas.leases import LeaseNoted
from schemas.pools import decode_pool

UNPACKED_AT_ONCE = 20
"""Most routers unpacked for their report in one round, after a worker has started."""

SECONDS_AT_ONCE = 0.01
"""Seconds of the event loop after which pools wait for the next record batch."""


class _Money(Batch):
    """Events of one topic about pools, applied one by one."""

    __slots__ = ("_service",)

    def __init__(self, service: Service, messages: list[Record]) -> None:
        super().__init__(messages)
        self._service = service

    def apply(self, answers: Answers) -> None:
        """Apply the events; one that is contained already or belongs elsewhere changes nothing."""
        for message in self.messages:
            shard = self._service.shard(message.partition)
            if shard.watermarks.is_applied(message.topic, message.offset):
                continue
            answers.at = message
            try:
                self._apply(message, shard, answers)
            except (MalformedEvent, WrongPartition, RouterStateError) as error:
                key = (message.key or b"").decode(errors="replace")
                parked = Parked.of(message, error, router_id=key)
                self._service.refuse_later(parked, error, answers)

    def _apply(self, message: Record, shard: Shard, answers: Answers) -> None:
        raise NotImplementedError

    def _is_at_home(self, message: Record, key: str, answers: Answers) -> bool:
        check_size(message, self._service.batch_bytes)
        if is_at_home(message, key, partition_of=self._service.ports.partition_of):
            return True
        answers.strays.append((message, key))
        return False


class DeclarePools(_Money):
    """Put declarations of pools in force.

    Reads `pb.pools` (key pool_id; null: the pool is gone). Writes the pool to `router_states`, and
    a last report to `pb.leases` where it leaves its own pool. A declaration that is read again
    changes nothing. Dead letters: everything of `PoolDeclared`, `wrong_partition`,
    `invalid_config`.
    """

    __slots__ = ()
    name = "pools"

    def _apply(self, message: Record, shard: Shard, answers: Answers) -> None:
        pool_id, declared = decode_pool(key=message.key, value=message.value)
        if self._is_at_home(message, pool_id, answers):
            config = None if declared is None else PoolConfig.read(declared, offset=message.offset)
            now = self._service.ports.clock()
            answers.leases += shard.lending.declare(pool_id, config, now=now)


class LendMoney(_Money):
    """Take reports of members into their pool, and grants of a pool into its member.

    Reads `pb.leases` (key: whom it is for). Writes pools and routers to `router_states`, and what a
    member says to a grant to `pb.leases`. Both are numbered, so one that comes again, or late,
    changes nothing. Dead letters: everything of `LeaseNoted`, `wrong_partition`, `stale_grant`,
    `too_many_members`, `invalid_config`.
    """

    __slots__ = ()
    name = "leases"

    def _apply(self, message: Record, shard: Shard, answers: Answers) -> None:
        note = decode_keyed(LeaseNoted, key=message.key, value=message.value)
        if not self._is_at_home(message, note.router_id, answers):
            return
        now, lending = self._service.ports.clock(), shard.lending
        if note.kind == "report":
            lending.hear(report_of(note), now=now)
            return
        epoch = epoch_of(headers_of(message))
        grant = grant_of(note, offset=message.offset, epoch=epoch)
        if note.member_kind == "pool":
            answers.leases += lending.take(note.member_id, grant, now=now)
        elif (engine := shard.engine(note.member_id)) is not None:
            changes = shard.apply(note.member_id, grant, now=now)
            if changes.refusal is not None:
                raise changes.refusal
            if changes.outcome is Outcome.APPLIED:
                answers.leases += _report_router(shard, note.member_id, engine, now=now)


def leaving(shard: Shard, router_id: str, pool_id: str | None, *, now: float) -> list[Note]:
    """Return a router's last report to its pool, where its next declaration names another one, or
    none."""
    if shard.lending.members.get(router_id) in (None, pool_id):
        return []
    engine = shard.engine(router_id)
    periods = None if engine is None else engine.state.having(Periods)
    report = None if periods is None else periods.reported(router_id, now=now, left=True)
    return [] if report is None else [report_note(left_of(report), now=now)]


async def lend(service: Service) -> None:
    """Let members report and pools lend, where due."""
    for number, lane in list(service.lanes.items()):
        lending = lane.shard.lending
        if not lending:
            continue
        if number in service.lanes:
            async with lane.batch() as answers:
                answers.leases += _report(lane.shard, service)
        await asyncio.sleep(0)
        pools = deque(lending.pools)
        while pools and number in service.lanes:  # it may be lost meanwhile
            async with lane.batch() as answers:
                answers.leases += _lend(lane.shard, pools, service)
            await asyncio.sleep(0)


def _report(shard: Shard, service: Service) -> list[Note]:
    """Return the due reports of a partition's members."""
    found: list[Note] = []
    unpacked, now, lending, aside = 0, service.ports.clock(), shard.lending, service.aside
    for router_id in list(lending.members):
        if not shard.is_unpacked(router_id):
            unpacked += 1
            if unpacked > UNPACKED_AT_ONCE:
                continue
        if aside.skips("report", shard, keys.HEAD, router_id):
            continue
        with aside.trying("report", shard, keys.HEAD, router_id):
            if (engine := shard.engine(router_id)) is not None:
                found += _report_router(shard, router_id, engine, now=now, due=True)
    for pool_id in lending.pools:
        if not aside.skips("report", shard, keys.POOL, pool_id):
            with aside.trying("report", shard, keys.POOL, pool_id):
                found += lending.report_pool(pool_id, now=now, due=True)
    return found


def _report_router(
    shard: Shard, router_id: str, engine: Engine, *, now: float, due: bool = False
) -> list[Note]:
    """Return a router's report; the leases that it gives back are given back in its state first."""
    periods = engine.state.having(Periods)
    if periods is not None and any(line.has_lapsed(now) for line in periods.ledger.held):
        shard.apply(router_id, Lapsed(), now=now)
    return shard.lending.report_router(router_id, engine, now=now, due=due)


def _lend(shard: Shard, pools: deque[str], service: Service) -> list[Note]:
    """Let as many pools lend as a record batch has bytes for, and the event loop has time for; one
    that is not done stays the first."""
    found: list[Note] = []
    aside, lending, limit = service.aside, shard.lending, service.batch_bytes // 2
    began = time.perf_counter()
    while pools and limit > 0:
        pool_id = pools[0]
        if not aside.skips("lend", shard, keys.POOL, pool_id):
            with (
                aside.trying("lend", shard, keys.POOL, pool_id),
                undoing(partial(lending.forget, pool_id)),
            ):
                notes, size = lending.lend(pool_id, now=service.ports.clock(), limit=limit)
                found, limit = found + notes, limit - size - lending.weight(pool_id)
        if not lending.unsaid.get(pool_id):
            pools.popleft()
        if time.perf_counter() - began > SECONDS_AT_ONCE:
            break
    return found
