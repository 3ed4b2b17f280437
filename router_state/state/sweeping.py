"""Do to a router what time and bounds ask for: commitments whose bill never came, requests that are
not remembered any longer.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice

from router_state import planned
from router_state.record import Records, RequestRecord
from router_state.router import RouterState

LOOK_AT = 4
"""Old requests that are looked at for each one that is to be forgotten early; never more than
the limit."""


def expire(
    state: RouterState, records: Records, *, now: float, limit: int
) -> dict[str, RequestRecord]:
    """Close the commitments that are due, the oldest first, at most `limit`; return their
    requests."""
    opened = state.open_commitments
    until = now - state.config.knobs.commitment_ttl_seconds
    # The clock may have stepped back between two decisions: all are looked at, and age decides.
    due = sorted(
        (request_id for request_id, decided_at in opened.items() if decided_at <= until),
        key=opened.__getitem__,
    )[:limit]
    expired = {request_id: records[request_id] for request_id in due}
    for request_id, record in expired.items():
        _expire(state, record)
        state.expire(request_id, record)
        records[request_id] = record
    state.since.expired(len(expired))
    return expired


def forget(state: RouterState, records: Records, *, before: float, limit: int) -> list[str]:
    """Forget requests from the first decided on, up to one that was not decided before this time;
    return which."""
    due, opened = {}, state.open_commitments
    for request_id in islice(records, limit):
        # The books say it of a request that awaits its bill: its record need not be unpacked.
        if (decided_at := opened.get(request_id)) is not None and decided_at >= before:
            break
        record = records[request_id]
        if record.decided_at >= before:
            break
        due[request_id] = record
    if due:
        state.since.forgotten_until(next(reversed(due.values())).seq)
    return drop(state, records, due)


def forget_early(state: RouterState, records: Records, *, keep: int, limit: int) -> list[str]:
    """Forget requests beyond `keep`, at most `limit`: among the oldest the finished ones, then the
    billed ones; return which."""
    excess = min(len(records) - keep, limit)
    if excess <= 0:
        return []
    oldest = (
        (request_id, records[request_id])
        for request_id in islice(records, min(LOOK_AT * excess, limit))
    )
    closed = [
        (request_id, record)
        for request_id, record in oldest
        if request_id not in state.open_commitments
    ]
    # A stable sort: among those that are finished, and among the others, still the oldest first.
    closed.sort(key=lambda item: item[1].bill is None or item[1].label is None)
    due = dict(closed[:excess])
    state.since.forgotten(record.seq for record in due.values())
    return drop(state, records, due)


def drop(state: RouterState, records: Records, due: Mapping[str, RequestRecord]) -> list[str]:
    """Forget these requests; return which."""
    for request_id, record in due.items():
        if request_id in state.open_commitments:
            _expire(state, record)
        state.forget(request_id, record)
        for one in state.capabilities:
            one.forgotten(record)
        del records[request_id]
    return list(due)


def _expire(state: RouterState, record: RequestRecord) -> None:
    if record.bill is None:
        for one in state.capabilities:
            one.expired(record)
        return
    plan = record.plan
    if plan is not None and plan.may_go_on:
        planned.release(state, plan)
    # Of a plan, the call that was never billed was never made.
    usd = record.awaited_usd
    state.pacer.settle(0.0, usd, False)
    for moved in state.hooks.moved:
        moved(record, -usd)
