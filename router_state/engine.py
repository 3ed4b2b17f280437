"""The engine of one router: requests, bills, rewards and declarations in; decisions and new state
out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Self

from router_state import feedback, planned, registered
from router_state.changes import APPLIED, DUPLICATE, HEAD, Changed, Changes, Outcome
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
from router_state.record import Records, RequestRecord, remembered
from router_state.router import RouterState
from router_state.state import portable, redeclaring, sweeping
from router_state.state.state_pieces import piece_names
from router_state.totals import checked_cost

Applied = tuple[Outcome, RequestRecord | None, Changed | None]
"""Outcome, decision and changed records of an event, see `Changes`."""
UNCHANGED: Applied = DUPLICATE, None, None


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
        refusal = None
        try:
            outcome, decision, records = _APPLY.get(type(event), _of_capability)(self, event, now)
        # A refusal is data like a decision: its changes, such as a cap that was noted, are written
        # with it.
        except RouterStateError as error:
            outcome, decision, records, refusal = Outcome.REFUSED, None, None, error
        return self.state.journal.collect(outcome, decision, records, refusal)

    def started(self) -> Changes:
        """Return everything there is to write of a router that was just started."""
        return self.state.journal.collect()


def _asked(engine: Engine, event: Asked, now: float) -> Applied:
    request_id, records = event.request_id, engine.records
    record = records.get(request_id)
    if record is not None:
        return DUPLICATE, record, None
    state, follows = engine.state, event.follows
    # A request may be the first to concern a capability that needs no declaration.
    if not state.hooks.complete and (
        event.session_id is not None or event.said is not None or follows is not None
    ):
        registered.begin(state)
    followed = None if follows is None else records.get(follows.request_id)
    record = decide(state, event, now, followed)
    state.since.decided(record.seq)
    records[request_id] = record
    return APPLIED, record, {request_id: record}


def _charged(engine: Engine, event: Charged, now: float) -> Applied:
    record = remembered(engine.records, event.request_id)
    single = event.attempt == 0 and (record.call is None or record.call.plan is None)
    outcome = (feedback if single else planned).settle(engine.state, record, event)
    if outcome is DUPLICATE:
        return UNCHANGED
    engine.state.since.billed(event.offset, waited=event.waited)
    engine.records[event.request_id] = record
    return outcome, None, {event.request_id: record}


def _judged(engine: Engine, event: Judged, now: float) -> Applied:
    outcome, changed = feedback.judge(engine.state, engine.records, event)
    if outcome is DUPLICATE:
        return UNCHANGED
    engine.state.since.rewarded(event.offset, waited=event.waited)
    return outcome, None, changed


def _verified(engine: Engine, event: Verified, now: float) -> Applied:
    record = remembered(engine.records, event.request_id)
    outcome = planned.verify(engine.state, record, event)
    if outcome is DUPLICATE:
        return UNCHANGED
    engine.state.since.rewarded(event.offset, waited=event.waited)
    engine.records[event.request_id] = record
    return outcome, None, {event.request_id: record}


def _orphaned(engine: Engine, event: Orphaned, now: float) -> Applied:
    engine.state.unmatched_cost_usd += checked_cost(event.cost_usd)
    engine.state.journal.pieces.add(HEAD)
    return APPLIED, None, None


def _redeclared(engine: Engine, event: Redeclared, now: float) -> Applied:
    redeclaring.declare(engine.state, event.config, now=now)
    engine.state.since.declared(event.config.offset, now=now)
    return APPLIED, None, None


def _of_capability(engine: Engine, event: OfCapability, now: float) -> Applied:
    since = engine.state.since
    new = any(one.applied(event, since, now=now) for one in engine.state.capabilities)
    return (APPLIED, None, None) if new else UNCHANGED


def _waited(engine: Engine, event: Waited, now: float) -> Applied:
    expired = sweeping.expire(engine.state, engine.records, now=now, limit=event.limit)
    return APPLIED, None, {**expired}


def _aged(engine: Engine, event: Aged, now: float) -> Applied:
    gone = sweeping.forget(engine.state, engine.records, before=event.before, limit=event.limit)
    redeclaring.drop_retired(engine.state, before=event.before)
    return APPLIED, None, dict.fromkeys(gone)


def _crowded(engine: Engine, event: Crowded, now: float) -> Applied:
    gone = sweeping.forget_early(engine.state, engine.records, keep=event.keep, limit=event.limit)
    return APPLIED, None, dict.fromkeys(gone)


_APPLY: dict[type, Callable[[Engine, Any, float], Applied]] = {
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
