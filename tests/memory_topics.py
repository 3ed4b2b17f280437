"""Topics in lists, for audits without Kafka."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from studies.history.records import Record


class MemoryTopics:
    """Topics in lists, by (topic, partition)."""

    def __init__(self, records: Mapping[tuple[str, int], Sequence[Record]]) -> None:
        self._records = records

    def partitions(self, topic: str = "requests") -> list[int]:
        """Return the partitions of a topic."""
        places = [place for place in self._records if topic != "dlq" or place[0] == "dlq"]
        return sorted({partition for _, partition in places})

    def read(self, topic: str, partition: int) -> Iterator[Record]:
        """Return a partition's records."""
        return iter(self._records.get((topic, partition), ()))

    def begin(self, topic: str, partition: int) -> int:
        """Return the first record's offset."""
        return next((record.offset for record in self._records.get((topic, partition), ())), 0)

    def end(self, topic: str, partition: int) -> int:
        """Return the offset after the last record."""
        return max(
            (record.offset + 1 for record in self._records.get((topic, partition), ())), default=0
        )

    def size(self) -> int:
        """Return how many records there are."""
        return sum(map(len, self._records.values()))
