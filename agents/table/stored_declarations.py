"""A router's declaration as a worker keeps it beside its state: the document that was written."""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from typing import Self

import orjson

from router_state.errors import DamagedState
from router_state.packing.framing import body_of, frame

_HEAD = struct.Struct(">?q")
"""`last`, offset: big-endian, so that no padding depends on the machine."""


@dataclass(frozen=True, slots=True)
class InForce:
    """A declaration in force.

    Attributes:
        offset: where on `pb.routers` it stands.
        last: whether no other record of its router stands behind it, as far as this worker has
            read.
        packed: the document, compressed.
    """

    offset: int
    last: bool
    packed: bytes

    @classmethod
    def of(cls, value: bytes, *, offset: int) -> Self:
        """Return a declaration just put in force, without its snapshot, which is large and no
        longer needed."""
        if b'"snapshot"' in value:
            value = orjson.dumps(
                {name: part for name, part in orjson.loads(value).items() if name != "snapshot"}
            )
        return cls(offset, True, zlib.compress(value, 1))

    @property
    def document(self) -> bytes:
        """Return the declaration's value."""
        return zlib.decompress(self.packed)

    def pack(self) -> bytes:
        """Return it as a framed record: `last`, offset, the document."""
        return frame(_HEAD.pack(self.last, self.offset) + self.packed)

    @classmethod
    def unpack(cls, data: bytes) -> Self:
        """Invert `pack`. Raises DamagedState."""
        body = body_of(data, "the declaration in force")
        last, offset = _HEAD.unpack_from(body)
        return cls(offset, last, body[_HEAD.size :])


def readable(kept: bytes | None) -> InForce | None:
    """Return the kept declaration; None if it is damaged or of another format: the configuration
    has the same content."""
    try:
        return None if kept is None else InForce.unpack(kept)
    except DamagedState:
        return None
