"""Read single contexts back from the changelog, from near each context's time."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import AsyncExitStack

from aiokafka import AIOKafkaConsumer, TopicPartition

from agents.table import keys
from agents.table.router_records import Ref
from streams.log.consumer import log_consumer
from streams.settings import Settings

FETCH_BYTES = 256 * 1024
"""Bytes of one fetch: some hundred records, of which one is wanted."""
EARLIER, LATER = 1.0, 60.0
"""Seconds before and after a decision within which its context was written. If the clock has
jumped, the whole log is read.
"""


class ChangelogContexts:
    """A reader of contexts in the changelog, with a consumer of its own, made when first needed."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._consumer: AIOKafkaConsumer | None = None
        self._one_at_a_time = asyncio.Lock()

    async def find(self, partition: int, wanted: Mapping[Ref, float]) -> dict[Ref, bytes]:
        """Return contexts of decided requests, by request.

        Args:
            wanted: by request, the time of its decision, seconds since the epoch.

        Raises:
            KafkaError, TimeoutError: the brokers do not answer.
        """
        async with self._one_at_a_time:
            async with AsyncExitStack() as failed:
                # An interrupted call may leave the consumer in any state, so the next one makes a
                # new consumer.
                failed.push_async_callback(self.close)
                tp = TopicPartition(self._settings.changelog, partition)
                found = await self._find(tp, wanted)
                failed.pop_all()
            return found

    async def close(self) -> None:
        """Close the consumer."""
        if self._consumer is not None:
            consumer, self._consumer = self._consumer, None
            await consumer.stop()

    async def _find(self, tp: TopicPartition, wanted: Mapping[Ref, float]) -> dict[Ref, bytes]:
        if self._consumer is None:
            self._consumer = log_consumer(
                self._settings, max_partition_fetch_bytes=FETCH_BYTES, fetch_max_wait_ms=100
            )
            await self._consumer.start()
        consumer = self._consumer
        consumer.assign([tp])
        end = (await consumer.end_offsets([tp]))[tp]
        found: dict[Ref, bytes] = {}
        read_from = read_to = -1
        for ref, decided_at in sorted(wanted.items(), key=lambda item: item[1]):
            place = (
                await consumer.offsets_for_times({tp: max(0, int((decided_at - EARLIER) * 1000))})
            )[tp]
            if ref in found or place is None:
                continue
            # Contexts of a burst stand together: go on from where the last one was found.
            if not read_from <= place.offset <= read_to:
                read_from = read_to = place.offset
            read_to = await self._read(
                tp, read_to, end, wanted, found, until=ref, before=decided_at + LATER
            )
        # The clock of the broker or the worker has jumped: times do not help, so the whole log is
        # read.
        if wanted.keys() - found.keys():
            begin = (await consumer.beginning_offsets([tp]))[tp]
            await self._read(tp, begin, end, wanted, found, until=None, before=float("inf"))
        return found

    async def _read(
        self,
        tp: TopicPartition,
        begin: int,
        end: int,
        wanted: Mapping[Ref, float],
        found: dict[Ref, bytes],
        *,
        until: Ref | None,
        before: float,
    ) -> int:
        """Read on from an offset until one context is found or records are later than `until`;
        return the offset after the last record read.
        """
        consumer: AIOKafkaConsumer = self._consumer
        consumer.seek(tp, begin)
        position = begin
        while position < end and (until is None or until not in found):
            records = (await consumer.getmany(tp, timeout_ms=1000)).get(tp, ())
            position = await consumer.position(tp)
            for record in records:
                _note(found, wanted, record.key, record.value)
            if records and records[-1].timestamp / 1000.0 > before:
                break
        return int(position)


def _note(
    found: dict[Ref, bytes], wanted: Mapping[Ref, float], raw: bytes, value: bytes | None
) -> None:
    if raw[:1] != keys.CONTEXT:
        return
    _, router_id, request_id = keys.split(raw)
    ref = (router_id, request_id)
    if ref not in wanted:
        return
    if value is None:
        found.pop(ref, None)
    else:
        found[ref] = value
