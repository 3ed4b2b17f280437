"""Read and restore the client library's position in each partition, which is private state."""

from __future__ import annotations

import time
from collections.abc import Set
from typing import TYPE_CHECKING

from faust.types import TP

if TYPE_CHECKING:
    from aiokafka import AIOKafkaConsumer, TopicPartition
    from aiokafka.consumer.subscription_state import TopicPartitionState


def positions(consumer: AIOKafkaConsumer) -> list[tuple[TopicPartition, TopicPartitionState]]:
    """Return the assigned partitions that have a position, each with aiokafka's state of it."""
    subscription = consumer._subscription.subscription
    assignment = None if subscription is None else subscription.assignment
    if assignment is None:
        return []
    state_of = assignment.state_value
    return [(tp, state) for tp in assignment.tps if (state := state_of(tp)).has_valid_position]


def fetch_only(
    consumer: AIOKafkaConsumer,
    known: list[tuple[TopicPartition, TopicPartitionState]],
    wanted: Set[TP],
    *,
    taken: Set[TP],
) -> None:
    """Fetch only the wanted partitions, and drop untaken records of all others: while aiokafka
    holds such records, it fetches nothing from their broker for a tenth of a second.

    Args:
        known: `positions` of the consumer, which do not change.
    """
    waiting = consumer._fetcher._records
    for tp, state in known:
        if tp in wanted:
            if state.paused:
                state.resume()
                # Its leader had nothing to answer meanwhile.
                state.timestamp = int(time.time() * 1000)
            continue
        if not state.paused:
            state.pause()
        if tp in waiting and tp not in taken:
            consumer.seek(tp, state.position)


def rewind(consumer: AIOKafkaConsumer, before: dict[TP, int], *, failed: TopicPartition) -> None:
    """Fetch again the records that could not be read, and the records of other partitions that the
    failed fetch had drained already.
    """
    for tp, state in positions(consumer):
        if tp in before and (tp == failed or state.position != before[tp]):
            consumer.seek(tp, before[tp])


def silence(consumer: AIOKafkaConsumer | None) -> float:
    """Return the longest time, in seconds, for which the leader of a partition with a due fetch has
    not answered.
    """
    if consumer is None or consumer._fetcher is None:
        return 0.0
    now, waiting = time.time() * 1000, consumer._fetcher._records
    ages = [
        now - state.timestamp
        for tp, state in positions(consumer)
        if state.timestamp is not None and tp not in waiting and not state.paused
    ]
    return max(0.0, max(ages, default=0.0) / 1000)
