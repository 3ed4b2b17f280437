"""Run a whole worker without Kafka: sources, agents, table and record batches are real, and its
output is discarded.
"""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from aiokafka.structs import ConsumerRecord
from faust.types import TP

from agents.publishing.publish import publish
from streams.partitioner import partition_of
from streams.service.worker import build_partitions
from streams.service.worker_app import App, build_app
from streams.settings import Settings

Events = Sequence[tuple[bytes, bytes]]


class Nowhere:
    """A producer in place of aiokafka's: every batch is stored at once, and forgotten.

    Attributes:
        records: how many were sent, by topic.
        bytes: how many bytes of record batches, by topic.
    """

    def __init__(self, partitions: int) -> None:
        self._partitions = partitions
        self._ends: dict[tuple[str, int], int] = defaultdict(int)
        self.records: Counter[str] = Counter()
        self.bytes: Counter[str] = Counter()

    async def partitions_for(self, topic: str) -> range:
        """Return the partitions of any topic."""
        return range(self._partitions)

    async def send_batch(self, builder: Any, topic: str, *, partition: int) -> Any:
        """Close a record batch as the client does, and return its place on the log."""
        builder.close()
        self.records[topic] += builder.record_count()
        self.bytes[topic] += len(builder._build())
        delivered: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        delivered.set_result(SimpleNamespace(offset=self._ends[topic, partition]))
        self._ends[topic, partition] += builder.record_count()
        return delivered


class InMemory:
    """One worker that owns all partitions, and the log that its sources read."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.app: App = build_app(settings)
        self.log = Nowhere(settings.partitions)
        self.app.producer = SimpleNamespace(client=self.log)
        self.app.session.extend(1e9)
        self.app.session.join()
        self.partitions = build_partitions(self.app)
        self.partitions.ports.log.end_of = lambda name, partition: 0  # type: ignore[method-assign]
        self._offsets: dict[tuple[str, int], int] = defaultdict(int)

    async def start(self) -> None:
        """Recover from an empty changelog, which starts the lanes."""
        states = self.app.states
        await states.assign(range(self.settings.partitions))
        states.on_recovered(self.partitions.recovered)
        await states.recovered(dict.fromkeys(range(self.settings.partitions), 0))

    async def stop(self) -> None:
        """End the lanes."""
        self.partitions.lost(frozenset(range(self.settings.partitions)))

    def fetched(self, name: str, events: Events, *, at: float) -> dict[TP, list[Any]]:
        """Return events of a source topic as the client hands them over, by partition."""
        topic, found = self.settings.topic(name), defaultdict(list)
        for key, value in events:
            number = partition_of(key.decode(), self.settings.partitions)
            offset = self._offsets[name, number]
            self._offsets[name, number] += 1
            stamp = int(at * 1000)
            sizes = len(key), len(value)
            record = ConsumerRecord(
                topic, number, offset, stamp, 0, key, value, None, *sizes, headers=()
            )
            found[TP(topic, number)].append(record)
        return found

    async def take(self, *fetches: dict[TP, list[Any]]) -> None:
        """Let the agents finish what was fetched, and publish λ_t as the timer does."""
        sources = self.app.sources
        for fetched in fetches:
            for tp, records in fetched.items():
                sources.deliver(tp, records)
        inboxes = [sources.inbox(tp.partition) for fetched in fetches for tp in fetched]
        while any(inbox.oldest is not None for inbox in inboxes):  # noqa: ASYNC110 - what each pass takes is the measure
            await asyncio.sleep(0)
        await publish(self.partitions)
