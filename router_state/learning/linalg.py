"""Symmetric matrices, whole and as their lower triangle."""

from __future__ import annotations

import struct
import sys
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from router_state.config import Matrix, Vector
from router_state.errors import CorruptSnapshot

NATIVE = sys.byteorder == "little"
"""Whether numbers are in memory as they are kept."""


@lru_cache
def lower_triangle(d: int) -> npt.NDArray[np.intp]:
    """Return where the lower triangle lies in a flattened (d, d) matrix."""
    rows, columns = np.tril_indices(d)
    return rows * d + columns


def symmetric_from(triangle: Vector, d: int) -> Matrix:
    """Return the symmetric matrix, shape (d, d), of a lower triangle."""
    lower = lower_triangle(d)
    full = np.empty(d * d)
    full[lower] = triangle
    square = full.reshape(d, d)
    square.T.flat[lower] = triangle
    return square


def symmetric_inverse(A: Matrix) -> Matrix:
    """Invert symmetric positive definite matrices, shape (…, d, d), exactly symmetric."""
    inverse = np.linalg.inv(A)
    # LAPACK's inverse differs from its transpose in the last digits, and rank-one corrections would
    # carry that on.
    symmetric: Matrix = np.add(inverse, np.swapaxes(inverse, -1, -2))
    symmetric *= 0.5
    return symmetric


def floats(data: bytes, *, least: int, most: int) -> Vector:
    """Return a piece's little-endian 64-bit floats. Raises CorruptSnapshot where there are fewer or
    more than said."""
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
