"""The engine of one router: requests, bills, rewards and declarations in; decisions and new state
out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from router_state import feedback
from router_state.changes import HEAD, Alert, Changes, Outcome
from router_state.config import RouterConfig, Vector
from router_state.deciding import decide
from router_state.errors import RouterStateError
from router_state.events import (
    AT_MOST,
    Aged,
    Asked,
    Charged,
    Crowded,
    Event,
    Judged,
    OfCapability,
    Orphaned,
    Redeclared,
    Waited,
)
from router_state.record import Records, RequestRecord
from router_state.state import portable, portfolio, sweeping
from router_state.state.books import checked_cost
from router_state.state.router import RouterState
from router_state.state.snapshot import piece_names


class Engine:
    """Moves the state of one router. Every event may be given again: what is contained already
    changes nothing.

    `apply` takes an event as data and returns as data what it changed: who keeps the state durable
    uses nothing else. Whoever only wants decisions (simulations, benchmarks) calls the method of
    the event's kind.

    Args:
        state: the router's state, moved in place.
        records: the router's requests by request_id; the engine assigns each changed record back.
    """

    __slots__ = ("records", "state")

    def __init__(self, state: RouterState, records: Records) -> None:
        self.state = state
        self.records = records

    @classmethod
    def start(cls, config: RouterConfig, records: Records | None = None) -> Engine:
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
        engine.configure(config, now=now)
        state.since.declared(config.offset)
        # What nothing has changed yet is written, too: a reader misses no piece.
        state.journal.pieces.update(piece_names(state))
        return engine

    def apply(self, event: Event, now: float) -> Changes:
        """Apply one event, at `now` in seconds since the epoch, and return all that it changed.

        A refusal is in the changes too, and may have some: a cap that was reached is noted, though
        nothing was decided.
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

    def take_alerts(self) -> list[Alert]:
        """Return what was raised since the last call, where `apply` is not used."""
        return self.state.journal.take_alerts()

    def configure(self, config: RouterConfig, *, now: float) -> None:
        """Put a declaration in force: models join, retire or change price, the budget changes;
        learned state stays.

        Raises:
            InvalidConfig: another number of dimensions or profile, or a prior that does not fit;
                nothing has changed.
        """
        portfolio.declare(self.state, config, now=now)

    def decide(self, request_id: str, x: Vector, *, now: float, **asked: Any) -> RequestRecord:
        """Choose a model for a request and commit its expected cost; a request that has its
        decision gets that again.

        Args:
            asked: see `Asked`.

        Raises:
            WrongContext, NonFiniteInput: the context does not fit.
            EmptyPortfolio, NoAllowedModel, NoAffordableModel, NoCapableModel, CapReached,
            BudgetSpent: no model may be called. Nothing is decided.
        """
        record = self.records.get(request_id)
        if record is None:
            record = self._decide(Asked(request_id, x, **asked), now)
        return record

    def _decide(self, event: Asked, now: float) -> RequestRecord:
        record = decide(self.state, event, now)
        self.state.since.decided(record.seq)
        self.records[event.request_id] = record
        return record

    def settle(self, request_id: str, cost_usd: float | None = None, **bill: Any) -> Outcome:
        """Book the bill of a request: the first one settles the commitment, a higher revision
        replaces it by the difference.

        Args:
            bill: see `Charged`; without a context the bill teaches nothing about prompts.

        Raises:
            UnknownRequest: no decision carries this request_id.
            NonFiniteInput, CostOutOfRange: not a cost. Nothing has changed.
            UnpricedModel: tokens of a model that is not in the portfolio. Nothing has changed.
        """
        return feedback.settle(self.state, self.records, Charged(request_id, cost_usd, **bill))

    def learn(self, request_id: str, *, reward: float, **judged: Any) -> Outcome:
        """Learn a reward; one of higher rank, or of higher revision from the same source, revises
        an earlier one. That of a session, named as `Judged` says, goes to its requests.

        Args:
            judged: see `Judged`.

        Raises:
            UnknownRequest: no decision carries this request_id, or belongs to the session.
            ContextLost: neither the record nor the caller has the context.
            NonFiniteInput, RewardOutOfRange: not a reward. Nothing has changed.
        """
        event = Judged(request_id, reward, **judged)
        return feedback.judge(self.state, self.records, event)[0]

    def expire(self, *, now: float, limit: int = AT_MOST) -> int:
        """Stop waiting for bills older than the commitment's time limit; they stay charged at their
        expectation.

        The oldest first, at most `limit` of them, and returns how many: that tells which.
        """
        return len(sweeping.expire(self.state, self.records, now=now, limit=limit))

    def forget(self, *, before: float, limit: int = AT_MOST) -> int:
        """Forget requests decided before this time (seconds since the epoch), at most `limit`, in
        the order of their decisions.

        Their repeats become new requests, their late bills and rewards orphans. Arms that retired
        before then are dropped. Returns how many requests were forgotten.
        """
        gone = sweeping.forget(self.state, self.records, before=before, limit=limit)
        portfolio.drop_retired(self.state, before=before)
        return len(gone)

    def forget_early(self, *, keep: int, limit: int = AT_MOST) -> int:
        """Forget what is remembered beyond `keep` requests, at most `limit` of them.

        Of the oldest ones those that have bill and reward, then the others; never one whose bill is
        awaited. Returns how many were forgotten.
        """
        return len(sweeping.forget_early(self.state, self.records, keep=keep, limit=limit))


def _asked(engine: Engine, event: Asked, now: float, changes: Changes) -> None:
    record = engine.records.get(event.request_id)
    if record is not None:
        changes.decision, changes.outcome = record, Outcome.DUPLICATE
        return
    changes.decision = changes.records[event.request_id] = engine._decide(event, now)


def _charged(engine: Engine, event: Charged, now: float, changes: Changes) -> None:
    changes.outcome = feedback.settle(engine.state, engine.records, event)
    if changes.outcome is not Outcome.DUPLICATE:
        engine.state.since.billed(event.offset, waited=event.waited)
        changes.records[event.request_id] = engine.records[event.request_id]


def _judged(engine: Engine, event: Judged, now: float, changes: Changes) -> None:
    changes.outcome, changed = feedback.judge(engine.state, engine.records, event)
    changes.records |= changed
    if changes.outcome is not Outcome.DUPLICATE:
        engine.state.since.rewarded(event.offset, waited=event.waited)


def _orphaned(engine: Engine, event: Orphaned, now: float, changes: Changes) -> None:
    engine.state.unmatched_cost_usd += checked_cost(event.cost_usd)
    changes.pieces.add(HEAD)


def _redeclared(engine: Engine, event: Redeclared, now: float, changes: Changes) -> None:
    engine.configure(event.config, now=now)
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
    portfolio.drop_retired(engine.state, before=event.before)


def _crowded(engine: Engine, event: Crowded, now: float, changes: Changes) -> None:
    changes.records |= dict.fromkeys(
        sweeping.forget_early(engine.state, engine.records, keep=event.keep, limit=event.limit)
    )


_APPLY: dict[type, Callable[[Engine, Any, float, Changes], None]] = {
    Asked: _asked,
    Charged: _charged,
    Judged: _judged,
    Orphaned: _orphaned,
    Redeclared: _redeclared,
    Waited: _waited,
    Aged: _aged,
    Crowded: _crowded,
}
"""Functions that move the state, by the kind of an event; `_of_capability` does for others."""
