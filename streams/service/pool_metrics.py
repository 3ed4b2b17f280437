"""Export to Prometheus what the pools of this worker have granted."""

from __future__ import annotations

import time
from collections.abc import Iterator

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from agents.partition.partition import Partitions

FAMILIES = {
    "usd": ("pb_pool_budget_usd", "Dollars of the period that goes on"),
    "exposed_usd": ("pb_pool_lent_usd", "What members may be charged by what is granted to them"),
    "charged_usd": ("pb_pool_charged_usd", "What members were charged, as they said last"),
}
"""Metric and help by attribute of a line; labels `pool` and `line`."""


class PoolMetrics(Collector):
    """A collector that reads the pools of a worker at each scrape."""

    def __init__(self, partitions: Partitions) -> None:
        self._partitions = partitions

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics, at each scrape."""
        now = time.time()
        found = [
            pool
            for pools in (partition.pools for partition in self._partitions)
            for pool_id in pools.names
            if (pool := pools.get(pool_id)) is not None
        ]
        for name, (metric, meaning) in FAMILIES.items():
            family = GaugeMetricFamily(metric, meaning, labels=["pool", "line"])
            for pool in found:
                for line in pool.lines.values():
                    if line.begin <= now < line.end:
                        family.add_metric([pool.pool_id, line.name], float(getattr(line, name)))
            yield family
        members = GaugeMetricFamily("pb_pool_members", "Routers and pools in it", labels=["pool"])
        for pool in found:
            members.add_metric([pool.pool_id], sum(not one.left for one in pool.members.values()))
        yield members
