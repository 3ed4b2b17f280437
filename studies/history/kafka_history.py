"""A history in Kafka, read only."""

from __future__ import annotations

from collections.abc import Iterator

from aiokafka import TopicPartition

from streams.settings import Settings
from studies.history.kafka_reader import KafkaReader, bounds_of, consumer_of, counts_in
from studies.history.records import SOURCES, Record


class MissingTopics(Exception):
    """The topics of the history are not in this Kafka."""


class KafkaHistory(KafkaReader):
    """The topics of a prefix up to now; later records are not seen. Not to be used inside an event
    loop.

    Args:
        settings: address and prefix.

    Raises:
        MissingTopics: there is no topic of requests under the prefix.
    """

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self._bounds = self.look(self._look())

    def partitions(self, topic: str = "requests") -> list[int]:
        """Return the partitions of a topic."""
        return sorted(number for name, number in self._bounds if name == topic)

    def read(self, topic: str, partition: int) -> Iterator[Record]:
        """Return a partition's records, oldest first; none where there is no such topic."""
        return self.records(
            self.settings.topic(topic), partition, *self._bounds.get((topic, partition), (0, 0))
        )

    async def _look(self) -> dict[tuple[str, int], tuple[int, int]]:
        """Return first and next offset of every partition of the topics that exist."""
        present = await counts_in(self.settings)
        names = {self.settings.topic(name): name for name in SOURCES}
        if self.settings.topic("requests") not in present:
            raise MissingTopics(
                f"topic {self.settings.topic('requests')} does not exist: PB_PREFIX names the "
                "history's prefix"
            )
        places = [
            TopicPartition(full, number)
            for full in names
            if full in present
            for number in range(present[full])
        ]
        async with consumer_of(self.settings) as consumer:
            bounds = await bounds_of(consumer, places)
        return {(names[place.topic], place.partition): bounds[place] for place in places}
