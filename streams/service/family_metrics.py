"""Export gauges of this worker's families to Prometheus."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import orjson
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from ground.json_values import Document

FAMILIES = {
    "members": ("pb_family_members", "Members"),
    "aside": ("pb_family_members_left_out", "Members whose labels mean something else"),
}
"""Gauges of a family: metric and help."""
MODELS = {
    "apart": ("pb_family_apart", "Deviation of mean rewards between members"),
    "requests": ("pb_family_newcomer_requests", "Requests that a newcomer's prior is of"),
}
"""Gauges by model: metric and help by field of a model's `rewards` on `pb.families`."""


class FamilyMetrics(Collector):
    """The gauges of one worker's families, read from the records that the worker publishes on the
    topic `families`.
    """

    def __init__(self, *, partition_of: Callable[[str], int]) -> None:
        self._partition_of = partition_of
        self._known: dict[str, Document] = {}

    def take_family(self, family: str, value: bytes | None) -> None:
        """Take in a family's published record; None: the family is gone."""
        if value is None:
            self._known.pop(family, None)
            return
        known = orjson.loads(value)
        self._known[family] = {
            "members": known["members"],
            "aside": sum(one["aside"] for one in known["listed"]),
            # Not the sums, which are kilobytes.
            "models": {
                one["model"]: {name: one["rewards"][name] for name in MODELS}
                for one in known["models"]
                if one.get("rewards")
            },
        }

    def lost(self, partitions: frozenset[int]) -> None:
        """Forget the families of partitions that went to others."""
        self._known = {
            name: one
            for name, one in self._known.items()
            if self._partition_of(name) not in partitions
        }

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics, at each scrape."""
        for name, (metric, meaning) in FAMILIES.items():
            found = GaugeMetricFamily(metric, meaning, labels=["family"])
            for family, known in self._known.items():
                found.add_metric([family], known[name])
            yield found
        for name, (metric, meaning) in MODELS.items():
            found = GaugeMetricFamily(metric, meaning, labels=["family", "model"])
            for family, known in self._known.items():
                for model, one in known["models"].items():
                    found.add_metric([family, model], one[name])
            yield found
