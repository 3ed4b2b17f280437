"""Detect a lost changelog, which would otherwise look like a new service."""

from __future__ import annotations

from aiokafka import TopicPartition

from streams.log.consumer import log_consumer
from streams.log.service_topics import partition_counts
from streams.settings import Settings


class StateLost(Exception):
    """The group has read declarations, and the changelog has no trace of them."""

    reason = "state_lost"
    retriable = False


async def require_state(settings: Settings) -> None:
    """Raise StateLost if a partition's declarations were read but its changelog is missing or
    empty.

    An owner writes to the changelog before it reads its first event, so in a healthy service a
    partition whose declarations were read has a changelog.
    """
    routers, changelog = settings.topic("routers"), settings.changelog
    counts = await partition_counts(settings)
    if routers not in counts:
        return
    consumer = log_consumer(settings, group_id=settings.app_id)
    async with consumer:
        sources = [TopicPartition(routers, number) for number in range(counts[routers])]
        begins = await consumer.beginning_offsets(sources)
        read = [tp.partition for tp in sources if (await consumer.committed(tp) or 0) > begins[tp]]
        states = [TopicPartition(changelog, number) for number in read]
        kept = [tp for tp in states if tp.partition < counts.get(changelog, 0)]
        ends = await consumer.end_offsets(kept) if kept else {}
        lost = [tp.partition for tp in states if not ends.get(tp)]
    if lost:
        how, numbers = "empty" if changelog in counts else "gone", ", ".join(map(str, lost))
        reset = (
            f"--group {settings.app_id} --topic {routers} --reset-offsets --to-earliest --execute"
        )
        raise StateLost(
            f"the changelog {changelog} is {how} (partitions {numbers}), and with it what its "
            "routers had learned: restore it "
            f"from a copy, or begin anew on purpose: `pbstream topics create`, then "
            f"`kafka-consumer-groups.sh --bootstrap-server {settings.bootstrap} {reset}`: every "
            "router starts from its declaration"
        )
