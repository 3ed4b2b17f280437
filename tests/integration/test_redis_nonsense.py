"""A Redis that answers anything at all: contexts come from the changelog then, and nothing ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.table.router_records import Decided, Ref
from streams.log.reach import Reach
from streams.state.redis_contexts import RedisContexts, connect, seal
from tests.integration.service import cost, request, reward, router, running_service
from tests.integration.test_contexts import Changelog

Reply = Callable[[list[bytes]], bytes]
NOW = 1_800_000_000.0
X = np.array([0.1, -0.2, 1.0])
REFS: tuple[Ref, ...] = (("r", "a"), ("r", "b"))


def blob(value: bytes | None) -> bytes:
    """Write a value as Redis does."""
    return b"$-1\r\n" if value is None else b"$%d\r\n%s\r\n" % (len(value), value)


def array(*values: bytes) -> bytes:
    """Write packed values as one array."""
    return b"*%d\r\n%s" % (len(values), b"".join(values))


def sealed(ref: Ref, at: float, context: bytes) -> bytes:
    """Write a context as a service does."""
    return blob(seal(ref, at, context) + context)


@asynccontextmanager
async def redis_that_says(reply: Reply, path: str) -> AsyncIterator[str]:
    """Serve on a Unix socket: what opens a connection is answered well, all else by `reply`."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while line := await reader.readline():
                words = []
                for _ in range(int(line[1:])):
                    size = int((await reader.readline())[1:])
                    words.append((await reader.readexactly(size + 2))[:size])
                if words[0].upper() in (b"SET", b"MGET"):
                    writer.write(reply(words))
                    if not reply(words).endswith(b"\r\n"):
                        break  # nobody waits for the rest
                else:
                    writer.write(b"+OK\r\n")
        except (asyncio.IncompleteReadError, ConnectionError, ValueError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_unix_server(talk, path)
    try:
        yield f"unix://{path}"
    finally:
        server.close()


def store_of(url: str, changelog: Changelog) -> RedisContexts:
    """Return a store whose clock leaps, so that a Redis which failed is asked again."""
    hours = iter(range(10**6))
    return RedisContexts(
        connect(url),
        namespace=lambda: "t.",
        ttl=60.0,
        retry_for=5.0,
        read_back=changelog,
        partition_of=lambda _: 0,
        reach=Reach("Redis"),
        full=Reach("Redis", fault="refuses contexts"),
        clock=lambda: 3600.0 * next(hours),
    )


async def ask_twice(reply: Reply, path: str) -> None:
    """Put contexts and get them, as after a restart, and again over the same connections."""
    changelog = Changelog({ref: (n * X).tobytes() for n, ref in enumerate(REFS)})
    written: list[Decided] = [(ref, NOW, n * X) for n, ref in enumerate(REFS)]
    async with redis_that_says(reply, path) as url:
        store = store_of(url, changelog)
        for _ in range(2):
            await store.put(written)
            store._recent.clear()
            found = await store.get(REFS, lambda _: NOW)
            assert [None if x is None else x.tobytes() for x in found] == [
                (n * X).tobytes() for n in range(len(REFS))
            ]
        await store.close()


lines = st.builds(
    lambda kind, rest: kind + rest + b"\r\n",
    st.sampled_from([b"*", b"$", b":", b"+", b"-", b"%", b"_", b"#", b"(", b",", b"~", b">", b""]),
    st.sampled_from([b"", b"0", b"1", b"2", b"3", b"-1", b"-7", b"x", b"99999", b"OK", b"OOM x"])
    | st.binary(max_size=20),
)
replies = st.binary(max_size=200) | st.lists(lines, max_size=8).map(b"".join)


@given(mget=replies, set_=replies | st.just(b"+OK\r\n"))
@settings(deadline=None)
def test_any_bytes_of_redis_stop_nothing(mget: bytes, set_: bytes) -> None:
    # An answer that is not finished is the same as none, which costs a second of waiting.
    with TemporaryDirectory() as folder:
        reply: Reply = lambda words: set_ if words[0] == b"SET" else mget  # noqa: E731
        asyncio.run(ask_twice(reply, f"{folder}/redis"))


OTHERS = {
    "of another request": sealed(REFS[0], NOW, X.tobytes()),
    "of an earlier decision": sealed(REFS[1], NOW - 1.0, X.tobytes()),
    "of another length": sealed(REFS[1], NOW, X.tobytes())[:-10] + b"\r\n",
    "without a seal": blob(X.tobytes()),
    "NaN": blob(b"\xff" * 32),
    "empty": blob(b""),
    "number": b":7\r\n",
    "list": array(blob(b"x")),
    "nothing": blob(None),
}


@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS.keys())
async def test_a_context_of_another_decision_is_no_context(other: bytes, tmp_path: Path) -> None:
    good = sealed(REFS[0], NOW, (0 * X).tobytes())
    await ask_twice(
        lambda words: b"+OK\r\n" if words[0] == b"SET" else array(good, other), f"{tmp_path}/redis"
    )


async def test_bills_are_booked_beside_a_redis_that_talks_nonsense(
    kafka: str, tmp_path: Path
) -> None:
    def reply(words: list[bytes]) -> bytes:
        if words[0] == b"SET":
            return b"*zz\r\n"
        # As many as were asked for, each of another router's dimensions.
        return array(*[blob(bytes(80)) for _ in words[1:]])

    async with (
        redis_that_says(reply, f"{tmp_path}/redis") as url,
        running_service(kafka, tmp_path, PB_REDIS_URL=url) as service,
    ):
        await service.send("routers", router("r"))
        worker = service.worker()
        for n in range(10):
            await service.send("requests", request("r", f"q{n}", seed=n))
        await service.until(lambda: len(service.routes("r")) == 10, "every decision")
        worker.kill()
        service.worker()
        for n in range(10):
            await service.send("costs", cost("r", f"q{n}", 1e-4))
            await service.send("rewards", reward("r", f"q{n}", 0.5))
        done = {"settled": 10, "rewards_applied": 10}
        await service.until(
            lambda: done.items() <= service.lambda_of("r").items(), "every bill and reward"
        )
        assert not service.dead_letters()
