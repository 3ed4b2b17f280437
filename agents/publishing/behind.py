"""Raise alerts for routers whose requests are decided while their bills and labels still wait to be
applied.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Final

from agents.partition.partition import Partition
from router_state.changes import Alert

log = logging.getLogger(__name__)

ALERT_AFTER, CALM_BELOW = 5.0, 1.0
"""Seconds that feedback waits. Above the first an alert is raised; a further alert needs a fall
below the second first.
"""
MOST_ROUTERS: Final = 64
"""Most routers of a partition for which an alert is raised: those with the most waiting events."""


class Behind:
    """The partitions whose feedback waited too long at the last look."""

    def __init__(self, partitions: Iterable[Partition]) -> None:
        self._partitions = partitions
        self._alerted: set[Partition] = set()
        self._decided: dict[Partition, int] = {}

    async def look(self) -> None:
        """Raise `feedback_behind` for routers of a partition that decides requests while feedback
        waits.
        """
        decided = {one: one.applied()["requests"] for one in self._partitions}
        self._alerted &= decided.keys()
        for partition, offset in decided.items():
            waited = partition.waits.longest()
            if waited < CALM_BELOW:
                self._alerted.discard(partition)
            elif (
                waited > ALERT_AFTER
                and offset > self._decided.get(partition, offset)
                and partition not in self._alerted
            ):
                self._alerted.add(partition)
                _raise(partition, waited)
        self._decided = decided


def _raise(partition: Partition, waited: float) -> None:
    now, waiting = partition.clock(), partition.waits.routers()
    log.warning(
        "partition %d: %d bills and labels wait, the oldest for %.1f s; its routers decide without "
        "them",
        partition.number,
        waiting.total(),
        waited,
    )
    known = [found for found in waiting.most_common() if found[0] in partition.routers]
    for router_id, events in known[:MOST_ROUTERS]:
        evidence = {"waiting": events, "of_all": waiting.total(), "routers": len(known)}
        alert = Alert(
            "feedback_behind", "up", waited, since=now - waited, observed_at=now, evidence=evidence
        )
        partition.news.alerts.append((router_id, alert))
