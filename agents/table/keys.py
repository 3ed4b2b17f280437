"""Keys of the durable table: one byte for the kind, the router, and the part."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Final

from router_state.errors import DamagedState

HEAD: Final = b"h"
"""Kind of the head: counts, pacer and portfolio, without which a router does not exist."""
CONFIG: Final = b"c"
"""The configuration in force."""
ARM: Final = b"a"
"""An arm of a router, or another piece (`router_state.changes`); the part names the piece."""
REQUEST: Final = b"q"
"""A request's record; the part is its id."""
CONTEXT: Final = b"x"
"""A request's context, 8 bytes a dimension; with Redis it is only on the log."""
PARKED: Final = b"p"
"""An event that waits; the part is `topic/offset`."""
DECLARED: Final = b"d"
"""A router's declaration in force, as it was declared."""
WATERMARKS: Final = b"w"
"""The last offsets of the source topics that the partition's state contains; the key names no
router.
"""
POOL: Final = b"l"
"""A piece of a pool: its head, its declaration or one member; the part names the piece."""
MEMBER: Final = b"m"
"""Mark of a router that is a member of a pool; the part names the pool."""
FAMILY: Final = b"f"
"""A piece of a family: its estimates, a member, or a member's sums of a model; the part names the
piece."""
GONE: Final = b"g"
"""Mark of a router that was removed, while records of it are still to be deleted."""
OF: Final = {HEAD: "router", POOL: "pool", FAMILY: "family"}
"""Words for routers, pools and families, by the kind of their records."""

_END = b"\x00"
"""End of the router_id, which has no zero byte: so no router's keys begin with another's."""


def key(kind: bytes, router_id: str, part: str = "") -> bytes:
    """Return the key of a router's piece: `part` is a model, a request_id, or nothing."""
    return b"%b%b%b%b" % (kind, router_id.encode(), _END, part.encode())


def split(raw: bytes) -> tuple[bytes, str, str]:
    """Invert `key`: kind, router_id, part. Raises DamagedState."""
    router_id, _, part = raw[1:].partition(_END)
    try:
        return raw[:1], router_id.decode(), part.decode()
    except UnicodeDecodeError as error:
        raise DamagedState(f"a key: {error}") from None


def by_kind(raws: Iterable[bytes]) -> Mapping[bytes, list[bytes]]:
    """Return keys by their kind, in one pass."""
    found: defaultdict[bytes, list[bytes]] = defaultdict(list)
    for raw in raws:
        found[raw[:1]].append(raw)
    return found
