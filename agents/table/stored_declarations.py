"""A router's declaration as a worker keeps it beside its state: the document that was written."""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from typing import Self

import orjson

from router_state.errors import RouterStateError

DAMAGE = (
    RouterStateError,
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    ArithmeticError,
    AssertionError,
    struct.error,
    zlib.error,
)
"""Errors of reading a record that is damaged, or was written by another version of this program."""

VERSION = 1
"""First byte of what `pack` returns; another one is read as if nothing had been kept."""
_HEAD = struct.Struct(">B?q")
"""Version, `last`, offset: 10 bytes, big-endian, so that no padding depends on the machine."""


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
        """Return it as bytes: version, `last`, offset, the document."""
        return _HEAD.pack(VERSION, self.last, self.offset) + self.packed

    @classmethod
    def unpack(cls, data: bytes) -> Self:
        """Invert `pack`."""
        _, last, offset = _HEAD.unpack_from(data)
        return cls(offset, last, data[_HEAD.size :])


def readable(kept: bytes | None) -> InForce | None:
    """Return the kept declaration; None if it is damaged or of another version: the configuration
    has the same content."""
    try:
        found = InForce.unpack(kept) if kept is not None and kept[0] == VERSION else None
        return found if found is not None and found.document else None
    except DAMAGE:
        return None
