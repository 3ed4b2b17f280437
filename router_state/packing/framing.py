"""The frame around every piece of a snapshot, which is the version of its format and a checksum of
what follows; and numbers in it, as little-endian 64-bit floats."""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, TypeAlias
from zlib import crc32

import numpy as np
import orjson

from router_state.config import Vector
from router_state.errors import CorruptSnapshot, InvalidConfig

Json: TypeAlias = Any
"""A JSON value as it was read. Code that takes it apart runs inside `reading`, which turns errors
into CorruptSnapshot."""
VERSION = 7
"""Version that is written. Whoever raises it lets `upgrade` read the ones before, with a fixture
that they wrote."""
READABLE = (4, 6, VERSION)
"""Versions that can be read."""
NATIVE = sys.byteorder == "little"
"""True where this machine stores numbers in the order of the packed state."""
_HEADER = struct.Struct(">BI")
"""Version; CRC-32 of the body that starts from it."""


def frame(body: bytes) -> bytes:
    """Put version and CRC-32 before a piece."""
    return _HEADER.pack(VERSION, crc32(body, VERSION)) + body


def version_of(data: bytes) -> int:
    """Return the version of a piece; −1 where there is none."""
    return data[0] if data else -1


def body_of(data: bytes) -> bytes:
    """Return the piece in a frame. Raises CorruptSnapshot."""
    # The version is checked first: other versions may have the checksum elsewhere.
    if data and data[0] not in READABLE:
        known = " or ".join(map(str, READABLE))
        raise CorruptSnapshot(
            f"format version {data[0]} is not {known}: written by another version of this program"
        )
    body = data[_HEADER.size :]
    # From format 6 on the checksum covers the version.
    start = data[0] if version_of(data) > 4 else 0
    if len(data) < _HEADER.size or crc32(body, start) != _HEADER.unpack_from(data)[1]:
        raise CorruptSnapshot(f"a piece of {len(data)} bytes does not match its checksum")
    return body


def loads(data: bytes) -> Json:
    """Return the JSON value in a frame. Raises CorruptSnapshot, JSONDecodeError."""
    return orjson.loads(body_of(data))


def floats(data: bytes, *, least: int, most: int) -> Vector:
    """Return a piece's little-endian 64-bit floats.

    Raises:
        CorruptSnapshot: there are fewer or more than said.
    """
    values = np.frombuffer(data, "<f8") if len(data) % 8 == 0 else np.empty(0)
    if not least <= len(values) <= most:
        raise CorruptSnapshot(f"an array has {len(data)} bytes, not {least * 8} to {most * 8}")
    return values


def packed(*parts: Vector | Sequence[float]) -> bytes:
    """Return arrays and sequences one after the other, as little-endian 64-bit floats."""
    # Joined as bytes: for a few short parts arrays of them would take twice as long.
    return b"".join(
        [
            (part if NATIVE else part.astype("<f8")).tobytes()
            if isinstance(part, np.ndarray)
            else _doubles(len(part))(*part)
            for part in parts
        ]
    )


@cache
def _doubles(n: int) -> Callable[..., bytes]:
    return struct.Struct(f"<{n}d").pack


class reading:  # noqa: N801  # it reads as what it does
    """A context manager that turns any error of the block into CorruptSnapshot.

    A class, since a generator would take longer than much of what it surrounds.
    """

    __slots__ = ("_what",)

    def __init__(self, what: str) -> None:
        self._what = what

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: object
    ) -> None:
        if isinstance(error, InvalidConfig | LookupError | TypeError | ValueError):
            raise CorruptSnapshot(f"{self._what}: {type(error).__name__}: {error}") from None
