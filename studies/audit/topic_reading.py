"""Read the topics of a service for an audit."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from typing import Protocol

from aiokafka import TopicPartition

from streams.settings import Settings
from studies.history.kafka_reader import KafkaReader, bounds_of, consumer_of, counts_in
from studies.history.records import Record

NAMES = (
    "changelog",
    "routes",
    "lambda",
    "refusals",
    "dlq",
    "routers",
    "requests",
    "costs",
    "rewards",
    "leases",
    "kin",
    "pools",
)
"""Topics in the order in which their ends are read, so that no record refers to one after an
end."""
SETTLE_SECONDS = 2.0
"""Seconds between taking the end of the changelog and the ends of the others. By then the service
has published what its state contains."""


class Topics(Protocol):
    """The records of a service. Topics go by their short names; the changelog is `changelog`."""

    def partitions(self, topic: str = "requests") -> list[int]:
        """Return the partitions of a topic; dead letters may have more or fewer than the others."""
        ...

    def read(self, topic: str, partition: int) -> Iterator[Record]:
        """Return a partition's records, oldest first."""
        ...

    def begin(self, topic: str, partition: int) -> int:
        """Return the offset at which a partition's log begins; what was before is deleted."""
        ...

    def end(self, topic: str, partition: int) -> int:
        """Return the offset after a partition's last record."""
        ...

    def size(self) -> int:
        """Return the approximate number of records."""
        ...


class KafkaTopics(KafkaReader):
    """The topics in Kafka up to now, read without a group. To be used where no event loop runs.

    The end of the changelog is taken first and the others' a moment later, so that a running
    service has published by then what its state contains.
    """

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self._bounds = self.look(self._look())

    def partitions(self, topic: str = "requests") -> list[int]:
        """Return the partitions of a topic."""
        return sorted(number for name, number in self._bounds if name == topic)

    def begin(self, topic: str, partition: int) -> int:
        """Return where a partition's log begins."""
        return self._bounds[topic, partition][0]

    def end(self, topic: str, partition: int) -> int:
        """Return where a partition's log ended when it was looked at."""
        return self._bounds[topic, partition][1]

    def size(self) -> int:
        """Return the approximate number of records."""
        return sum(end - begin for begin, end in self._bounds.values())

    def read(self, topic: str, partition: int) -> Iterator[Record]:
        """Return a partition's records up to `end`."""
        return self.records(self._full(topic), partition, *self._bounds[topic, partition])

    def _full(self, topic: str) -> str:
        return self.settings.changelog if topic == "changelog" else self.settings.topic(topic)

    async def _look(self) -> dict[tuple[str, int], tuple[int, int]]:
        """Return first and next offset of every partition."""
        bounds: dict[tuple[str, int], tuple[int, int]] = {}
        counts = await counts_in(self.settings)
        async with consumer_of(self.settings) as consumer:
            for name in NAMES:
                count = self.settings.partitions
                if name == "dlq":
                    count = counts.get(self._full(name), count)
                places = [TopicPartition(self._full(name), number) for number in range(count)]
                bounds |= {
                    (name, place.partition): found
                    for place, found in (await bounds_of(consumer, places)).items()
                }
                if name == "changelog":
                    await asyncio.sleep(SETTLE_SECONDS)
        return bounds


class Progress:
    """Count the records that are read, and report the count now and then.

    Args:
        tell: called with the number of records read so far, at most ten times a second.
    """

    def __init__(self, topics: Topics, tell: Callable[[int], object] = lambda read: None) -> None:
        self._topics = topics
        self._tell = tell
        self._told = 0.0
        self.read_so_far = 0

    def __call__(self, topic: str, partition: int) -> Iterator[Record]:
        """Read a partition's records."""
        for record in self._topics.read(topic, partition):
            self.read_so_far += 1
            # Reported by time, as a report for each record would slow the reading.
            if self.read_so_far % 1000 == 0 and time.monotonic() - self._told > 0.1:
                self._told = time.monotonic()
                self._tell(self.read_so_far)
            yield record
