"""Book bills and rewards: one agent with two schemas. Those that overtook their request wait for
it, and are refused if it does not come.
"""

from __future__ import annotations

from collections.abc import Coroutine, Mapping
from typing import Final, Generic, TypeVar

from msgspec import structs

from agents.group import Answers, Batch
from agents.partition.partition import Partition
from agents.refusal_kinds import FromTheFuture, OrphanCost, OrphanReward, Refusal
from agents.table.parking import Parked
from agents.table.router_records import Ref
from agents.taking.core_events import core_event
from agents.taking.intake import Intake
from ground.messages import Message, Record, key_text
from router_state.changes import Outcome
from router_state.config import Vector
from router_state.events import Orphaned
from router_state.instants import utc
from schemas.quick import Bill, Reward, read
from schemas.rewards import MAX_AHEAD

E = TypeVar("E", Bill, Reward)
ORPHANS: Final[Mapping[type[Bill | Reward], type[Refusal]]] = {
    Bill: OrphanCost,
    Reward: OrphanReward,
}
"""Refusal of feedback whose request never arrived, by its kind."""


class BookFeedback(Batch, Generic[E]):
    """Join each bill or reward to its request, and apply it to the router's state.

    Attributes:
        kind: decoder of the topic's events.
    """

    __slots__ = ("_contexts", "_intake", "_partition")
    kind: type[E]

    def __init__(self, partition: Partition, messages: list[Record]) -> None:
        super().__init__(messages)
        self._partition = partition
        self._intake: Intake[Record, E] = partition.take_in(messages, self.kind)
        self._contexts: dict[Ref, Vector | None] = {}

    def preparation(self) -> Coroutine[object, object, None] | None:
        """Return the reading of contexts from the external store, for requests that are already
        decided; None if all are known."""
        if self._partition.ports.contexts is None:
            return None
        missing = {
            ref: None
            for taken in self._intake.taken
            for ref in _refs(self._partition, taken.event)
            if ref not in self._contexts and self._partition.routers.knows(*ref)
        }
        return self._read(list(missing)) if missing else None

    async def _read(self, missing: list[Ref]) -> None:
        contexts = self._partition.ports.contexts
        assert contexts is not None
        # The context of a decision that is not durable yet is neither in the store nor on the
        # changelog.
        await self._partition.lane.under_way.settled()
        found = await contexts.get(missing, self._decided_at)
        self._contexts |= dict(zip(missing, found, strict=True))

    def _decided_at(self, ref: Ref) -> float | None:
        router_id, request_id = ref
        engine = self._partition.routers.engine(router_id)
        record = None if engine is None else engine.records.get(request_id)
        return None if record is None else record.decided_at

    def apply(self, answers: Answers) -> None:
        """Book the batch's bills or rewards."""
        partition, intake = self._partition, self._intake
        answers.strays += intake.strays
        answers.refused += intake.refused
        for message, _ in intake.refused:
            router_id = key_text(message)
            partition.note_unbooked(message, router_id, "refused")
        for taken in intake.taken:
            answers.at = taken.message
            _book(taken.message, taken.event, partition, answers, contexts=self._contexts)


class PaceSpend(BookFeedback[Bill]):
    """Settle the commitment of each request with its bill.

    Reads `pb.costs` (key router_id). Writes the router's state and the request's record to
    `router_states`; `pb.lambda` follows. The same or a lower revision changes nothing, a higher
    one books the difference. Dead letters: all reasons of `CostReported`, `cost_out_of_range`, and
    `orphan_cost` after a wait; `unmatched_cost_usd` counts the dollars of orphans.
    """

    __slots__ = ()
    name, kind = "costs", Bill


class LearnFromRewards(BookFeedback[Reward]):
    """Join each reward to the context of its request, and let the arm that answered learn the
    reward.

    Reads `pb.rewards` (key router_id). Writes the router's state and the request's record to
    `router_states`. The same reward again, or one of lower rank, changes nothing; a higher rank or
    revision moves the response by the difference, and a withdrawn reward is undone. The reward of a
    session goes to its requests. Dead letters: all reasons of `RewardObserved`, `from_the_future`,
    `context_lost`, and `orphan_reward` after a wait.
    """

    __slots__ = ()
    name, kind = "rewards", Reward


def _refs(partition: Partition, event: Bill | Reward) -> list[Ref]:
    """Return the requests that an event refers to."""
    if event.request_id:
        return [(event.router_id, event.request_id)]
    found = partition.routers.requests_of(event.router_id, event.subject)
    return [(event.router_id, request_id) for request_id in found]


def _book(
    message: Record,
    event: Bill | Reward,
    partition: Partition,
    answers: Answers,
    *,
    contexts: Mapping[Ref, Vector | None],
) -> None:
    """Apply one bill or reward, let it wait, or refuse it. An event that the state contains
    changes nothing.
    """
    if partition.watermarks.is_applied(message.topic, message.offset):
        return
    if (error := _refusal(event, partition)) is not None:
        parked = Parked.of(message, error, router_id=event.router_id)
        partition.refuse_later(parked, error, answers)
    elif partition.routers.knows(event.router_id, event.subject):
        _apply(event, message, partition, answers, contexts=contexts)
    else:
        _wait(message, event, partition, answers)


def _refusal(event: Bill | Reward, partition: Partition) -> Refusal | None:
    if (
        isinstance(event, Reward)
        and event.observed_at is not None
        and event.observed_at > utc(partition.clock()) + MAX_AHEAD
    ):
        # The clock decides this, so the refusal is stored: read again after a crash, the event
        # would be accepted.
        return FromTheFuture("observed_at is more than 5 minutes ahead")
    return partition.routers.why_unreadable(event.router_id)


def _apply(
    event: Bill | Reward,
    source: Message,
    partition: Partition,
    answers: Answers,
    *,
    contexts: Mapping[Ref, Vector | None],
) -> None:
    """Apply one event of a decided request; `source` is the event's message, or its parked
    form.
    """
    moved = core_event(event, source, contexts, rank_of=partition.ports.rank_of)
    changes = partition.routers.apply(event.router_id, moved, now=partition.clock())
    if changes.refusal is not None:
        parked = source if isinstance(source, Parked) else _parked(source, event, partition)
        partition.refuse_later(parked, changes.refusal, answers)
        return
    partition.count(_outcome(event, changes.outcome))
    if changes.outcome is Outcome.DUPLICATE:
        partition.note_unbooked(source, event.router_id, "duplicate")


def _outcome(event: Bill | Reward, outcome: Outcome) -> str:
    """Return the name under which an event is counted."""
    if isinstance(event, Bill):
        return f"bill_{outcome.value}"
    is_withdrawn = event.reward is None and event.verifier is None
    if is_withdrawn and outcome is not Outcome.DUPLICATE:
        return "reward_withdrawn"
    return f"reward_{outcome.value}"


def _wait(message: Message, event: Bill | Reward, partition: Partition, answers: Answers) -> None:
    """Let an event wait for its request; refuse the event if too many wait."""
    parked = _parked(message, event, partition)
    if isinstance(event, Bill):
        due = _overtake_other_bills(parked, event, partition)
        if due is None:
            partition.count("bill_duplicate")
            partition.note_unbooked(parked, event.router_id, "duplicate")
            return
        parked = structs.replace(parked, due=due)
    # While requests are still to be answered, no event is refused for want of room: the next
    # request may be the one that it waits for. `Partitions.hold_back` bounds the number of events.
    if len(partition.parking) < partition.ports.limits.parked_events or partition.lags():
        partition.parking.park(parked)
        partition.note_unbooked(parked, event.router_id, "waiting")
        partition.count("parked")
    else:
        refuse_orphan(parked, partition, answers)


def _parked(message: Message, event: Bill | Reward, partition: Partition) -> Parked:
    """Return a source event in its parked form, in which it waits for its request."""
    error = ORPHANS[type(event)](
        "no decision of this request is known: it was not asked of this router, or longer ago than "
        "PB_CONTEXT_TTL"
    )
    due = partition.clock() + partition.ports.limits.orphan_wait
    return Parked.of(message, error, router_id=event.router_id, request_id=event.subject, due=due)


def _overtake_other_bills(parked: Parked, bill: Bill, partition: Partition) -> float | None:
    """Return the time until which a bill waits; None if the bill changes nothing.

    Of the bills for one call of a request, only that of the highest revision waits, so that an
    orphan's dollars are booked once.
    """
    due = parked.due
    for other in partition.parking.waiting_for(parked.router_id, parked.request_id):
        if other.topic == parked.topic:
            before = _read_again(Bill, other)
            if (before.attempt or 0) != (bill.attempt or 0):
                continue
            if before.revision >= bill.revision:
                return None
            partition.parking.unpark(other)
            partition.count("bill_revised")
            # The wait counts from the first bill: revisions must not prolong it.
            due = other.due
    return due


def _read_again(kind: type[E], parked: Parked) -> E:
    """Return a parked event, decoded as it was before its wait."""
    return read(kind, key=None, value=parked.value)


def apply_waiting(router_id: str, subject: str, partition: Partition, answers: Answers) -> None:
    """Apply the feedback that overtook a request which has just been decided, in order of
    arrival."""
    for parked in partition.parking.waiting_for(router_id, subject):
        partition.parking.unpark(parked)
        is_bill = parked.topic == partition.feedback_topics[0]
        event = _read_again(Bill, parked) if is_bill else _read_again(Reward, parked)
        # The decision was made in this group, so its record still has the context.
        _apply(event, parked, partition, answers, contexts={})


def refuse_orphan(parked: Parked, partition: Partition, answers: Answers) -> None:
    """Refuse a bill or a reward whose request did not come in time. An orphaned bill in dollars is
    booked as unmatched; one in tokens has no price.
    """
    router_id = parked.router_id
    if parked.topic == partition.feedback_topics[0] and partition.routers.engine(router_id):
        cost_usd = _read_again(Bill, parked).cost_usd or 0.0
        partition.routers.apply(router_id, Orphaned(cost_usd), now=partition.clock())
    partition.refuse_later(parked, parked.refusal, answers)
