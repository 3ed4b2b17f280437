"""Export to Prometheus how old the books are on which a worker decides."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from agents.partition.partition import Partitions


class BooksMetrics(Collector):
    """A collector that looks at the waiting feedback at each scrape."""

    def __init__(self, partitions: Partitions) -> None:
        self._partitions = partitions

    def collect(self) -> Iterator[Metric]:
        """Yield the metric."""
        waits = (partition.waits.longest() for partition in self._partitions)
        yield GaugeMetricFamily(
            "pb_books_age_seconds",
            "How long the oldest bill or label has waited that was fetched and can be applied",
            value=max(waits, default=0.0),
        )
