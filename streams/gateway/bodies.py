"""Read a request's body within its bounds, and the events in it."""

from __future__ import annotations

import asyncio

import orjson
from starlette.requests import ClientDisconnect, Request

from schemas import Reason
from streams.gateway.limits import Bounds
from streams.gateway.problems import Problem

CLOSE = {"Connection": "close"}
"""What is still to come of a body that was refused is not read."""


async def read_events(request: Request, bounds: Bounds) -> tuple[list[dict[str, object]], bool]:
    """Return the events of a body, and whether it is a batch.

    Raises:
        Problem: it is too large, too slow, no JSON, or neither an object nor an array of some
        objects.
    """
    try:
        found = orjson.loads(await read_body(request, bounds))
    except orjson.JSONDecodeError as error:
        raise Problem(Reason.MALFORMED_JSON.value, str(error)) from None
    events = found if isinstance(found, list) else [found]
    if len(events) > bounds.events:
        raise Problem("too_many_events", f"{len(events)} events; {bounds.events} is the limit")
    if not events or not all(isinstance(event, dict) for event in events):
        raise Problem(
            Reason.MALFORMED_EVENT.value, "the body is neither an object nor an array of objects"
        )
    return events, isinstance(found, list)


async def read_body(request: Request, bounds: Bounds) -> bytes:
    """Return a request's body. Raises Problem: it is too large or too slow."""
    too_large = Problem("body_too_large", f"{bounds.body_bytes} bytes is the limit", headers=CLOSE)
    declared = request.headers.get("content-length", "0")
    # By what the client declares, before any of it is read; a client may also lie, see below.
    if not declared.isdigit() or int(declared) > bounds.body_bytes:
        raise too_large
    body = bytearray()
    try:
        async with asyncio.timeout(bounds.seconds):
            async for chunk in request.stream():
                body += chunk
                if len(body) > bounds.body_bytes:
                    raise too_large
    except (TimeoutError, ClientDisconnect):
        raise Problem("request_timeout", headers=CLOSE) from None
    return bytes(body)
