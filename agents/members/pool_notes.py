"""Encode and decode the records between pools and their members."""

from __future__ import annotations

from agents.group import Note
from router_state.instants import utc
from router_state.periods.holdings import Grant, Granted
from router_state.periods.reporting import Held, Reported
from schemas.leases import Holding, Lease, LeaseNoted


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
    return Granted(note.pool_id, note.born, note.n, tuple(map(_grant, note.leases)), offset, epoch)


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


def _grant(lease: Lease) -> Grant:
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
