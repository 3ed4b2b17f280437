"""Keys of the durable table: one byte for the kind, the router, and what of it."""

from __future__ import annotations

from typing import Final

HEAD: Final = b"h"
CONFIG: Final = b"c"
ARM: Final = b"a"
REQUEST: Final = b"q"
CONTEXT: Final = b"x"
PARKED: Final = b"p"
DECLARED: Final = b"d"
"""What is in force of a router, as it was declared."""
WATERMARKS: Final = b"w"
GONE: Final = b"g"
"""Of a router that was declared gone, while records of it are still to be deleted."""

_END = b"\x00"


def key(kind: bytes, router_id: str, part: str = "") -> bytes:
    """Return the key of a router's piece: `part` is a model, a request_id, or nothing."""
    return b"%b%b%b%b" % (kind, router_id.encode(), _END, part.encode())


def split(raw: bytes) -> tuple[bytes, str, str]:
    """Invert `key`: kind, router_id, part."""
    router_id, _, part = raw[1:].partition(_END)
    return raw[:1], router_id.decode(), part.decode()
