"""Book bills and rewards, or let them wait for a decision that they overtook."""

from __future__ import annotations

from collections.abc import Coroutine, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Generic, TypeVar

from agents.context_store import Ref
from agents.feedback.core_events import core_event
from agents.group import Answers, Batch
from agents.parked import Parked
from agents.partition.partitions import Service
from agents.refusal_kinds import FromTheFuture, OrphanCost, OrphanReward, Refusal, RouterUnreadable
from agents.table.own_routers import Shard
from agents.taking.intake import Intake, Taken, take_in
from ground.messages import Message, Record
from router_state.changes import Outcome
from router_state.config import Vector
from router_state.events import Orphaned
from router_state.instants import utc
from schemas.quick import Bill, Reward, read
from schemas.rewards import MAX_AHEAD

NOTHING: Mapping[Ref, Vector | None] = MappingProxyType({})
"""Contexts from the store outside of the table, where none were read."""
E = TypeVar("E", Bill, Reward)

ORPHANS: dict[type[Bill | Reward], type[Refusal]] = {
    Bill: OrphanCost,
    Reward: OrphanReward,
}
"""Refusal of feedback whose request never arrived, by its kind."""


class Feedback(Batch, Generic[E]):
    """Book bills or rewards.

    Attributes:
        kind: how an event is decoded.
    """

    __slots__ = ("_contexts", "_intake", "_service")
    kind: type[E]

    def __init__(self, service: Service, messages: list[Record]) -> None:
        super().__init__(messages)
        self._service = service
        self._intake: Intake[Record, E] = take_in(
            messages,
            self.kind,
            partition_of=service.ports.partition_of,
            max_bytes=service.batch_bytes,
            homes=service.shards.get(messages[0].partition, ()),
        )
        self._contexts: dict[Ref, Vector | None] = {}

    def preparation(self) -> Coroutine[object, object, None] | None:
        """Return the reading of contexts from the external store, for requests that are already
        decided; None if all are known."""
        if self._service.ports.contexts is None:
            return None
        missing = {
            ref: taken.message.partition
            for taken in self._intake.taken
            for ref in _refs(self._service, taken.message.partition, taken.event)
            if ref not in self._contexts
            and _is_decided(self._service, taken.message.partition, ref)
        }
        return self._read(missing) if missing else None

    async def _read(self, missing: dict[Ref, int]) -> None:
        service = self._service
        assert service.ports.contexts is not None
        # A decision on its way has its context neither in the store nor on the changelog yet.
        for number in set(missing.values()) & service.lanes.keys():
            await service.lanes[number].settled()
        refs = list(missing)
        found = await service.ports.contexts.get(
            refs, lambda ref: _decided_at(service, missing[ref], ref)
        )
        self._contexts |= dict(zip(refs, found, strict=True))

    def apply(self, answers: Answers) -> None:
        """Book them."""
        service, intake = self._service, self._intake
        answers.strays += intake.strays
        answers.refused += intake.refused
        for message, _ in intake.refused:
            service.note_unbooked(message, (message.key or b"").decode(errors="replace"), "refused")
        for taken in intake.taken:
            answers.at = taken.message
            book(taken, service, answers, contexts=self._contexts)


def _refs(service: Service, partition: int, event: Bill | Reward) -> list[Ref]:
    """Return the requests that an event is about."""
    if event.request_id:
        return [(event.router_id, event.request_id)]
    shard = service.shards.get(partition)
    found = [] if shard is None else shard.requests_of(event.router_id, event.subject)
    return [(event.router_id, request_id) for request_id in found]


def _is_decided(service: Service, partition: int, ref: Ref) -> bool:
    return partition in service.shards and service.shards[partition].knows(*ref)


def _decided_at(service: Service, partition: int, ref: Ref) -> float | None:
    engine = (
        service.shards[partition].engine(ref[0]) if _is_decided(service, partition, ref) else None
    )
    record = None if engine is None else engine.records.get(ref[1])
    return None if record is None else record.decided_at


def book(
    taken: Taken[Record, E],
    service: Service,
    answers: Answers,
    *,
    contexts: Mapping[Ref, Vector | None] = NOTHING,
) -> None:
    """Apply one bill or reward, let it wait, or refuse it; one that the state contains changes
    nothing."""
    message, event = taken.message, taken.event
    shard = service.shards[message.partition]
    if shard.watermarks.is_applied(message.topic, message.offset):
        return
    if (
        isinstance(event, Reward)
        and event.observed_at is not None
        and event.observed_at > utc(service.ports.clock()) + MAX_AHEAD
    ):
        # By the clock, so the refusal is kept: read again after a crash it would be accepted.
        late = FromTheFuture("observed_at is more than 5 minutes ahead")
        service.refuse_later(Parked.of(message, late, router_id=event.router_id), late, answers)
    elif (error := _unreadable(shard, event.router_id)) is not None:
        service.refuse_later(Parked.of(message, error, router_id=event.router_id), error, answers)
    elif shard.knows(event.router_id, event.subject):
        _apply(shard, event, message, service, answers, contexts=contexts)
    else:
        _wait(shard, parked_from(message, event, service), event, service, answers)


def _unreadable(shard: Shard, router_id: str) -> RouterUnreadable | None:
    try:
        shard.require_readable(router_id)
    except RouterUnreadable as error:
        return error
    return None


def apply_waiting(
    shard: Shard, router_id: str, request_id: str, service: Service, answers: Answers
) -> None:
    """Apply the feedback that overtook a request which has just been decided, in order of
    arrival."""
    for parked in shard.parking.waiting_for(router_id, request_id):
        shard.unpark(parked)
        is_bill = parked.topic == service.ports.topic["costs"]
        event = _waiting(Bill, parked) if is_bill else _waiting(Reward, parked)
        # The decision was made in this batch: its record still has the context.
        _apply(shard, event, parked, service, answers, contexts=NOTHING)


def parked_from(message: Message, event: Bill | Reward, service: Service) -> Parked:
    """Return a source event in the form in which it waits for its request."""
    error = ORPHANS[type(event)]("no decision of this request appeared in time")
    due = service.ports.clock() + service.ports.limits.orphan_wait
    return Parked.of(message, error, router_id=event.router_id, request_id=event.subject, due=due)


def _apply(
    shard: Shard,
    event: Bill | Reward,
    source: Message,
    service: Service,
    answers: Answers,
    *,
    contexts: Mapping[Ref, Vector | None],
) -> None:
    """Apply one event of a request that is decided; `source` is its message, or the event as it
    waited."""
    moved = core_event(event, source, contexts, service)
    changes = shard.apply(event.router_id, moved, now=service.ports.clock())
    if changes.refusal is not None:
        parked = source if isinstance(source, Parked) else parked_from(source, event, service)
        service.refuse_later(parked, changes.refusal, answers)
        return
    service.ports.count(
        f"{'bill' if isinstance(event, Bill) else 'reward'}_{changes.outcome.value}"
    )
    if changes.outcome is Outcome.DUPLICATE:
        service.note_unbooked(source, event.router_id, "duplicate")


def _wait(
    shard: Shard,
    parked: Parked,
    event: Bill | Reward,
    service: Service,
    answers: Answers,
) -> None:
    if isinstance(event, Bill):
        # One bill waits for each call, the one of highest revision, so that an orphan's money is
        # booked once.
        for other in shard.parking.waiting_for(parked.router_id, parked.request_id):
            if other.topic == parked.topic:
                before = _waiting(Bill, other)
                if (before.attempt or 0) != (event.attempt or 0):
                    continue
                if before.revision >= event.revision:
                    service.ports.count("bill_duplicate")
                    service.note_unbooked(parked, event.router_id, "duplicate")
                    return
                shard.unpark(other)
                service.ports.count("bill_revised")
                # The wait counts from the first bill: revisions must not prolong it.
                parked = replace(parked, due=other.due)
    # While requests are still to be answered nothing is refused for want of room: the next one may
    # be what this waits for. `hold_back` bounds how many come.
    if len(shard.parking) < service.ports.limits.parked_events or service.lags(shard.number):
        shard.park(parked)
        service.note_unbooked(parked, event.router_id, "waiting")
        service.ports.count("parked")
    else:
        give_up(shard, parked, service, answers)


def give_up(shard: Shard, parked: Parked, service: Service, answers: Answers) -> None:
    """Refuse an event whose time is up. An orphaned bill in dollars is booked as unmatched; tokens
    have no price then."""
    if parked.topic == service.ports.topic["costs"] and shard.engine(parked.router_id) is not None:
        cost_usd = _waiting(Bill, parked).cost_usd or 0.0
        shard.apply(parked.router_id, Orphaned(cost_usd), now=service.ports.clock())
    service.refuse_later(parked, service.refusal(parked), answers)


def _waiting(kind: type[E], parked: Parked) -> E:
    """Decode a waiting event again."""
    return read(kind, key=None, value=parked.value)
