"""Numbers as bytes: little-endian 64-bit floats, one behind the other."""

from __future__ import annotations

import struct
import sys

import numpy as np

from router_state.config import Vector
from router_state.errors import CorruptSnapshot

NATIVE = sys.byteorder == "little"
"""True where this machine stores numbers in the order of the packed state."""


def floats(data: bytes, *, least: int, most: int) -> Vector:
    """Return a piece's little-endian 64-bit floats.

    Raises:
        CorruptSnapshot: there are fewer or more than said.
    """
    values = np.frombuffer(data, "<f8") if len(data) % 8 == 0 else np.empty(0)
    if not least <= len(values) <= most:
        raise CorruptSnapshot(f"an array has {len(data)} bytes, not {least * 8} to {most * 8}")
    return values


def packed(*parts: Vector | list[float]) -> bytes:
    """Return arrays and lists one after the other, as little-endian 64-bit floats."""
    # Joined as bytes: for a few short parts arrays of them would take twice as long.
    return b"".join(
        [
            struct.pack(f"<{len(part)}d", *part)
            if isinstance(part, list)
            else (part if NATIVE else part.astype("<f8")).tobytes()
            for part in parts
        ]
    )
