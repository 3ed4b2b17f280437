"""Headers that carry meaning beside the value: `pb.forwarded`, `pb.based_on`, `pb.repeated`, and a
trace's (W3C).
"""

import re
from collections.abc import Iterable
from typing import Final

from schemas.event import MalformedEvent
from schemas.fields import LARGEST_INT
from schemas.reasons import Reason

FORWARDED: Final = "pb.forwarded"
"""Header of an event that a worker sent on to its router's partition; it is never sent on twice."""

BASED_ON: Final = "pb.based_on"
"""Header of a declaration: offset of the declaration that its writer has read, in decimal digits;
-1 if there was none."""

REPEATED: Final = "pb.repeated"
"""Header of a declaration in force that a worker writes again, because it refused the one behind
it."""

TRACEPARENT: Final = "traceparent"
TRACESTATE: Final = "tracestate"
"""Header with the rest of an event's trace (w3.org/TR/trace-context). `traceparent` and
`tracestate` pass from an event to everything that is published about it."""

_TRACEPARENT = re.compile(
    rb"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(-.*)?"
)
"""Version (not ff), trace and parent (not all zeros), flags; later versions may add to it."""
_MAX_TRACEPARENT: Final = 128
"""Bytes: version 00 has 55, and a later one may be longer."""
_MAX_TRACESTATE: Final = 512  # bytes that everyone on a trace's way must pass on

Headers = tuple[tuple[str, bytes], ...]


def trace_of(headers: Iterable[tuple[str, bytes]]) -> Headers:
    """Return an event's trace as headers to pass on; nothing where there is none or it is
    unreadable, as the standard asks.
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


def based_on(headers: Iterable[tuple[str, bytes]]) -> int | None:
    """Read the offset that a declaration is conditional on: −1 if no other may be in force, None
    without a condition.

    Raises:
        MalformedEvent: the header is not an offset in decimal digits.
    """
    value = dict(headers).get(BASED_ON)
    if value is None:
        return None
    if value == b"-1":
        return -1
    if not value.isdigit() or len(value) > 16 or int(value) > LARGEST_INT:
        raise MalformedEvent(Reason.MALFORMED_EVENT, f"header {BASED_ON} is not an offset")
    return int(value)


def is_forwarded(headers: Iterable[tuple[str, bytes]]) -> bool:
    """Tell whether the event was already sent on by a worker."""
    return any(name == FORWARDED for name, _ in headers)
