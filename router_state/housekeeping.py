"""What time and bounds do to a router: commitments whose bill never came, requests that are not remembered any longer."""

from __future__ import annotations

from collections.abc import MutableMapping
from itertools import islice

from router_state import accounts
from router_state.record import RequestRecord
from router_state.state import RouterState

LOOK_AT = 4
"""How many old requests are looked at for each one that is to be forgotten early; never more than the limit."""


def expire(state: RouterState, records: MutableMapping[str, RequestRecord], *, now: float, limit: int) -> int:
    """Close the commitments that are due, the oldest first, at most `limit`; return how many."""
    opened = state.open_commitments
    until = now - state.config.knobs.commitment_ttl_seconds
    # The clock may have stepped back between two decisions: all are looked at, and age decides.
    due = sorted((request_id for request_id, decided_at in opened.items() if decided_at <= until), key=opened.__getitem__)[:limit]
    for request_id in due:
        record = records[request_id]
        accounts.close(state, request_id, record)
        record.expired = True
        records[request_id] = record
    state.expired += len(due)
    return len(due)


def forget(state: RouterState, records: MutableMapping[str, RequestRecord], *, before: float, limit: int) -> int:
    """Forget requests from the first decided on, up to one that was not decided before this time; return how many."""
    due = {}
    for request_id in islice(records, limit):
        record = records[request_id]
        if record.decided_at >= before:
            break
        due[request_id] = record
    _drop(state, records, due)
    return len(due)


def forget_early(state: RouterState, records: MutableMapping[str, RequestRecord], *, keep: int, limit: int) -> int:
    """Forget requests beyond `keep`, at most `limit`: among the oldest the finished ones, then the billed ones; return how many."""
    excess = min(len(records) - keep, limit)
    if excess <= 0:
        return 0
    oldest = ((request_id, records[request_id]) for request_id in islice(records, min(LOOK_AT * excess, limit)))
    closed = [(request_id, record) for request_id, record in oldest if request_id not in state.open_commitments]
    closed.sort(key=lambda item: item[1].bill is None or item[1].label is None)
    due = dict(closed[:excess])
    _drop(state, records, due)
    return len(due)


def _drop(state: RouterState, records: MutableMapping[str, RequestRecord], due: dict[str, RequestRecord]) -> None:
    gone = state.forgotten
    for request_id, record in due.items():
        accounts.close(state, request_id, record)
        del records[request_id]
        gone.requests += 1
        gone.rewards += record.label is not None
        if record.bill is not None:
            gone.bills += 1
            gone.spend_usd += record.bill.cost_usd
