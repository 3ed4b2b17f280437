"""Contexts in a real Redis: kept, refilled from the changelog when lost, waited for while Redis is away."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import numpy as np
import pytest

from agents.boundary import GaveUp
from streams.state.contexts import RedisContexts, connect

X = np.array([0.1, -0.2, 1.0])


@pytest.fixture
async def contexts(redis_url: str) -> AsyncIterator[RedisContexts]:
    store = make(redis_url)
    yield store
    await store.close()


def make(
    url: str, *, refill: dict[tuple[str, str], bytes] | None = None, retry_for: float = 5.0, prefix: str = "t."
) -> RedisContexts:
    async def read(_: int) -> dict[tuple[str, str], bytes]:
        return refill or {}

    return RedisContexts(connect(url), prefix=prefix, ttl=60.0, retry_for=retry_for, refill=read, partition_of=lambda _: 0)


async def test_a_context_comes_back_to_the_bit(contexts: RedisContexts) -> None:
    await contexts.put([(("r", "a"), X), (("r", "b"), X * np.pi)])
    b, missing, a = await contexts.get([("r", "b"), ("r", "none"), ("r", "a")])
    assert a is not None and b is not None
    assert (a.tobytes(), b.tobytes(), missing) == (X.tobytes(), (X * np.pi).tobytes(), None)


async def test_contexts_expire(redis_url: str, contexts: RedisContexts) -> None:
    await contexts.put([(("r", "ttl"), X)])
    client = connect(redis_url)
    assert 0 < await client.pttl("t.context:r:ttl") <= 60_000
    await client.aclose()


async def test_contexts_that_redis_lost_are_read_back_from_the_changelog(redis_url: str) -> None:
    store = make(redis_url, refill={("r", "lost"): X.tobytes(), ("r", "other"): (2 * X).tobytes()}, prefix="lost.")
    (found,) = await store.get([("r", "lost")])
    assert found is not None and (found == X).all()
    await store.close()
    unfilled = make(redis_url, prefix="lost.")
    (other,) = await unfilled.get([("r", "other")])
    assert other is not None and (other == 2 * X).all()
    await unfilled.close()


async def test_a_redis_that_is_emptied_again_and_again_is_refilled_each_time(redis_url: str) -> None:
    store, client = make(redis_url, refill={("r", "lost"): X.tobytes()}, prefix="again."), connect(redis_url)
    for _ in range(3):
        (found,) = await store.get([("r", "lost")])
        assert found is not None and (found == X).all()
        await client.delete(*[key async for key in client.scan_iter("again.*")])
    await client.aclose()
    await store.close()


async def test_what_the_changelog_has_not_either_is_looked_for_once(redis_url: str) -> None:
    readings: list[int] = []

    async def read(partition: int) -> dict[tuple[str, str], bytes]:
        readings.append(partition)
        return {}

    store = RedisContexts(connect(redis_url), prefix="once.", ttl=60.0, retry_for=5.0, refill=read, partition_of=lambda _: 3)
    assert [await store.get([("r", "none")]) for _ in range(3)] == [[None]] * 3
    assert readings == [3]
    await store.close()


@pytest.fixture
def own_redis(tmp_path: Path) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """Start a Redis on a Unix socket that only this test talks to."""
    socket = tmp_path / "redis.sock"
    command = ["redis-server", "--port", "0", "--unixsocket", str(socket), "--save", "", "--dir", str(tmp_path)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=sys.stderr)
    yield f"unix://{socket}", process
    process.kill()
    process.wait()


async def test_calls_wait_for_a_redis_that_is_away_and_are_made_in_order(own_redis: tuple[str, subprocess.Popen[bytes]]) -> None:
    url, process = own_redis
    store = make(url, retry_for=30.0)
    await store.put([(("r", "a"), X)])
    os.kill(process.pid, signal.SIGSTOP)
    writing = asyncio.create_task(store.put([(("r", "b"), 2 * X)]))
    await asyncio.sleep(0.3)
    assert not writing.done()
    os.kill(process.pid, signal.SIGCONT)
    await writing
    found = await store.get([("r", "a"), ("r", "b")])
    assert [None if x is None else x[2] for x in found] == [1.0, 2.0]
    await store.close()


async def test_a_redis_that_stays_away_ends_the_wait_with_a_reason(tmp_path: Path) -> None:
    store = make(f"unix://{tmp_path}/nobody.sock", retry_for=0.2)
    with pytest.raises(GaveUp):
        await store.put([(("r", "a"), X)])
    await store.close()
