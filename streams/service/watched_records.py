"""Pass the records that a worker publishes on to its metrics."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias

from ground.boundary import Headers, Produce

ReadRecord: TypeAlias = Callable[[str, bytes | None], None]
"""Takes the key and the value of a record; None: a tombstone."""


def watched(send: Produce, readers: Mapping[str, ReadRecord]) -> Produce:
    """Return a `send` that also hands each record to the function of its topic; `readers` has the
    functions by the topic's name."""

    async def sending(
        topic: str,
        value: bytes | None,
        key: bytes | None,
        partition: int | None = None,
        headers: Headers | None = None,
    ) -> Awaitable[object]:
        delivery = await send(topic, value, key, partition, headers)
        read = readers.get(topic)
        if read is not None and key is not None:
            read(key.decode(), value)
        return delivery

    return sending
