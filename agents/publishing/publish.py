"""Do the work that is due by the clock: end waits, repeat declarations, publish λ_t and alerts."""

from __future__ import annotations

import asyncio
import logging
from datetime import datetime

from agents.declaring.in_force import repeat
from agents.feedback import book_feedback as feedback
from agents.lane.poison import try_alone
from agents.parked import Parked
from agents.partition.chunks import portions
from agents.partition.partitions import Service
from agents.publishing.published_values import alert_raised, lambda_value
from agents.routing.waiting_requests import route_waiting
from agents.table import keys
from agents.table.own_routers import Shard
from agents.table.unpacking_ahead import warm
from router_state.changes import Alert
from router_state.instants import utc
from schemas.event import encode

log = logging.getLogger(__name__)

ROUTERS_AT_ONCE = 100
"""Routers published before other work gets its turn; a router takes some 50 µs once unpacked."""


async def resume(service: Service) -> None:
    """Finish, once after each recovery or roll-back of a partition, what was interrupted: deliver
    refusals, answer requests whose router is known, delete what routers that are gone have left,
    repeat declarations in force that were overtaken."""
    for number, lane in list(service.lanes.items()):
        if not lane.interrupted:
            continue
        # Cleared first, as a group that is rolled back below sets it again.
        lane.interrupted = False
        undelivered, lane.undelivered = lane.undelivered, []
        if undelivered:
            async with lane.batch() as answers:
                answers.refused_later += [(one, service.refusal(one)) for one in undelivered]
        routers = [(number, router_id) for router_id in lane.shard]
        await route_waiting(routers, service)
        await service.clear(number)
        await repeat(routers, service)


async def hold_back(service: Service) -> None:
    """Let bills and rewards wait on the log if too many are parked."""
    service.hold_back()


async def end_waits(service: Service) -> None:
    """Refuse the parked events whose time is up."""

    async def step(portion: list[Parked]) -> None:
        if (lane := service.lanes.get(portion[0].partition)) is None:
            return
        async with lane.batch() as answers:
            for parked in portion:
                # Checked again: it may have been answered meanwhile, or its router declared.
                if lane.shard.parking.is_waiting(parked) and not _is_being_answered(
                    parked, lane.shard
                ):
                    answers.at = parked
                    feedback.give_up(lane.shard, parked, service, answers)

    for shard in list(service.shards.values()):
        for portion in portions(
            _hopeless(shard, service),
            lambda parked: len(parked.value or b""),
            limit=service.batch_bytes,
        ):
            await try_alone(portion, step, service.give_up)


def _hopeless(shard: Shard, service: Service) -> list[Parked]:
    """Return the events whose time is up.

    Bills and rewards go on waiting while requests that were sent before them may still be on the
    log: a worker that comes back reads its backlogs side by side.
    """
    due = shard.parking.due(service.ports.clock())
    if not due:
        return due
    taken_before = shard.requests_seen_at if service.lags(shard.number) else float("inf")
    wait = service.ports.limits.orphan_wait
    return [
        parked
        for parked in due
        if (
            parked.due - wait <= taken_before
            if parked.request_id is not None
            else not _is_being_answered(parked, shard)
        )
    ]


def _is_being_answered(parked: Parked, shard: Shard) -> bool:
    """Tell whether an event is a request whose router is known by now."""
    return parked.request_id is None and parked.router_id in shard


async def publish(service: Service) -> None:
    """Publish λ_t of every router that has changed since the last time, a tombstone of one that is
    gone, and the alerts.

    After a recovery that is every router, in portions, between which other work goes on.
    """
    if service.bulletin:
        async with service.bulletin.publishing:  # older states are sent before newer ones
            changed = service.bulletin.take_routers()
            for portion in (
                portions(changed, lambda at: 1, limit=ROUTERS_AT_ONCE) if changed else ([],)
            ):
                await _publish(portion, service)


async def _publish(routers: list[tuple[int, str]], service: Service) -> None:
    for number, router_id in routers:
        if (shard := service.shards.get(number)) is not None:
            await warm(shard, router_id)
    now, produce, topic = utc(service.ports.clock()), service.ports.produce, service.ports.topic
    # Once a partition: each look reads the first events that wait.
    ages = {
        number: lane.waits.longest()
        for number in {number for number, _ in routers}
        if (lane := service.lanes.get(number)) is not None
    }
    updates = [
        update
        for number, router_id in routers
        for update in _tried(number, router_id, service, now=now, books_age=ages.get(number, 0.0))
    ]
    alerts = service.bulletin.take_alerts()
    alerts += [alert for shard in service.shards.values() for alert in _set_aside(shard, service)]
    # Only durable states are published; a failed group ends the process first.
    for number in {number for number, _ in routers} & service.lanes.keys():
        await service.lanes[number].settled()
    deliveries = [
        await produce(topic["lambda"], value, router_id.encode()) for router_id, value in updates
    ]
    for router_id, value in _encoded(alerts, service):
        deliveries.append(await produce(topic["alerts"], value, router_id.encode()))
    await asyncio.gather(*deliveries)


def _tried(
    number: int, router_id: str, service: Service, *, now: datetime, books_age: float
) -> list[tuple[str, bytes | None]]:
    """Return a router's record; none where that fails, until the router's next change."""
    found: list[tuple[str, bytes | None]] = []
    if (shard := service.shards.get(number)) is None:
        return _update(number, router_id, service, now=now, books_age=books_age)
    with service.aside.trying("publish", shard, keys.HEAD, router_id):
        found += _update(number, router_id, service, now=now, books_age=books_age)
    return found


def _encoded(alerts: list[tuple[str, Alert]], service: Service) -> list[tuple[str, bytes]]:
    """Return alerts as they are published; one that can't be written is logged."""
    found = []
    for router_id, alert in alerts:
        try:
            found.append((router_id, encode(alert_raised(router_id, alert))))
        except ValueError as error:
            log.error("alert %s of %s can't be written: %s", alert.kind, router_id, error)
            service.ports.count("set_aside")
    return found


def _update(
    number: int, router_id: str, service: Service, *, now: datetime, books_age: float
) -> list[tuple[str, bytes | None]]:
    """Return a router's record: its state, a tombstone, or None if its partition was lost."""
    shard = service.shards.get(number)
    engine = None if shard is None else shard.engine(router_id)
    if shard is None or engine is None:
        service.bulletin.gone((number, router_id))
        is_gone = shard is not None and router_id not in shard and router_id not in shard.unreadable
        return [(router_id, None)] if is_gone else []
    unbooked = service.bulletin.take_unbooked((number, router_id))
    value = lambda_value(
        router_id,
        engine.state,
        observed_at=now,
        applied=service.applied(number),
        unbooked=unbooked,
        books_age=books_age,
    )
    return [(router_id, value)]


def _set_aside(shard: Shard, service: Service) -> list[tuple[str, Alert]]:
    """Return an alert, and log a line, for each router that turned out to be unreadable."""
    now, alerts = service.ports.clock(), []
    for router_id, why in shard.take_set_aside().items():
        log.error("router %s can't be read and is set aside: %s", router_id, why)
        service.ports.count("router_unreadable")
        evidence = {"why": why, "partition": shard.number}
        alerts.append(
            (
                router_id,
                Alert(
                    "router_unreadable", "down", 1.0, since=now, observed_at=now, evidence=evidence
                ),
            )
        )
    return alerts
