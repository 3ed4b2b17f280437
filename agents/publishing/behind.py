"""Say when routers decide on books that are old: bills and labels wait, and requests do not."""

from __future__ import annotations

import logging
from typing import Final

from agents.lane.lane import Lane
from agents.partition.partitions import Service
from router_state.changes import Alert

log = logging.getLogger(__name__)

ALERT_AFTER, CALM_BELOW = 5.0, 1.0
"""Seconds that feedback waits: after the first an alert is raised, and again only after falling
below the second."""
MOST_ROUTERS: Final = 64
"""Routers of a partition that are told, those of which most waits first."""


class Behind:
    """The partitions whose feedback waits, as of the last look."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._alerted: set[int] = set()
        self._decided: dict[int, int] = {}

    async def look(self) -> None:
        """Raise `feedback_behind` for routers of a partition that decides requests while its
        feedback waits."""
        lanes, requests = self._service.lanes, self._service.ports.topic["requests"]
        decided = {number: self._service.contained(requests, number) for number in lanes}
        self._alerted &= lanes.keys()
        for number, lane in lanes.items():
            waited = lane.waits.longest()
            decides = decided[number] > self._decided.get(number, decided[number])
            if waited < CALM_BELOW:
                self._alerted.discard(number)
            elif waited > ALERT_AFTER and decides and number not in self._alerted:
                self._alerted.add(number)
                self._raise(lane, waited)
        self._decided = decided

    def _raise(self, lane: Lane, waited: float) -> None:
        service, now = self._service, self._service.ports.clock()
        waiting = lane.waits.routers()
        log.warning(
            "partition %d: %d bills and labels wait, the oldest for %.1f s; its routers decide "
            "without them",
            lane.shard.number,
            waiting.total(),
            waited,
        )
        known = [found for found in waiting.most_common() if found[0] in lane.shard]
        for router_id, events in known[:MOST_ROUTERS]:
            evidence = {"waiting": events, "of_all": waiting.total(), "routers": len(known)}
            alert = Alert(
                "feedback_behind",
                "up",
                waited,
                since=now - waited,
                observed_at=now,
                evidence=evidence,
            )
            service.bulletin.alerts.append((router_id, alert))
