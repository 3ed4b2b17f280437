"""Publish records as CloudEvents, if asked for (`PB_CLOUD_EVENTS_SOURCE`)."""

from __future__ import annotations

from collections.abc import Awaitable

from ground.boundary import Headers, Produce
from schemas.cloud_events import cloud_event
from schemas.topic_roles import TOPICS

PUBLISHED = frozenset(
    name for name, topic in TOPICS.items() if not topic.to_service and name != "dlq"
)
"""Topics that are published as CloudEvents: those for clients, without dead letters, which are
copies."""


def as_cloud_events(send: Produce, *, prefix: str, source: str) -> Produce:
    """Return a `send` that gives the headers of a CloudEvent to every record of the service's own
    topics.
    """
    names = {prefix + name: name for name in PUBLISHED}

    async def send_as_event(
        topic: str,
        value: bytes | None,
        key: bytes | None,
        partition: int | None = None,
        headers: Headers | None = None,
    ) -> Awaitable[object]:
        if topic in names and value is not None:
            headers = [
                *(headers or ()),
                *cloud_event(names[topic], key=key, value=value, source=source),
            ]
        return await send(topic, value, key, partition, headers)

    return send_as_event
