"""Bills and rewards that overtook their request: they wait for it, and are refused if it does not
come.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeVar

from msgspec import structs

from agents.group import Answers
from agents.partition.partition import Partition
from agents.refusal_kinds import OrphanCost, OrphanReward, Refusal
from agents.table.parking import Parked
from ground.messages import Message
from router_state.events import Orphaned
from schemas.quick import Bill, Reward, read

E = TypeVar("E", Bill, Reward)
ORPHANS: Final[Mapping[type[Bill | Reward], type[Refusal]]] = {
    Bill: OrphanCost,
    Reward: OrphanReward,
}
"""Refusal of feedback whose request never arrived, by its kind."""


def read_again(kind: type[E], parked: Parked) -> E:
    """Return a parked event, decoded as it was before its wait."""
    return read(kind, key=None, value=parked.value)


def parked_feedback(message: Message, event: Bill | Reward, partition: Partition) -> Parked:
    """Return a source event in its parked form, in which it waits for its request."""
    error = ORPHANS[type(event)](
        "no decision of this request is known: it was not asked of this router, or longer ago than "
        "PB_CONTEXT_TTL"
    )
    due = partition.clock() + partition.ports.limits.orphan_wait
    return Parked.of(message, error, router_id=event.router_id, request_id=event.subject, due=due)


def wait(message: Message, event: Bill | Reward, partition: Partition, answers: Answers) -> None:
    """Let an event wait for its request; refuse the event if too many wait."""
    parked = parked_feedback(message, event, partition)
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


def _overtake_other_bills(parked: Parked, bill: Bill, partition: Partition) -> float | None:
    """Return the time until which a bill waits; None if the bill changes nothing.

    Of the bills for one call of a request, only that of the highest revision waits, so that an
    orphan's dollars are booked once.
    """
    due = parked.due
    for other in partition.parking.waiting_for(parked.router_id, parked.request_id):
        if other.topic == parked.topic:
            before = read_again(Bill, other)
            if (before.attempt or 0) != (bill.attempt or 0):
                continue
            if before.revision >= bill.revision:
                return None
            partition.parking.unpark(other)
            partition.count("bill_revised")
            # The wait counts from the first bill: revisions must not prolong it.
            due = other.due
    return due


def refuse_orphan(parked: Parked, partition: Partition, answers: Answers) -> None:
    """Refuse a bill or a reward whose request did not come in time. An orphaned bill in dollars is
    booked as unmatched; one in tokens has no price.
    """
    router_id = parked.router_id
    if parked.topic == partition.feedback_topics[0] and partition.routers.engine(router_id):
        cost_usd = read_again(Bill, parked).cost_usd or 0.0
        partition.routers.apply(router_id, Orphaned(cost_usd), now=partition.clock())
    partition.refuse_again(parked, answers)
