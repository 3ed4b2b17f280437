"""What the agents need of a message, however the client library hands it over."""

from __future__ import annotations

from typing import Any

from schemas.headers import Headers, trace_of


def headers_of(message: Any) -> list[tuple[str, bytes]]:
    """Return a message's headers as pairs; a parked one has none but its trace's."""
    headers = getattr(message, "headers", None) or ()
    return list(headers.items() if isinstance(headers, dict) else headers)


def trace_of_message(message: Any) -> Headers:
    """Return the trace of a source message or of a parked one, as headers to pass on."""
    parked: Headers | None = getattr(message, "trace", None)
    if parked is not None:
        return parked
    headers = headers_of(message)
    return trace_of(headers) if headers else ()
