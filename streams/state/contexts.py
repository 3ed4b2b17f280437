"""Contexts in Redis: out of the worker's memory until their rewards come."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeVar

import numpy as np
import redis.asyncio as redis
from aiokafka import TopicPartition
from redis.exceptions import BusyLoadingError, ConnectionError, ReadOnlyError, TimeoutError

from agents import keys
from agents.boundary import retrying
from agents.contexts import Ref
from router_state.config import Vector
from streams.log.consumer import log_consumer
from streams.settings import Settings

log = logging.getLogger(__name__)

TRANSIENT = (ConnectionError, TimeoutError, BusyLoadingError, ReadOnlyError, OSError)
REFILL_EVERY = 60.0

T = TypeVar("T")
Refill = Callable[[int], Awaitable[Mapping[Ref, bytes]]]


class RedisContexts:
    """Keep contexts as `{prefix}context:{router_id}:{request_id}` with a time to live, all of a batch in one round trip.

    While Redis is away, calls wait and are tried again in order; after `retry_for` seconds the worker stops, as it could learn
    nothing any more. A context that Redis has lost is read back from the changelog, with all others of its partition and a mark
    beside them. While Redis has the mark it has not been emptied since, and what it lacks is not looked for again for a minute.

    Args:
        client: opens its connections when first used.
        ttl: seconds until a context is forgotten.
        refill: reads all contexts of a partition from the changelog.
        partition_of: partition of a router.
    """

    def __init__(
        self,
        client: redis.Redis,
        *,
        prefix: str,
        ttl: float,
        retry_for: float,
        refill: Refill,
        partition_of: Callable[[str], int],
        on_retry: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = client
        self._prefix = prefix
        self._ttl_ms = int(ttl * 1000)
        self._retry_for = retry_for
        self._refill = refill
        self._partition_of = partition_of
        self._on_retry = on_retry
        self._clock = clock
        self._refilled: dict[int, float] = {}

    async def put(self, contexts: Sequence[tuple[Ref, Vector]]) -> None:
        """Keep contexts, each of shape (d,)."""
        await self._put({ref: x.astype("<f8", copy=False).tobytes() for ref, x in contexts})

    async def get(self, refs: Sequence[Ref]) -> list[Vector | None]:
        """Return contexts in the order asked for, None where one is in no store."""
        if not refs:
            return []
        found = await self._get(refs)
        lost = {self._partition_of(ref[0]) for ref, value in zip(refs, found, strict=True) if value is None}
        for partition in lost:
            if not await self._was_read_back(partition):
                contexts = await self._read_back(partition)
                found = [contexts.get(ref) if value is None else value for ref, value in zip(refs, found, strict=True)]
        return [None if value is None else np.frombuffer(value, "<f8") for value in found]

    async def _was_read_back(self, partition: int) -> bool:
        """Tell whether Redis has all that the changelog has; only for a minute, as it may evict what it has."""
        (mark,) = await self._get([_mark(partition)])
        return mark is not None and self._clock() - self._refilled.get(partition, -REFILL_EVERY) < REFILL_EVERY

    async def _read_back(self, partition: int) -> Mapping[Ref, bytes]:
        self._refilled[partition] = self._clock()
        contexts = await self._refill(partition)
        log.warning("contexts were missing in Redis; %d of partition %d read back from the changelog", len(contexts), partition)
        await self._put({**contexts, _mark(partition): b""})
        return contexts

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def _put(self, contexts: Mapping[Ref, bytes]) -> None:
        async def call() -> None:
            async with self._client.pipeline(transaction=False) as pipe:
                for ref, value in contexts.items():
                    pipe.set(self._key(ref), value, px=self._ttl_ms)
                await pipe.execute()

        await self._retrying(call)

    async def _get(self, refs: Sequence[Ref]) -> list[bytes | None]:
        async def call() -> list[bytes | None]:
            return [value for value in await self._client.mget([self._key(ref) for ref in refs]) if not isinstance(value, str)]

        return await self._retrying(call)

    async def _retrying(self, call: Callable[[], Awaitable[T]]) -> T:
        return await retrying(
            call, transient=TRANSIENT, deadline=self._retry_for, clock=self._clock, on_retry=lambda error: self._on_retry()
        )

    def _key(self, ref: Ref) -> str:
        return key_of(self._prefix, ref)


def key_of(prefix: str, ref: Ref) -> str:
    """Return the key of a request's context."""
    return f"{prefix}context:{ref[0]}:{ref[1]}"


def _mark(partition: int) -> Ref:
    """Return where Redis notes that a partition was read back: the context of no router, as no router has such a name."""
    return "\x00", f"partition {partition}"


def connect(url: str) -> redis.Redis:
    """Return a client for a Redis URL; TLS, user and password are part of it. Opens nothing."""
    client: redis.Redis = redis.from_url(url, socket_timeout=5.0, socket_connect_timeout=5.0, retry_on_timeout=False)
    return client


def changelog_contexts(settings: Settings) -> Refill:
    """Return the function that reads the contexts of one partition from the changelog, those deleted left out."""

    async def refill(partition: int) -> dict[Ref, bytes]:
        tp = TopicPartition(settings.changelog, partition)
        found: dict[Ref, bytes] = {}
        consumer = log_consumer(settings)
        await consumer.start()
        try:
            consumer.assign([tp])
            end = (await consumer.end_offsets([tp]))[tp]
            await consumer.seek_to_beginning(tp)
            while await consumer.position(tp) < end:
                for records in (await consumer.getmany(tp, timeout_ms=1000)).values():
                    for record in records:
                        _note(found, record.key, record.value)
        finally:
            await consumer.stop()
        return found

    return refill


def _note(found: dict[Ref, bytes], raw: bytes, value: bytes | None) -> None:
    if raw[:1] != keys.CONTEXT:
        return
    _, router_id, request_id = keys.split(raw)
    if value is None:
        found.pop((router_id, request_id), None)
    else:
        found[router_id, request_id] = value
