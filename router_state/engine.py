"""The engine of one router: requests, bills, rewards and declarations in; decisions and new state
out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Self

from router_state import feedback, planned, registered
from router_state.changes import APPLIED, DUPLICATE, HEAD, Changes, Outcome
from router_state.config import RouterConfig
from router_state.deciding import decide
from router_state.errors import RouterStateError
from router_state.events import (
    Aged,
    Asked,
    Charged,
    Crowded,
    Event,
    Judged,
    OfCapability,
    Orphaned,
    Redeclared,
    Verified,
    Waited,
)
from router_state.record import Records, RequestRecord, unknown
from router_state.router import RouterState
from router_state.state import portable, redeclaring, sweeping
from router_state.state.state_pieces import piece_names
from router_state.totals import checked_cost


class Engine:
    """The engine of one router. Every event may be given again: an event that the state contains
    changes nothing.

    `apply` is the one entrance: it takes an event as data, and returns the changes as data.

    Args:
        state: the router's state, moved in place.
        records: the router's requests by request_id; the engine assigns each changed record back.
    """

    __slots__ = ("records", "state")

    def __init__(self, state: RouterState, records: Records) -> None:
        self.state = state
        self.records = records

    @classmethod
    def start(cls, config: RouterConfig, records: Records | None = None) -> Self:
        """Return an engine for a router that was just declared; a declared snapshot is its first
        state.

        Raises:
            InvalidConfig: the declaration contradicts itself, or its snapshot.
            CorruptSnapshot: the snapshot can't be read.
        """
        state, now = RouterState(config), 0.0
        if config.snapshot is not None:
            state = portable.start(config.snapshot, config)
            now, config = state.latest, replace(config, snapshot=None)
        engine = cls(state, {} if records is None else records)
        redeclaring.declare(state, config, now=now)
        state.since.declared(config.offset)
        # Unchanged pieces are written, too, so that a reader misses none.
        state.journal.pieces.update(piece_names(state))
        return engine

    def apply(self, event: Event, now: float) -> Changes:
        """Apply one event at time `now`, in seconds since the epoch, and return its changes.

        A refusal is part of the changes, with its reason (`errors`). A refused event may have
        changed something: the state notes that a cap was reached. Any exception is a defect.
        """
        try:
            return _APPLY.get(type(event), _of_capability)(self, event, now)
        # A refusal is data like a decision: its changes, such as a cap that was noted, are written
        # with it.
        except RouterStateError as error:
            return self.state.journal.collect(Outcome.REFUSED, refusal=error)

    def started(self) -> Changes:
        """Return everything there is to write of a router that was just started."""
        return self.state.journal.collect()


def _asked(engine: Engine, event: Asked, now: float) -> Changes:
    request_id, records, state = event.request_id, engine.records, engine.state
    record = records.get(request_id)
    if record is not None:
        return state.journal.collect(DUPLICATE, record)
    follows, fields, followed = event.follows, event.fields, None
    # A request may be the first to concern a capability that needs no declaration.
    if (
        event.session_id is not None
        or follows is not None
        or (fields is not None and registered.is_undeclared(fields))
    ) and not state.hooks.complete:
        registered.begin(state)
    if follows is not None:
        followed = records.get(follows.request_id)
    record = decide(state, event, now, followed)
    state.since.decided(record.seq)
    records[request_id] = record
    changed: dict[str, RequestRecord | None] = {request_id: record}
    if state.hooks.overdue and state.journal.overdue_at <= state.latest:
        opened, longest = state.open_commitments, state.config.knobs.commitment_ttl_seconds
        if late := state.hooks.overdue(opened, records, state.latest, longest):
            changed |= planned.let_go(state, records, late)
    return state.journal.collect(APPLIED, record, changed)


def _charged(engine: Engine, event: Charged, now: float) -> Changes:
    state, records, request_id = engine.state, engine.records, event.request_id
    record = records.get(request_id) or unknown(request_id)
    if event.attempt == 0 and (record.call is None or record.call.plan is None):
        outcome = feedback.settle(state, record, event)
    else:
        outcome = planned.settle(state, record, event)
    if outcome is DUPLICATE:
        return state.journal.collect(DUPLICATE)
    state.since.billed(event.offset, event.waited)
    records[request_id] = record
    return state.journal.collect(outcome, None, {request_id: record})


def _judged(engine: Engine, event: Judged, now: float) -> Changes:
    state = engine.state
    outcome, changed = feedback.judge(state, engine.records, event)
    if outcome is DUPLICATE:
        return state.journal.collect(DUPLICATE)
    state.since.rewarded(event.offset, event.waited)
    return state.journal.collect(outcome, None, changed)


def _verified(engine: Engine, event: Verified, now: float) -> Changes:
    state, records, request_id = engine.state, engine.records, event.request_id
    record = records.get(request_id) or unknown(request_id)
    outcome = planned.verify(state, record, event)
    if outcome is DUPLICATE:
        return state.journal.collect(DUPLICATE)
    state.since.rewarded(event.offset, event.waited)
    records[request_id] = record
    return state.journal.collect(outcome, None, {request_id: record})


def _orphaned(engine: Engine, event: Orphaned, now: float) -> Changes:
    state = engine.state
    state.unmatched_cost_usd += checked_cost(event.cost_usd)
    state.journal.pieces.add(HEAD)
    return state.journal.collect()


def _redeclared(engine: Engine, event: Redeclared, now: float) -> Changes:
    redeclaring.declare(engine.state, event.config, now=now)
    engine.state.since.declared(event.config.offset, now=now)
    return engine.state.journal.collect()


def _of_capability(engine: Engine, event: OfCapability, now: float) -> Changes:
    since = engine.state.since
    new = any(one.applied(event, since, now=now) for one in engine.state.capabilities)
    return engine.state.journal.collect(APPLIED if new else DUPLICATE)


def _waited(engine: Engine, event: Waited, now: float) -> Changes:
    expired = sweeping.expire(engine.state, engine.records, now=now, limit=event.limit)
    return engine.state.journal.collect(records={**expired})


def _aged(engine: Engine, event: Aged, now: float) -> Changes:
    gone = sweeping.forget(engine.state, engine.records, before=event.before, limit=event.limit)
    redeclaring.drop_retired(engine.state, before=event.before)
    return engine.state.journal.collect(records=dict.fromkeys(gone))


def _crowded(engine: Engine, event: Crowded, now: float) -> Changes:
    gone = sweeping.forget_early(engine.state, engine.records, keep=event.keep, limit=event.limit)
    return engine.state.journal.collect(records=dict.fromkeys(gone))


_APPLY: dict[type, Callable[[Engine, Any, float], Changes]] = {
    Asked: _asked,
    Charged: _charged,
    Judged: _judged,
    Verified: _verified,
    Orphaned: _orphaned,
    Redeclared: _redeclared,
    Waited: _waited,
    Aged: _aged,
    Crowded: _crowded,
}
"""Functions that change the state, by kind of event; `_of_capability` takes all other kinds."""
