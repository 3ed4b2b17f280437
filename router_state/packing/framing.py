"""The frame around every record of a state, which is the number of its format and a checksum; and
what a frame holds: JSON of a declared type, or numbers as little-endian 64-bit floats.

Readers raise DamagedState for every record that is not as it was written. Any other exception of a
reader is a defect.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Annotated, Any, TypeAlias, TypeVar
from zlib import crc32

import msgspec
import numpy as np
from msgspec import Meta

from router_state.config import Vector
from router_state.errors import DamagedState

Json: TypeAlias = Any
"""A JSON value, whose type is not known until `decoded` or `converted` has checked it."""
T = TypeVar("T")
R = TypeVar("R")
Whole: TypeAlias = Annotated[int, Meta(ge=-(2**53), le=2**53)]
"""A whole number of a record, within the range that every JSON reader keeps exact."""
FORMAT = 1
"""Number of the format that is written. A change that raises it keeps a reader of the format
before, see `restoring.READERS` and `record_bytes.READERS`.
"""
NATIVE = sys.byteorder == "little"
"""True where this machine stores numbers in the order of the packed state."""
_HEADER = struct.Struct(">BI")
"""Number of the format; CRC-32 of the body that starts from it."""


class Framed:
    """A record in its frame, which its holder and the table that stores it share.

    Attributes:
        record: the frame with its body.
    """

    __slots__ = ("record",)

    def __init__(self, body: bytes) -> None:
        self.record = frame(body)

    @property
    def body(self) -> memoryview:
        """Return the body, without a copy."""
        return memoryview(self.record)[_HEADER.size :]


def frame(body: bytes | Framed) -> bytes:
    """Put the number of the format and a CRC-32 before a record that has no frame yet."""
    if isinstance(body, Framed):
        return body.record
    return _HEADER.pack(FORMAT, crc32(body, FORMAT)) + body


def opened(data: bytes, what: str) -> tuple[int, bytes]:
    """Return the number of a framed record's format, and its body.

    Args:
        what: names the record in the error.

    Raises:
        DamagedState: the record is damaged, missing, or of a newer format.
    """
    # The format is checked first: a newer one may have its checksum elsewhere.
    if data and data[0] > FORMAT:
        raise DamagedState(
            f"{what}: format {data[0]} is newer than {FORMAT}, the newest that this program reads"
        )
    body = data[_HEADER.size :]
    if len(data) < _HEADER.size or crc32(body, data[0]) != _HEADER.unpack_from(data)[1]:
        raise DamagedState(f"{what}: its {len(data)} bytes do not match its checksum")
    return data[0], body


def body_of(data: bytes, what: str = "a record") -> bytes:
    """Return the body of a framed record. Raises DamagedState."""
    return opened(data, what)[1]


def reader_of(number: int, readers: Mapping[int, R], what: str) -> R:
    """Return the reader of a format. Raises DamagedState if there is no longer one."""
    if number not in readers:
        raise DamagedState(
            f"{what}: format {number} is older than {min(readers)}, the oldest that "
            "this program reads"
        )
    return readers[number]


def loads(data: bytes, what: str = "a record") -> Json:
    """Return the JSON value in a frame, of any type. Raises DamagedState."""
    return decoded(body_of(data, what), object, what)


def decoded(body: bytes, kind: type[T], what: str) -> T:
    """Return a JSON text as a value of this type; `what` names the text in the error. Raises
    DamagedState.
    """
    try:
        kept: Any = kind
        found: T = _decoder(kept).decode(body)
        return found
    # Strings that are not UTF-8, and nesting deeper than any record has.
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise DamagedState(f"{what}: {error}") from None


def converted(value: Json, kind: type[T], what: str) -> T:
    """Return a JSON value as one of this type; `what` names the value in the error. Raises
    DamagedState.
    """
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise DamagedState(f"{what}: {error}") from None


@cache
def _decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(kind)


def floats(data: bytes, what: str, *, least: int, most: int) -> Vector:
    """Return a record's little-endian 64-bit floats; `what` names the record in the error.

    Raises:
        DamagedState: there are fewer numbers than `least`, or more than `most`.
    """
    values = np.frombuffer(data, "<f8") if len(data) % 8 == 0 else np.empty(0)
    if not least <= len(values) <= most:
        raise DamagedState(f"{what}: {len(data)} bytes, not {least * 8} to {most * 8}")
    return values


def packed(*parts: Vector | Sequence[float]) -> bytes:
    """Return arrays and sequences one after the other, as little-endian 64-bit floats."""
    # Joined as bytes: for a few short parts, arrays would take twice as long.
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
