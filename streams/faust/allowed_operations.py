"""Ask Kafka which operations a user may do on topics and groups (KIP-430): aiokafka's own requests
leave that out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from aiokafka import AIOKafkaClient
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

from streams.kafka_login import KafkaAuth

UNKNOWN = -(2**31)
"""Kafka's answer if it does not return the rights."""
COORDINATOR_TRIES = 20
"""Most tries to find the group's coordinator, which a young cluster is still choosing."""
GROUP = 0
"""Kafka's number for the coordinator of a group."""


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
    """A request of one fixed version; the client would otherwise choose between versions."""

    def __init__(self, struct: RequestStruct) -> None:
        self._struct = struct

    def prepare(self, versions: object) -> object:
        """Return the struct."""
        return self._struct


async def allowed_operations(
    auth: KafkaAuth, topics: Iterable[str], groups: Iterable[str]
) -> dict[tuple[str, str], int]:
    """Return the allowed operations on each resource, by kind and name: bit n stands for operation
    n. 0: the resource may not even be seen; `UNKNOWN`: Kafka does not tell. A topic that does not
    exist is left out.

    Raises:
        KafkaError: Kafka does not answer, or not the user of these settings.
    """
    client = AIOKafkaClient(**auth, client_id="paretobandit-rights")
    try:
        await client.bootstrap()
        found = {("topic", name): bits for name, bits in await _topics(client, list(topics))}
        return found | {("group", name): await _group(client, name) for name in groups}
    finally:
        await client.close()


async def _topics(client: AIOKafkaClient, names: list[str]) -> list[tuple[str, int]]:
    request = _AsItIs(_Metadata(names, False, False, True))
    answer = await client.send(client.get_random_node(), request)
    return [
        (name, 0 if code else operations)
        for code, name, _internal, _partitions, operations in answer.topics
        if code == 0 or for_code(code) is TopicAuthorizationFailedError
    ]


async def _group(client: AIOKafkaClient, name: str) -> int:
    """Return the allowed operations on a group; a new cluster needs a moment until it can tell
    them.
    """
    for _ in range(COORDINATOR_TRIES):
        try:
            coordinator = await client.coordinator_lookup(GROUP, name)
            answer = await client.send(coordinator, _AsItIs(_Groups([name], True)))
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
