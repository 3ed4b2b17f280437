"""Sweep a router: expire commitments whose bill never came, and forget old requests."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice

from router_state import planned
from router_state.record import Records, RequestRecord
from router_state.router import RouterState

LOOK_AT = 4
"""Number of old requests that are considered for each request to be forgotten early; never more
than the limit.
"""


def expire(
    state: RouterState, records: Records, *, now: float, limit: int
) -> dict[str, RequestRecord]:
    """Close the commitments that are due, the oldest first, at most `limit`; return their
    records.
    """
    opened = state.open_commitments
    until = now - state.config.knobs.commitment_ttl_seconds
    # The clock may have stepped back between two decisions, so all are checked by age.
    due = sorted(
        (request_id for request_id, decided_at in opened.items() if decided_at <= until),
        key=opened.__getitem__,
    )[:limit]
    expired = {request_id: records[request_id] for request_id in due}
    for request_id, record in expired.items():
        usd = _expire(state, record)
        state.expire(request_id, record)
        _move(state, record, usd)
        records[request_id] = record
    state.since.expired(len(expired))
    return expired


def forget(state: RouterState, records: Records, *, before: float, limit: int) -> list[str]:
    """Forget requests in the order of their decisions, up to the first that was not decided before
    this time; return their ids.
    """
    due, opened = {}, state.open_commitments
    for request_id in islice(records, limit):
        # For a request that awaits its bill the books know the time, so its record need not be
        # unpacked.
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
    """Forget the oldest requests until `keep` are left, at most `limit` of them: finished requests
    first, then billed ones. Return their ids.
    """
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
    # The sort is stable: requests of one kind stay in order, the oldest first.
    closed.sort(key=lambda item: item[1].bill is None or item[1].label is None)
    due = dict(closed[:excess])
    state.since.forgotten(record.seq for record in due.values())
    return drop(state, records, due)


def drop(state: RouterState, records: Records, due: Mapping[str, RequestRecord]) -> list[str]:
    """Forget these requests; return their ids."""
    for request_id, record in due.items():
        if request_id in state.open_commitments:
            _move(state, record, _expire(state, record))
        state.forget(request_id, record)
        for one in state.capabilities:
            one.forgotten(record)
        del records[request_id]
    return list(due)


def _expire(state: RouterState, record: RequestRecord) -> float:
    """Stop waiting for the bills of a request; return the dollars that are no longer awaited."""
    if record.bill is None:
        for one in state.capabilities:
            one.expired(record)
        return 0.0
    plan = record.plan
    if plan is not None:
        planned.release(state, plan, plan.pending)
    # A call of a plan that was never billed counts as never made.
    usd = record.awaited_usd
    state.pacer.settle(0.0, usd, False)
    return usd


def _move(state: RouterState, record: RequestRecord, usd: float) -> None:
    if record.bill is not None and state.hooks.moved:
        state.hooks.moved(record, -usd)
