"""Detect that a group or its changelog belongs to another service: two prefixes in one group would
mix their state.
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
)

from agents.table.recovered import ForeignState
from schemas.topic_roles import SOURCES
from streams.settings import Settings, group_of

COORDINATOR_TRIES = 20
"""Looks at the coordinator of a group, which a new cluster needs some seconds to name."""


async def require_own_group(settings: Settings) -> None:
    """Raise ForeignState where the group has read topics of another prefix."""
    admin = AIOKafkaAdminClient(**settings.kafka_auth(), client_id="paretobandit-owner")
    await admin.start()
    try:
        read = await _read_by(admin, settings.app_id)
    finally:
        await admin.close()
    require_own_topics(settings, read)


async def _read_by(admin: AIOKafkaAdminClient, group: str) -> set[str]:
    """Return the topics with committed offsets of a group; empty if they may not be seen."""
    for _ in range(COORDINATOR_TRIES):
        try:
            return {tp.topic for tp in await admin.list_consumer_group_offsets(group)}
        except GroupAuthorizationFailedError:
            return set()
        except (
            GroupCoordinatorNotAvailableError,
            GroupLoadInProgressError,
            NotCoordinatorForGroupError,
        ):
            await asyncio.sleep(0.5)
    return set()


def sentence(settings: Settings, foreign: Iterable[str]) -> str:
    """Return a sentence on the owner of the state, and the setting to change."""
    return (
        f"the group {settings.app_id} reads {', '.join(sorted(foreign))}, which are not of "
        f"prefix {settings.prefix}: "
        f"another service owns its state. Set PB_APP_ID (by default {group_of(settings.prefix)} "
        "for this prefix), or PB_PREFIX"
    )


def require_own_topics(settings: Settings, read: Collection[str]) -> None:
    """Raise ForeignState where the changelog contains events of topics that are not of this
    prefix.
    """
    if foreign := set(read) - {settings.topic(name) for name in SOURCES}:
        raise ForeignState(sentence(settings, foreign))
