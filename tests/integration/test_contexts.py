"""Contexts in a real Redis: kept, read back from the changelog when lost, and gone on without while
Redis is away or full.
"""

import asyncio
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from pathlib import Path

import numpy as np
import pytest
from aiokafka import AIOKafkaProducer
from redis.exceptions import ConnectionError

from agents.table import keys
from agents.table.router_records import Ref
from streams.log.reach import Reach
from streams.log.service_topics import create_topics
from streams.settings import Settings
from streams.state.read_back import ChangelogContexts
from streams.state.redis_contexts import RedisContexts, address_of, connect, opened

X = np.array([0.1, -0.2, 1.0])
NOW = 1_800_000_000.0


@pytest.fixture
async def contexts(redis_url: str) -> AsyncIterator[RedisContexts]:
    store = make(redis_url)
    yield store
    await store.close()


class Changelog:
    """Contexts on the changelog, and how often they were looked for."""

    def __init__(self, contexts: dict[Ref, bytes] | None = None) -> None:
        self.contexts = contexts or {}
        self.asked: list[tuple[int, list[Ref]]] = []

    async def find(self, partition: int, wanted: Mapping[Ref, float]) -> dict[Ref, bytes]:
        self.asked.append((partition, list(wanted)))
        return {ref: self.contexts[ref] for ref in wanted if ref in self.contexts}


def make(
    url: str,
    *,
    changelog: Changelog | None = None,
    namespace: str = "t.",
    count: Callable[[], None] = lambda: None,
) -> RedisContexts:
    return RedisContexts(
        connect(url),
        namespace=lambda: namespace,
        ttl=60.0,
        retry_for=5.0,
        read_back=changelog or Changelog(),
        partition_of=lambda _: 3,
        reach=Reach(f"Redis at {address_of(url)} (PB_REDIS_URL)"),
        full=Reach("Redis", fault="refuses contexts"),
        count=count,
    )


def then(_: Ref) -> float:
    return NOW


async def test_a_context_comes_back_to_the_bit(contexts: RedisContexts) -> None:
    await contexts.put([(("r", "a"), NOW, X), (("r", "b"), NOW, X * np.pi)])
    b, missing, a = await contexts.get([("r", "b"), ("r", "none"), ("r", "a")], then)
    assert a is not None and b is not None
    assert (a.tobytes(), b.tobytes(), missing) == (X.tobytes(), (X * np.pi).tobytes(), None)


async def test_contexts_expire(redis_url: str, contexts: RedisContexts) -> None:
    await contexts.put([(("r", "ttl"), NOW, X)])
    client = connect(redis_url)
    assert 0 < await client.pttl("t.r:ttl") <= 60_000
    await client.aclose()


async def test_contexts_that_redis_lost_are_read_back_by_key_and_kept_again(redis_url: str) -> None:
    changelog = Changelog({("r", "lost"): X.tobytes(), ("r", "other"): (2 * X).tobytes()})
    store = make(redis_url, changelog=changelog, namespace="lost.")
    for _ in range(2):
        (found,) = await store.get([("r", "lost")], then)
        assert found is not None and (found == X).all()
    assert changelog.asked == [(3, [("r", "lost")])]
    await store.close()


async def test_a_redis_that_is_emptied_again_and_again_stops_nothing(redis_url: str) -> None:
    store, client = (
        make(redis_url, changelog=Changelog({("r", "lost"): X.tobytes()}), namespace="again."),
        connect(redis_url),
    )
    for _ in range(3):
        (found,) = await store.get([("r", "lost")], then)
        assert found is not None and (found == X).all()
        await client.delete(*[key async for key in client.scan_iter("again.*")])
    await client.aclose()
    await store.close()


async def test_what_was_just_written_needs_no_redis(tmp_path: Path) -> None:
    changelog = Changelog()
    store = make(f"unix://{tmp_path}/nobody.sock", changelog=changelog)
    await store.put([(("r", "a"), NOW, X)])
    (found,) = await store.get([("r", "a")], then)
    assert found is not None and (found == X).all() and not changelog.asked


async def test_a_request_that_nobody_knows_any_more_is_not_looked_for(redis_url: str) -> None:
    changelog = Changelog()
    store = make(redis_url, changelog=changelog, namespace="gone.")
    assert await store.get([("r", "gone")], lambda _: None) == [None]
    assert not changelog.asked
    await store.close()


@pytest.fixture
def own_redis(tmp_path: Path) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """Start a Redis on a Unix socket that only this test talks to."""
    socket = tmp_path / "redis.sock"
    command = [
        "redis-server",
        "--port",
        "0",
        "--unixsocket",
        str(socket),
        "--save",
        "",
        "--dir",
        str(tmp_path),
    ]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=sys.stderr)
    yield f"unix://{socket}", process
    process.kill()
    process.wait()


async def test_a_redis_that_hangs_is_said_once_and_gone_on_without(
    own_redis: tuple[str, subprocess.Popen[bytes]], caplog: pytest.LogCaptureFixture
) -> None:
    url, process = own_redis
    failures: list[int] = []
    store = make(
        url, changelog=Changelog({("r", "a"): X.tobytes()}), count=lambda: failures.append(1)
    )
    await until_up(url)
    os.kill(process.pid, signal.SIGSTOP)
    for _ in range(3):
        (found,) = await store.get([("r", "a")], then)
        assert found is not None and (found == X).all()
    assert len(failures) < 3  # it is not waited for again and again
    os.kill(process.pid, signal.SIGCONT)
    while "is back" not in caplog.text:
        await store.look()
        await asyncio.sleep(0.05)
    gone, back = [
        record.getMessage() for record in caplog.records if record.name == "streams.log.reach"
    ]
    assert gone.startswith(
        f"Redis at {url.removeprefix('unix://')} (PB_REDIS_URL) does not answer: "
    )
    assert "failures were counted" in back
    await store.close()


async def test_a_full_redis_is_said_once_and_gone_on_without(
    own_redis: tuple[str, subprocess.Popen[bytes]], caplog: pytest.LogCaptureFixture
) -> None:
    url, _ = own_redis
    await until_up(url)
    client, failures = connect(url), list[int]()
    await client.config_set("maxmemory", "1")
    store = make(
        url, changelog=Changelog({("r", "a"): X.tobytes()}), count=lambda: failures.append(1)
    )
    await store.put([(("r", "b"), NOW, X)])
    (found,) = await store.get([("r", "a")], then)
    assert found is not None and (found == X).all()
    assert len(failures) == 2 and caplog.text.count("OutOfMemoryError") == 1
    await client.config_set("maxmemory", "0")
    await store.put([(("r", "b"), NOW, X)])
    assert "Redis is back" in caplog.text
    assert opened(("r", "b"), NOW, await client.get("t.r:b")) == X.tobytes()
    await client.aclose()
    await store.close()


async def until_up(url: str) -> None:
    client = connect(url)
    async with asyncio.timeout(30):
        while True:
            try:
                await client.ping()
                break
            except (ConnectionError, OSError):
                await asyncio.sleep(0.05)
    await client.aclose()


async def test_contexts_are_found_in_the_changelog_from_about_where_they_were_written(
    kafka: str,
) -> None:
    settings = Settings(
        bootstrap=kafka, prefix="back.", app_id=f"back-{uuid.uuid4().hex[:8]}", partitions=1
    )
    await create_topics(settings)
    written: dict[Ref, float] = {}
    began = 1_800_000_000.0
    async with AIOKafkaProducer(bootstrap_servers=kafka, acks="all") as producer:
        for number in range(600):
            ref, at = ("r", f"q-{number}"), began + 10.0 * number
            written[ref] = at
            value, key = (number * X).tobytes(), keys.key(keys.CONTEXT, *ref)
            await producer.send(
                settings.changelog, value, key, partition=0, timestamp_ms=int(at * 1000) + 5
            )
            await producer.send(
                settings.changelog, b"head", b"h", partition=0, timestamp_ms=int(at * 1000) + 5
            )
        await producer.send_and_wait(
            settings.changelog, None, keys.key(keys.CONTEXT, "r", "q-7"), partition=0
        )
    reader = ChangelogContexts(settings)
    wanted = {("r", f"q-{number}"): written["r", f"q-{number}"] for number in (3, 4, 599, 300)}
    assert await reader.find(0, wanted) == {ref: (int(ref[1][2:]) * X).tobytes() for ref in wanted}
    # A clock that jumped, a request that was forgotten, one that never was.
    odd = {("r", "q-5"): began + 5000.0, ("r", "q-7"): written["r", "q-7"], ("r", "never"): began}
    found = await reader.find(0, odd)
    assert found["r", "q-5"] == (5 * X).tobytes() and ("r", "never") not in found
    await reader.close()
