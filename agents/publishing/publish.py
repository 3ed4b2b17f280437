"""Publish λ_t and alerts, of which one is raised here: routers decide while their bills and labels
wait to be applied.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from datetime import datetime
from typing import Final

from agents.group import chunks
from agents.partition.partition import Partition, Partitions
from agents.partition.under_way import Gone
from agents.ports import Ports
from agents.publishing.published_values import alert_raised, lambda_value
from agents.table import keys
from router_state.changes import Alert
from router_state.instants import utc
from schemas.event import encode

log = logging.getLogger(__name__)

ROUTERS_AT_ONCE = 100
"""Routers that are published before other work gets its turn; an unpacked router takes some 50
µs.
"""
ALERT_AFTER, CALM_BELOW = 5.0, 1.0
"""Seconds that feedback waits. Above the first an alert is raised; a further alert needs a fall
below the second first.
"""
MOST_ROUTERS: Final = 64
"""Most routers of a partition for which an alert is raised: those with the most waiting events."""

Place = tuple[Partition, str]
"""A router, and the partition that it belongs to."""


async def publish(partitions: Partitions) -> None:
    """Publish λ_t of every router that has changed since the last time, a tombstone for each
    removed router, and the alerts.

    After a recovery every router is published, in portions, between which other work goes on.
    """
    async with partitions.publishing:  # older states are sent before newer ones
        changed = [
            (partition, router_id)
            for partition in partitions
            for router_id in partition.news.take_routers()
        ]
        for portion in [*chunks(changed, lambda at: 1, limit=ROUTERS_AT_ONCE)] or [[]]:
            await _publish(portion, partitions)


async def _publish(portion: list[Place], partitions: Partitions) -> None:
    for partition, router_id in portion:
        await partition.unpack_ahead(router_id)
    now, outbox = utc(partitions.ports.clock()), partitions.ports.outbox
    owners = {partition for partition, _ in portion}
    # Once per partition: each look reads the first waiting events.
    ages = {partition: partition.waits.longest() for partition in owners}
    updates = [
        (partition, update)
        for partition, router_id in portion
        if (update := _update(partition, router_id, now=now, books_age=ages[partition])) is not None
    ]
    for partition in partitions:
        _alert_unreadable(partition)
    alerting = {partition for partition in partitions if partition.news.alerts}
    alerts = partitions.take_alerts()
    # Only durable changes are published; a failed group ends the process first.
    lost = {one for one in owners | alerting if not await _settled(one)}
    deliveries = [
        await outbox.produce(outbox.topic["lambda"], value, router_id.encode())
        for partition, (router_id, value) in updates
        if partition not in lost
    ]
    for router_id, value in _encoded(alerts, partitions.ports):
        deliveries.append(await outbox.produce(outbox.topic["alerts"], value, router_id.encode()))
    await asyncio.gather(*deliveries)


async def _settled(partition: Partition) -> bool:
    """Wait until all changes of a partition are durable; return false if the partition was
    lost.
    """
    try:
        await partition.lane.under_way.settled()
    except Gone:
        return False
    return True


def _update(
    partition: Partition, router_id: str, *, now: datetime, books_age: float
) -> tuple[str, bytes | None] | None:
    """Return a router's key and record: its state, or a tombstone. None: the router can't be read,
    or writing its record failed and the router has not changed since.
    """
    found: tuple[str, bytes | None] | None = None
    with partition.aside.trying("publish", keys.HEAD, router_id):
        if (engine := partition.routers.engine(router_id)) is not None:
            value = lambda_value(
                router_id,
                engine.state,
                observed_at=now,
                applied=partition.applied(),
                unbooked=partition.news.take_unbooked(router_id),
                books_age=books_age,
            )
            found = router_id, value
        else:
            partition.news.gone(router_id)
            if router_id not in partition.routers.unreadable:
                found = router_id, None
    return found


def _alert_unreadable(partition: Partition) -> None:
    """Raise an alert for each router, pool and family that was found unreadable."""
    routers = partition.routers.take_set_aside()
    for router_id, why in routers.items():
        log.error("router %s can't be read and is set aside: %s", router_id, why)
    owners = (partition.pools, partition.families)
    for of, found in (
        (keys.OF[keys.HEAD], routers),
        *((keys.OF[one.kind], one.take_unpublished()) for one in owners),
    ):
        for name, why in found.items():
            partition.count(f"{of}_unreadable")
            evidence = {"why": why, "partition": partition.number}
            partition.news.alert(name, f"{of}_unreadable", evidence)


def _encoded(alerts: list[tuple[str, Alert]], ports: Ports) -> list[tuple[str, bytes]]:
    """Return alerts as records; an alert that can't be encoded is logged."""
    found = []
    for router_id, alert in alerts:
        try:
            found.append((router_id, encode(alert_raised(router_id, alert))))
        except ValueError as error:
            log.error("alert %s of %s can't be written: %s", alert.kind, router_id, error)
            ports.count("set_aside")
    return found


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
                _alert_behind(partition, waited)
        self._decided = decided


def _alert_behind(partition: Partition, waited: float) -> None:
    waiting = partition.waits.routers()
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
        partition.news.alert(
            router_id, "feedback_behind", evidence, direction="up", size=waited, lasted=waited
        )
