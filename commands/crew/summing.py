"""Add up the metrics of a crew's members; no sum falls when a member is replaced."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

Series = tuple[str, tuple[tuple[str, str], ...]]

LARGEST = {"pb_topic_partitions", "pb_recovery_seconds", "pb_build_info", "python_info"}
"""Metrics that a crew shows from one member, not as a sum."""
LEAST = {"pb_ready", "process_start_time_seconds"}
"""Metrics shown as the minimum over members: a crew is ready when all are, and as old as the
oldest."""
COUNTED = {"counter", "histogram"}
"""Kinds of metrics whose counts are kept when a member ends."""


class Sums:
    """The metrics of all members, as one worker's.

    Args:
        own: the crew's own metrics.
    """

    def __init__(self, own: CollectorRegistry) -> None:
        self._own = own
        self._last: dict[int, list[Metric]] = {}
        self._ended: list[Metric] = []

    def take(self, member: int, page: str) -> None:
        """Take in a member's answer to a scrape."""
        self._last[member] = list(text_string_to_metric_families(page))

    def ended(self, member: int) -> None:
        """Keep the counts of a member that ended; its successor begins at 0."""
        # Counts after its last scrape are lost.
        last = self._last.pop(member, [])
        self._ended = list(added([self._ended, [one for one in last if one.type in COUNTED]]))

    def collect(self) -> Iterator[Metric]:
        """Yield the sums, as a registry does."""
        yield from self._own.collect()
        yield from added([self._ended, *self._last.values()])

    def page(self) -> bytes:
        """Return the sums in Prometheus's text format."""
        return generate_latest(self)


def added(pages: Iterable[Iterable[Metric]]) -> Iterator[Metric]:
    """Yield each metric once, added up over several pages."""
    found: dict[str, Metric] = {}
    values: dict[str, dict[Series, float]] = {}
    for metric in (metric for page in pages for metric in page):
        found.setdefault(metric.name, metric)
        series = values.setdefault(metric.name, {})
        for sample in metric.samples:
            at = sample.name, tuple(sorted(sample.labels.items()))
            before = series.get(at)
            value = float(sample.value)
            series[at] = value if before is None else _both(metric.name, before, value)
    for name, first in found.items():
        metric = Metric(name, first.documentation, first.type)
        metric.samples = [Sample(n, dict(labels), v) for (n, labels), v in values[name].items()]
        yield metric


def _both(name: str, one: float, other: float) -> float:
    if name in LARGEST:
        return max(one, other)
    return min(one, other) if name in LEAST else one + other
