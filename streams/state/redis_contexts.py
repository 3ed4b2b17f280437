"""Keep contexts in Redis until their rewards come. Redis is a cache: the changelog has all
contexts.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from hashlib import blake2b
from struct import pack
from typing import Any, Protocol
from urllib.parse import urlsplit

import numpy as np
import redis.asyncio as redis
from aiokafka.errors import KafkaError
from redis.exceptions import InvalidResponse, ResponseError

from agents.ports import DecidedAt
from agents.table.router_records import Decided, Ref
from ground.boundary import Attempt, retrying
from router_state.config import Vector
from streams.log.reach import Reach
from streams.settings import Settings

TRANSIENT = (KafkaError, TimeoutError, OSError)
"""Errors of reading the changelog that another try may mend."""
ANSWER_WITHIN = 1.0
"""Seconds within which Redis must answer to be of use as a cache."""
REST = 1.0
"""Seconds for which a Redis that did not answer is not asked again, so that nothing waits for it
twice.
"""
RECENT_BYTES = 4 * 2**20
"""Bytes of contexts that were just written, kept in case they are asked for before Redis has
them."""
SEAL_BYTES = 8
"""Bytes before each context that bind it to its decision."""
PROBE: Ref = ("\x00", "probe")
"""Key of a context that no router can have, because no router has such a name."""


class ReadBack(Protocol):
    """Find contexts in the changelog, see `streams.state.read_back`."""

    async def find(self, partition: int, wanted: Mapping[Ref, float]) -> dict[Ref, bytes]: ...


class RedisContexts:
    """Keep contexts as `{namespace}{router_id}:{request_id}` with a time to live, all of a group in
    one round trip.

    A Redis that is away, full or answers nonsense stops nothing: the failure is logged and
    counted. A context counts only if it bears the seal of its decision; all others are read back
    from the changelog.

    Args:
        client: opens its connections when first used.
        namespace: function that returns the prefix of all keys of this service.
        ttl: seconds until a context is forgotten.
        read_back: finds contexts in the changelog.
        partition_of: partition of a router.
        reach: notes whether Redis answers; full: notes whether Redis accepts writes.
        count: function that counts failures of Redis (`redis`).
        retry_for: seconds for which a changelog that is away is waited for.
    """

    def __init__(
        self,
        client: redis.Redis,
        *,
        namespace: Callable[[], str],
        ttl: float,
        retry_for: float,
        read_back: ReadBack,
        partition_of: Callable[[str], int],
        reach: Reach,
        full: Reach,
        count: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = client
        self._namespace = namespace
        self._ttl_ms = int(ttl * 1000)
        self._retry_for = retry_for
        self._read_back = read_back
        self._partition_of = partition_of
        self._reach, self._full = reach, full
        self._count = count
        self._clock = clock
        self._rests_until = clock()
        self._recent: dict[Ref, bytes] = {}
        self._recent_bytes = 0

    async def put(self, contexts: Sequence[Decided]) -> None:
        """Keep contexts, each of shape (d,), unless Redis refuses them."""
        packed = {ref: (at, x.astype("<f8", copy=False).tobytes()) for ref, at, x in contexts}
        self._remember(packed)
        await self._put(packed)

    async def get(self, refs: Sequence[Ref], decided_at: DecidedAt) -> list[Vector | None]:
        """Return contexts in the order of `refs`; None for a context that is in no store.

        Raises:
            GaveUp: the changelog could not be read.
        """
        found: dict[Ref, bytes] = {ref: self._recent[ref] for ref in refs if ref in self._recent}
        asked = {
            ref: at for ref in refs if ref not in found and (at := decided_at(ref)) is not None
        }
        if asked:
            found |= await self._ask(self._mget, asked) or {}
        lost = {ref: at for ref, at in asked.items() if ref not in found}
        if lost:
            found |= await self._find(lost)
        return [np.frombuffer(found[ref], "<f8") if ref in found else None for ref in refs]

    async def look(self) -> None:
        """Ask whether Redis answers, so that an idle worker knows its readiness."""
        await self._ask(self._mget, {PROBE: 0.0})

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def _find(self, lost: Mapping[Ref, float]) -> dict[Ref, bytes]:
        by_partition: dict[int, dict[Ref, float]] = defaultdict(dict)
        for ref, at in lost.items():
            by_partition[self._partition_of(ref[0])][ref] = at
        found: dict[Ref, bytes] = {}
        for partition, wanted in by_partition.items():
            found |= await retrying(
                lambda partition=partition, wanted=wanted: self._read_back.find(partition, wanted),  # type: ignore[misc]
                transient=TRANSIENT,
                deadline=self._retry_for,
                clock=self._clock,
            )
        await self._put({ref: (lost[ref], context) for ref, context in found.items()})
        return found

    async def _put(self, contexts: Mapping[Ref, tuple[float, bytes]]) -> None:
        if contexts:
            await self._ask(self._set, contexts)

    async def _set(self, contexts: Mapping[Ref, tuple[float, bytes]]) -> None:
        # No transaction: contexts are independent, and a full Redis that refuses some keeps the
        # others.
        async with self._client.pipeline(transaction=False) as pipe:
            for ref, (at, context) in contexts.items():
                key, value = key_of(self._namespace(), ref), seal(ref, at, context) + context
                pipe.set(key, value, px=self._ttl_ms)
            outcomes = await pipe.execute(raise_on_error=False)
        for outcome in outcomes:
            if isinstance(outcome, Exception):
                raise outcome
        if not all(outcome is True for outcome in outcomes):
            raise InvalidResponse("SET is answered neither by OK nor by an error")
        self._full.answered()

    async def _mget(self, asked: Mapping[Ref, float]) -> dict[Ref, bytes]:
        """Return the contexts that Redis holds, of the decisions in `asked` with their times."""
        values = await self._client.mget([key_of(self._namespace(), ref) for ref in asked])
        if not isinstance(values, list) or len(values) != len(asked):
            raise InvalidResponse(f"MGET of {len(asked)} keys is answered by another number")
        found = {}
        for (ref, at), value in zip(asked.items(), values, strict=True):
            context = opened(ref, at, value)
            if context is not None:
                found[ref] = context
            elif value is not None:
                self._count()
        return found

    async def _ask(self, call: Callable[[Any], Awaitable[object]], argument: Any) -> Any:
        """Return Redis's answer; None on a failure, which is logged and counted."""
        if self._clock() < self._rests_until:
            return None
        with Attempt() as asking:
            answer = await call(argument)
            self._reach.answered()
            return answer
        error = asking.error
        self._count()
        if isinstance(error, ResponseError):
            # Redis answered, and refuses writes, as when it is out of memory: it can be reached.
            self._reach.answered()
            self._full.failed(f"{type(error).__name__}: {error}")
        else:
            # It does not answer, or with bytes over which redis-py's parser stumbles, each kind of
            # them by an error of another class.
            self._rests_until = self._clock() + REST
            self._reach.failed(f"{type(error).__name__}: {error}")
        return None

    def _remember(self, contexts: Mapping[Ref, tuple[float, bytes]]) -> None:
        for ref, (_, value) in contexts.items():
            self._recent_bytes += len(value) - len(self._recent.pop(ref, b""))
            self._recent[ref] = value
        while self._recent_bytes > RECENT_BYTES:
            self._recent_bytes -= len(self._recent.pop(next(iter(self._recent))))


def seal(ref: Ref, decided_at: float, context: bytes) -> bytes:
    """Return the seal that binds a context to one decision: a key may hold a context of another
    service or of an earlier request of this name, or an answer to another question.
    """
    about = "\0".join(ref).encode() + pack("<d", decided_at)
    return blake2b(about + context, digest_size=SEAL_BYTES).digest()


def opened(ref: Ref, decided_at: float, value: object) -> bytes | None:
    """Return the context in a value of Redis; None if the context is not that of this decision."""
    if not isinstance(value, bytes):
        return None
    context = value[SEAL_BYTES:]
    return context if value[:SEAL_BYTES] == seal(ref, decided_at, context) else None


def namespace_of(settings: Settings, cluster_id: str) -> str:
    """Return the prefix of all keys of a service, from its cluster and its group, which no other
    service shares.
    """
    return f"{settings.prefix}context:{cluster_id}:{settings.app_id}:"


def key_of(namespace: str, ref: Ref) -> str:
    """Return the key of a request's context."""
    return f"{namespace}{ref[0]}:{ref[1]}"


def address_of(url: str) -> str:
    """Return the address in a Redis URL, without user and password."""
    parts = urlsplit(url)
    return f"{parts.hostname}:{parts.port or 6379}" if parts.hostname else parts.path


def connect(url: str) -> redis.Redis:
    """Return a client for a Redis URL; TLS, user and password are part of it. Opens nothing."""
    timeouts = {"socket_timeout": ANSWER_WITHIN, "socket_connect_timeout": ANSWER_WITHIN}
    client: redis.Redis = redis.from_url(url, **timeouts, retry_on_timeout=False)
    return client
