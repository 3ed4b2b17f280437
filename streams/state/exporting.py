"""Export a router's learned state from the changelog, and declare a router that starts from it."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from datetime import UTC, datetime

from aiokafka import AIOKafkaConsumer, TopicPartition

from agents.declaring.configuration import declaration_of
from agents.table import keys
from agents.table.recovered import Recovered
from ground.json_values import Document
from router_state.config import RouterConfig
from router_state.errors import CorruptSnapshot
from router_state.router import RouterState
from router_state.state import portable
from schemas.topic_roles import SOURCES
from streams.changelog_format import FENCE, epoch_of
from streams.log.consumer import log_consumer
from streams.log.stretch import bounds, read_stretch
from streams.partitioner import partition_of
from streams.settings import Settings
from streams.state.table_partition import Partition

STATE = (keys.HEAD, keys.CONFIG, keys.ARM)
"""Kinds of keys of a router's state, without its requests."""
ALWAYS = (FENCE, keys.WATERMARKS)
"""Keys that tell which owner wrote a partition's state, and from which topics."""


async def read_state(settings: Settings, router_id: str) -> RouterState | None:
    """Return a router's state as its next owner would recover it, without its requests; None if it
    is not declared.

    Reads one partition of the changelog, in no group; the service may run. A record batch of a
    worker is on the log whole or not at all.
    """
    own = tuple(keys.key(kind, router_id) for kind in STATE)
    async with log_consumer(
        settings, fetch_max_wait_ms=100, max_partition_fetch_bytes=8 * 2**20
    ) as consumer:
        state = await _read_state(
            settings, consumer, partition_of(router_id, settings.partitions), own
        )
    engine = state.routers.engine(router_id)
    if router_id in state.routers.unreadable:
        raise CorruptSnapshot(
            f"the state of router {router_id} can't be read: {state.routers.unreadable[router_id]}"
        )
    return None if engine is None else engine.state


async def read_states(settings: Settings) -> AsyncIterator[tuple[str, RouterState]]:
    """Yield every router with its state, as `read_state` does; no more than one partition is in
    memory.
    """
    async with log_consumer(
        settings, fetch_max_wait_ms=100, max_partition_fetch_bytes=8 * 2**20
    ) as consumer:
        for number in range(settings.partitions):
            state = await _read_state(settings, consumer, number, STATE)
            for router_id in sorted(state.routers):
                engine = state.routers.engine(router_id)
                if engine is not None:
                    yield router_id, engine.state


async def _read_state(
    settings: Settings, consumer: AIOKafkaConsumer, number: int, own: tuple[bytes, ...]
) -> Recovered:
    """Read the keys of a changelog's partition that begin with one of `own`, to its end."""
    partition, place = Partition(number), TopicPartition(settings.changelog, number)
    consumer.assign([place])
    begin, end = await bounds(consumer, place)
    async for records in read_stretch(consumer, place, begin, end):
        for record in records:
            if record.key in ALWAYS or (record.key is not None and record.key.startswith(own)):
                partition.recover(
                    record.key, record.value, offset=record.offset, epoch=epoch_of(record.headers)
                )
    state = Recovered(partition)
    state.watermarks.require_topics([settings.topic(name) for name in SOURCES])
    return state


def pack(state: RouterState, router_id: str, settings: Settings) -> bytes:
    """Return a state as a file with its origin."""
    now = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    return portable.pack(
        state, {"router_id": router_id, "service": settings.app_id, "exported_at": now}
    )


def declaration_from(config: RouterConfig, router_id: str, data: bytes) -> Document:
    """Return the declaration of a router that starts from a snapshot, with the fields of the
    exported router's declaration.
    """
    return {**declaration_of(config, router_id), "snapshot": base64.b64encode(data).decode()}
