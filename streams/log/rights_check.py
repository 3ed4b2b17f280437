"""Ask Kafka for the rights of this process's user before a worker begins, so that a missing right
is named at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import (
    GroupAuthorizationFailedError,
    GroupCoordinatorNotAvailableError,
    GroupLoadInProgressError,
    NotCoordinatorForGroupError,
    TopicAuthorizationFailedError,
    for_code,
)
from aiokafka.protocol.admin import DescribeGroupsRequest_v3, DescribeGroupsResponse_v3
from aiokafka.protocol.api import RequestStruct, Response
from aiokafka.protocol.types import Array, Boolean, Int16, Int32, Schema, String

from streams.log.rights import Operation, Right, Role, command, rights
from streams.settings import Settings

UNKNOWN = -(2**31)
"""Kafka's answer if it does not tell the rights (KIP-430)."""
COORDINATOR_TRIES = 20
"""Looks for the group's coordinator, which a young cluster is still choosing."""


class MissingRights(Exception):
    """The user may not do what it has to; one line a right, with the command that grants it."""

    reason = "missing_rights"
    retriable = False


class _MetadataResponse(Response):  # type: ignore[misc]
    """Metadata 8, the first version that says what may be done."""

    API_KEY = 3
    API_VERSION = 8
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        (
            "brokers",
            Array(
                ("node_id", Int32),
                ("host", String("utf-8")),
                ("port", Int32),
                ("rack", String("utf-8")),
            ),
        ),
        ("cluster_id", String("utf-8")),
        ("controller_id", Int32),
        (
            "topics",
            Array(
                ("error_code", Int16),
                ("topic", String("utf-8")),
                ("is_internal", Boolean),
                (
                    "partitions",
                    Array(
                        ("error_code", Int16),
                        ("partition", Int32),
                        ("leader", Int32),
                        ("leader_epoch", Int32),
                        ("replicas", Array(Int32)),
                        ("isr", Array(Int32)),
                        ("offline_replicas", Array(Int32)),
                    ),
                ),
                ("authorized_operations", Int32),
            ),
        ),
        ("cluster_authorized_operations", Int32),
    )


class _Metadata(RequestStruct):  # type: ignore[misc]
    API_KEY = 3
    API_VERSION = 8
    RESPONSE_TYPE = _MetadataResponse
    SCHEMA = Schema(
        ("topics", Array(String("utf-8"))),
        ("allow_auto_topic_creation", Boolean),
        ("include_cluster_authorized_operations", Boolean),
        ("include_topic_authorized_operations", Boolean),
    )


class _Groups(RequestStruct):  # type: ignore[misc]
    API_KEY = 15
    API_VERSION = 3
    RESPONSE_TYPE = DescribeGroupsResponse_v3
    SCHEMA = DescribeGroupsRequest_v3.SCHEMA


class _AsItIs:
    """A request of one fixed version, where the client would choose between versions."""

    def __init__(self, struct: RequestStruct) -> None:
        self._struct = struct

    def prepare(self, versions: object) -> object:
        """Return the struct."""
        return self._struct


async def missing_rights(
    settings: Settings, role: Role, *, beside: Iterable[Right] = ()
) -> list[Right]:
    """Return the rights of a role, and those beside it, that the user of these settings does not
    have; topics that do not exist are passed over.

    Raises:
        KafkaError: Kafka does not answer, or not the user of these settings.
    """
    wanted = [*rights(settings, role), *beside]
    admin = AIOKafkaAdminClient(**settings.kafka_auth(), client_id="paretobandit-rights")
    try:
        await admin.start()
        allowed = await _topics(
            admin, sorted({right.name for right in wanted if right.resource == "topic"})
        )
        for group in {right.name for right in wanted if right.resource == "group"}:
            allowed["group", group] = await _group(admin, group)
    finally:
        await admin.close()
    missing = [
        right for right in wanted if not _allows(allowed.get((right.resource, right.name)), right)
    ]
    # Kafka lists no rights of a topic that the client must not describe: the right to describe it
    # is asked for first.
    unseen = {
        right.name
        for right in missing
        if right.operation is not Operation.DESCRIBE_CONFIGS and not _seen(allowed, right)
    }
    return [
        right
        for right in missing
        if right.operation is not Operation.DESCRIBE_CONFIGS or right.name not in unseen
    ]


async def require_rights(
    settings: Settings, role: Role, *, names: Collection[str] | None = None
) -> None:
    """Raise MissingRights where the user lacks one. On an unsecured listener nobody is anybody:
    nothing is asked.

    Args:
        names: only rights on these topics.
    """
    if settings.security_protocol == "PLAINTEXT":
        return
    missing = [
        right
        for right in await missing_rights(settings, role)
        if names is None or right.name in names
    ]
    if missing:
        raise MissingRights(sentences(missing, settings))


def sentences(missing: Iterable[Right], settings: Settings) -> str:
    """Say of each right that it is missing, and how to grant it."""
    user = settings.sasl_username or "(the name in its certificate)"
    return "\n".join(
        (
            f"user {user} has no right to {right}: "
            f"`{command(right, principal=f'User:{user}', bootstrap=settings.bootstrap)}`"
        )
        for right in missing
    )


def _seen(allowed: dict[tuple[str, str], int], right: Right) -> bool:
    return allowed.get((right.resource, right.name)) != 0


def _allows(operations: int | None, right: Right) -> bool:
    # Bit n stands for operation n (KIP-430). Rights that Kafka does not tell do not count as
    # missing.
    return operations is None or operations == UNKNOWN or bool(operations >> right.operation & 1)


async def _topics(admin: AIOKafkaAdminClient, names: list[str]) -> dict[tuple[str, str], int]:
    """Return what is allowed on each topic, as bits; 0 where it may not even be seen."""
    answer = await admin._send_request(_AsItIs(_Metadata(names, False, False, True)))
    found: dict[tuple[str, str], int] = {}
    for code, name, _internal, _partitions, operations in answer.topics:
        if for_code(code) is TopicAuthorizationFailedError:
            found["topic", name] = 0
        elif code == 0:
            found["topic", name] = operations
    return found


async def _group(admin: AIOKafkaAdminClient, name: str) -> int:
    """Return what is allowed on a group, as bits; a new cluster needs a moment until it can
    tell.
    """
    for _ in range(COORDINATOR_TRIES):
        try:
            coordinator = await admin.find_coordinator(name)
            answer = await admin._send_request(_AsItIs(_Groups([name], True)), coordinator)
            code, *_, operations = answer.groups[0]
            if code == 0:
                return int(operations)
            raise for_code(code)(f"group {name}")
        except GroupAuthorizationFailedError:
            return 0
        except (
            GroupCoordinatorNotAvailableError,
            GroupLoadInProgressError,
            NotCoordinatorForGroupError,
        ):
            await asyncio.sleep(0.5)
    return UNKNOWN
