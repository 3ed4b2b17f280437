"""Connections that send half a head, too large a one, or none."""

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest
import uvicorn

from doors.gateway.protocol import HEAD_BYTES, GuardedProtocol

ANSWER = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
SECONDS = 0.3


class Impatient(GuardedProtocol):
    head_seconds = SECONDS
    max_connections = 20


async def _hello(scope: Any, receive: Any, send: Any) -> None:
    """Answer every request with its body."""
    body = b""
    while True:
        message = await receive()
        body += message.get("body", b"")
        if not message.get("more_body"):
            break
    await send(
        {
            "type": "http.response.start",
            "status": 200,
            "headers": [(b"content-length", str(len(body)).encode())],
        }
    )
    await send({"type": "http.response.body", "body": body})


@pytest.fixture
async def port() -> AsyncIterator[int]:
    """Serve on a free port with little patience."""
    config = uvicorn.Config(
        _hello,
        port=0,
        http=Impatient,
        ws="none",
        lifespan="off",
        log_config=None,
        timeout_keep_alive=30,
    )
    server = uvicorn.Server(config)
    running = asyncio.create_task(server.serve())
    async with asyncio.timeout(10.0):
        while not server.started:  # noqa: ASYNC110 - uvicorn has no event for it
            await asyncio.sleep(0.01)
    yield server.servers[0].sockets[0].getsockname()[1]
    server.should_exit = True
    await running


async def closed_after(port: int, *parts: bytes) -> tuple[float, bytes]:
    """Send parts with pauses, and return when the server closed the connection, and what it
    said.
    """
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    started = time.monotonic()
    said = b""
    try:
        for part in parts:
            writer.write(part)
            await asyncio.sleep(SECONDS / 10)
        async with asyncio.timeout(10.0):
            said = await reader.read()
    except ConnectionError:
        pass
    finally:
        writer.transport.abort()
    return time.monotonic() - started, said


@pytest.mark.parametrize(
    "parts",
    [
        (),
        (b"GET / HT",),
        tuple(ANSWER[n : n + 2] for n in range(0, len(ANSWER) - 2, 2)),
        (ANSWER, b"GET /"),
    ],
)
async def test_half_a_head_is_cut_off_in_time(port: int, parts: tuple[bytes, ...]) -> None:
    _, said = await closed_after(port, *parts)
    assert said.count(b"200 OK") == parts.count(ANSWER)


async def test_a_head_that_is_too_large_is_cut_off_and_a_large_body_is_none(port: int) -> None:
    _, said = await closed_after(port, b"GET / HTTP/1.1\r\nX: ", *[b"a" * HEAD_BYTES] * 2)
    assert said == b""
    large = b"POST / HTTP/1.1\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % (4 * HEAD_BYTES)
    _, said = await closed_after(port, large, b"b" * 4 * HEAD_BYTES)
    assert said.endswith(b"b" * 4 * HEAD_BYTES)


async def test_when_all_places_are_taken_half_sent_heads_give_way(port: int) -> None:
    silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(40)]
    try:
        for _ in range(10):
            _, said = await closed_after(
                port, ANSWER.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
            )
            assert b"200 OK" in said
    finally:
        for _, writer in silent:
            writer.transport.abort()


async def test_when_idle_connections_take_all_places_they_give_way_and_stay_otherwise(
    port: int,
) -> None:
    idle = []
    try:
        for _ in range(Impatient.max_connections + 10):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            idle.append((reader, writer))
            writer.write(ANSWER)
            async with asyncio.timeout(10.0):
                assert b"200 OK" in await reader.readuntil(b"\r\n\r\n")
        async with asyncio.timeout(10.0):
            assert await idle[0][0].read() == b""  # the one that was idle for longest
        reader, writer = idle[-1]
        await asyncio.sleep(2 * SECONDS)  # longer than a head may take
        writer.write(ANSWER)
        async with asyncio.timeout(10.0):
            assert b"200 OK" in await reader.readuntil(b"\r\n\r\n")
    finally:
        for _, writer in idle:
            writer.transport.abort()
