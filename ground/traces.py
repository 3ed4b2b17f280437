"""Read the trace headers of an event (W3C), which are copied to everything published about it."""

import re
from collections.abc import Iterable
from typing import Final

TRACEPARENT: Final = "traceparent"
TRACESTATE: Final = "tracestate"
"""Header with the vendors' part of an event's trace (w3.org/TR/trace-context)."""

_TRACEPARENT = re.compile(
    rb"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(-.*)?"
)
"""Version (not ff), trace and parent (not all zeros), flags; later versions may add to it."""
_MAX_TRACEPARENT: Final = 128
"""Bytes: version 00 has 55, and a later one may be longer."""
_MAX_TRACESTATE: Final = 512  # bytes that everyone on a trace's way must pass on

Headers = tuple[tuple[str, bytes], ...]


def trace_of(headers: Iterable[tuple[str, bytes]]) -> Headers:
    """Return an event's trace headers, to be passed on. A trace that is missing or malformed gives
    no headers, as the standard asks.
    """
    found = {
        name.lower(): value for name, value in headers if name.lower() in (TRACEPARENT, TRACESTATE)
    }
    parent, state = found.get(TRACEPARENT), found.get(TRACESTATE)
    if parent is None or len(parent) > _MAX_TRACEPARENT or _TRACEPARENT.fullmatch(parent) is None:
        return ()
    if not state or len(state) > _MAX_TRACESTATE:
        return ((TRACEPARENT, parent),)
    return (TRACEPARENT, parent), (TRACESTATE, state)
