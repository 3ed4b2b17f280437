"""Be a member of the group, with a session that the broker grants, for as long as the group
confirms it.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from aiokafka.errors import InvalidSessionTimeoutError, KafkaError
from aiokafka.protocol.api import Request, RequestStruct
from aiokafka.protocol.group import HeartbeatResponse_v1
from aiokafka.protocol.types import Int32, Schema, String

from streams.faust.group_session import GroupSession

if TYPE_CHECKING:
    from aiokafka.consumer.group_coordinator import GroupCoordinator
    from aiokafka.consumer.subscription_state import Subscription

log = logging.getLogger(__name__)

USUAL_SESSION = 6.0
"""The shortest session that a broker grants unless `group.min.session.timeout.ms` says otherwise,
seconds."""
FENCED_INSTANCE_ID = 82
"""Kafka's error code for a member whose instance id another member has now; aiokafka has no name
for it."""
ASK_AGAIN_AFTER = 0.1
"""Seconds until the group's next coordinator is asked, as aiokafka itself waits."""


class InstanceIdTaken(KafkaError):  # type: ignore[misc]
    """Another member has joined the group with this worker's instance id, and has its place."""

    reason = "instance_id_taken"
    retriable = False


class NamedHeartbeatV3(RequestStruct):  # type: ignore[misc]
    """A heartbeat with the instance id. aiokafka's heartbeats have none, so the group's answer
    says only that the member is unknown.
    """

    API_KEY = 12
    API_VERSION = 3
    RESPONSE_TYPE = HeartbeatResponse_v1  # of the same fields
    SCHEMA = Schema(
        ("group", String("utf-8")),
        ("generation_id", Int32),
        ("member_id", String("utf-8")),
        ("group_instance_id", String("utf-8")),
    )


class NamedHeartbeat(Request[NamedHeartbeatV3]):  # type: ignore[misc]
    """Builder of the request above, which every broker that knows instance ids accepts."""

    API_KEY = NamedHeartbeatV3.API_KEY

    def __init__(self, *values: str | int) -> None:
        self._values = values

    def build(self, request: type[NamedHeartbeatV3]) -> NamedHeartbeatV3:
        return request(*self._values)


def membership_error(coordinator: GroupCoordinator) -> BaseException | None:
    """Return the error that has ended this worker's membership, None while there is none.

    aiokafka stores the error for a call that Faust never makes.
    """
    try:
        coordinator.check_errors()
    except asyncio.CancelledError:  # it was closed
        return None
    except Exception as error:
        return error
    return None


def accept_longer_session(coordinator: GroupCoordinator, extend: Callable[[float], None]) -> None:
    """If the broker refuses a short session, join again with the session that every broker grants.

    Args:
        extend: function that is called with the session's new length in seconds.
    """
    join = coordinator._do_rejoin_group

    async def rejoin(subscription: Subscription) -> bool:
        try:
            return bool(await join(subscription))
        except InvalidSessionTimeoutError:
            asked = coordinator._session_timeout_ms / 1000
            if asked >= USUAL_SESSION:
                raise
            log.warning(
                "the broker grants no session of %g s, it is %g s now "
                "(group.min.session.timeout.ms)",
                asked,
                USUAL_SESSION,
            )
            coordinator._session_timeout_ms = int(USUAL_SESSION * 1000)
            extend(USUAL_SESSION)
            return False

    coordinator._do_rejoin_group = rejoin


def end_where_replaced(coordinator: GroupCoordinator, instance_id: str | None) -> None:
    """Raise InstanceIdTaken, instead of joining again, if another member has this worker's
    instance id: the two would take the partitions from each other for ever.
    """
    if instance_id is None:
        return
    group, was = coordinator.group_id, list[tuple[int, str]]()
    reset, join = coordinator.reset_generation, coordinator._do_rejoin_group

    def reset_generation() -> None:
        if coordinator.member_id:
            was[:] = [(coordinator.generation, coordinator.member_id)]
        reset()

    async def rejoin(subscription: Subscription) -> bool:
        if was:
            try:
                answer = await coordinator._send_req(NamedHeartbeat(group, *was[0], instance_id))
            except KafkaError:  # the coordinator has gone: the next one is asked
                await asyncio.sleep(ASK_AGAIN_AFTER)
                return False
            if answer.error_code == FENCED_INSTANCE_ID:
                raise InstanceIdTaken(
                    f"another worker has joined group {group} with PB_INSTANCE_ID={instance_id} "
                    "and taken this worker's partitions: give each worker an id of its own; this "
                    "one ends"
                )
        was.clear()
        return bool(await join(subscription))

    coordinator.reset_generation, coordinator._do_rejoin_group = reset_generation, rejoin


def renew_session(
    coordinator: GroupCoordinator, session: GroupSession, observe: Callable[[float], object]
) -> None:
    """Let each confirmed heartbeat renew the worker's session, and end the session when the group
    forgets this member.

    Args:
        observe: function that is called with the seconds between two confirmed heartbeats.
    """
    beat, reset = coordinator._do_heartbeat, coordinator.reset_generation

    async def heartbeat() -> bool:
        sent = time.monotonic()
        try:
            confirmed = bool(await beat())
        except Exception:  # it ends the consumer; the watch ends the worker
            session.lose()
            raise
        if confirmed:
            observe(session.renew(sent))
        return confirmed

    def reset_generation() -> None:
        session.lose()
        reset()

    coordinator._do_heartbeat, coordinator.reset_generation = heartbeat, reset_generation
