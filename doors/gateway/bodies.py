"""Read a request's body within its bounds, and the events in it."""

from __future__ import annotations

import asyncio
import re
import zlib
from collections.abc import Sequence

import msgspec
from starlette.requests import ClientDisconnect, Request

from doors.gateway.problems import Problem
from doors.gateway.rate_limits import Bounds
from ground.json_text import ESCAPED_HALF, dumps, loads
from schemas import Reason

CLOSE = {"Connection": "close"}
"""Header that ends the connection, because the rest of a refused body is not read."""
JSON_TYPES = re.compile(r"application/(json|jsonl|x-ndjson|[a-z0-9.-]+\+json)")
"""Media types of bodies (RFC 8259; RFC 6839, 3.1). A page of another site cannot send one without
asking first (Fetch, CORS-safelisted request-header).
"""
GZIP = ("gzip", "x-gzip")
"""Names of gzip as a coding of content (RFC 9110, 8.4.1.3)."""
GZIP_MEMBERS = 16
"""Most members of a body of gzip; exporters send one."""
LINES = ("application/jsonl", "application/x-ndjson")
"""Media types of bodies that hold one event per line."""
_one, _many, _lines = (
    msgspec.json.Decoder(msgspec.Raw).decode,
    msgspec.json.Decoder(list[msgspec.Raw]).decode,
    msgspec.json.Decoder(msgspec.Raw).decode_lines,
)
"""Decoders that split a body into events; the schemas check their content, as they do on Kafka."""


async def read_events(request: Request, bounds: Bounds) -> tuple[list[bytes], bool]:
    """Return the events of a body, each as the sender wrote it, and whether the body is an array or
    a text of lines.

    Raises:
        Problem: the body is too large, too slow, not JSON, or neither an object nor a non-empty
            array of objects.
    """
    body = await read_body(request, bounds)
    by_line, is_array = _kind(request) in LINES, body.lstrip()[:1] == b"["
    found: Sequence[msgspec.Raw | bytes]
    try:
        found = _lines(body) if by_line else _many(body) if is_array else [_one(body)]
    except (msgspec.DecodeError, RecursionError) as error:
        found = _with_halves(body, by_line=by_line)
        if not found:
            raise Problem(Reason.MALFORMED_JSON.value, str(error)) from None
    if len(found) > bounds.events:
        raise Problem("too_many_events", f"{len(found)} events; {bounds.events} is the limit")
    events = [bytes(event) for event in found]
    if not events or not all(event.startswith(b"{") for event in events):
        raise Problem(
            Reason.MALFORMED_EVENT.value, "the body is neither an object nor several objects"
        )
    return events, by_line or is_array


def _with_halves(body: bytes, *, by_line: bool) -> list[bytes]:
    """Return the events of a body that may hold halves of characters, which the schemas judge; none
    where it is not JSON either way.
    """
    if not ESCAPED_HALF.search(body):
        return []
    try:
        read = (
            [loads(part) for part in body.splitlines() if part.strip()] if by_line else loads(body)
        )
    except ValueError:
        return []
    return [dumps(event) for event in (read if isinstance(read, list) else [read])]


def _kind(request: Request) -> str:
    """Return the media type of a body."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


async def read_body(request: Request, bounds: Bounds, *, gzipped: bool = False) -> bytes:
    """Return a request's body.

    Args:
        gzipped: take gzip as well, which exporters of traces send by default.

    Raises:
        Problem: its type is not JSON, or it is too large, packed or not, or too slow.
    """
    if not JSON_TYPES.fullmatch(_kind(request)):
        hint = (
            "OTLP in protobuf is not read: let the exporter write JSON (`encoding: json`)"
            if _kind(request) == "application/x-protobuf"
            else ""
        )
        raise Problem("unsupported_media_type", hint, headers=CLOSE)
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
    if encoding != "identity" and not (gzipped and encoding in GZIP):
        wanted = "send it without Content-Encoding" + (", or with gzip" if gzipped else "")
        raise Problem("unsupported_media_type", wanted, headers=CLOSE)
    too_large = Problem("body_too_large", f"{bounds.body_bytes} bytes is the limit", headers=CLOSE)
    declared = request.headers.get("content-length", "0")
    # The declared length is checked before anything is read; the real one, below.
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
    return _unpacked(bytes(body), too_large, bounds) if encoding in GZIP else bytes(body)


def _unpacked(body: bytes, too_large: Problem, bounds: Bounds) -> bytes:
    """Return what a body of gzip holds. Raises Problem: it is none, was cut off, or holds more than
    a body may."""
    found = bytearray()
    try:
        # A file of gzip may have several members (RFC 1952, 2.2); each copies what is left.
        for _ in range(GZIP_MEMBERS):
            member = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
            found += member.decompress(body, bounds.body_bytes + 1 - len(found))
            if len(found) > bounds.body_bytes:
                raise too_large
            if not member.eof:
                raise Problem(Reason.MALFORMED_JSON.value, "the body of gzip was cut off")
            body = member.unused_data
            if not body:
                return bytes(found)
    except zlib.error as error:
        raise Problem(Reason.MALFORMED_JSON.value, f"the body is not gzip: {error}") from None
    raise too_large
