"""The engine of one router: requests, bills, rewards and declarations in; decisions and new state
out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Self

from router_state import feedback, planned
from router_state.changes import HEAD, Changes, Outcome
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
from router_state.record import Records
from router_state.router import RouterState
from router_state.state import portable, redeclaring, sweeping
from router_state.state.state_pieces import piece_names
from router_state.totals import checked_cost


class Engine:
    """Moves the state of one router. Every event may be given again: what is contained already
    changes nothing.

    `apply` is the one entrance: it takes an event as data and returns as data what it changed.

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
        """Return an engine for a router that was just declared; with a snapshot it goes on from
        that.

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
        # What nothing has changed yet is written, too: a reader misses no piece.
        state.journal.pieces.update(piece_names(state))
        return engine

    def apply(self, event: Event, now: float) -> Changes:
        """Apply one event, at `now` in seconds since the epoch, and return all that it changed.

        A refusal is in the changes too, with its reason (`errors`), and may have some: a cap that
        was reached is noted, though nothing was decided. Any other exception is a defect.
        """
        changes = Changes()
        try:
            _APPLY.get(type(event), _of_capability)(self, event, now, changes)
        # A refusal is data like a decision: what it has changed (a cap that was noted) is written
        # with it.
        except RouterStateError as error:
            changes.outcome, changes.refusal = Outcome.REFUSED, error
        return changes.collect(self.state.journal)

    def started(self) -> Changes:
        """Return what there is to write of a router that was just started."""
        return Changes().collect(self.state.journal)


def _asked(engine: Engine, event: Asked, now: float, changes: Changes) -> None:
    record = engine.records.get(event.request_id)
    if record is not None:
        changes.decision, changes.outcome = record, Outcome.DUPLICATE
        return
    record = decide(engine.state, event, now)
    engine.state.since.decided(record.seq)
    engine.records[event.request_id] = record
    changes.decision = changes.records[event.request_id] = record


def _charged(engine: Engine, event: Charged, now: float, changes: Changes) -> None:
    changes.outcome = planned.settle(engine.state, engine.records, event)
    if changes.outcome is not Outcome.DUPLICATE:
        engine.state.since.billed(event.offset, waited=event.waited)
        changes.records[event.request_id] = engine.records[event.request_id]


def _judged(engine: Engine, event: Judged, now: float, changes: Changes) -> None:
    changes.outcome, changed = feedback.judge(engine.state, engine.records, event)
    changes.records |= changed
    if changes.outcome is not Outcome.DUPLICATE:
        engine.state.since.rewarded(event.offset, waited=event.waited)


def _verified(engine: Engine, event: Verified, now: float, changes: Changes) -> None:
    changes.outcome = planned.verify(engine.state, engine.records, event)
    if changes.outcome is not Outcome.DUPLICATE:
        engine.state.since.rewarded(event.offset, waited=event.waited)
        changes.records[event.request_id] = engine.records[event.request_id]


def _orphaned(engine: Engine, event: Orphaned, now: float, changes: Changes) -> None:
    engine.state.unmatched_cost_usd += checked_cost(event.cost_usd)
    changes.pieces.add(HEAD)


def _redeclared(engine: Engine, event: Redeclared, now: float, changes: Changes) -> None:
    redeclaring.declare(engine.state, event.config, now=now)
    engine.state.since.declared(event.config.offset, now=now)


def _of_capability(engine: Engine, event: OfCapability, now: float, changes: Changes) -> None:
    since = engine.state.since
    if not any(one.applied(event, since, now=now) for one in engine.state.capabilities):
        changes.outcome = Outcome.DUPLICATE


def _waited(engine: Engine, event: Waited, now: float, changes: Changes) -> None:
    changes.records |= sweeping.expire(engine.state, engine.records, now=now, limit=event.limit)


def _aged(engine: Engine, event: Aged, now: float, changes: Changes) -> None:
    changes.records |= dict.fromkeys(
        sweeping.forget(engine.state, engine.records, before=event.before, limit=event.limit)
    )
    redeclaring.drop_retired(engine.state, before=event.before)


def _crowded(engine: Engine, event: Crowded, now: float, changes: Changes) -> None:
    changes.records |= dict.fromkeys(
        sweeping.forget_early(engine.state, engine.records, keep=event.keep, limit=event.limit)
    )


_APPLY: dict[type, Callable[[Engine, Any, float, Changes], None]] = {
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
"""Functions that move the state, by the kind of an event; `_of_capability` does for others."""
