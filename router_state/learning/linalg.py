"""Symmetric matrices, whole and as their lower triangle, and the arrays that updates reuse."""

from __future__ import annotations

import math
import struct
import sys
import threading
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from router_state.config import Matrix, Vector
from router_state.errors import CorruptSnapshot

NATIVE = sys.byteorder == "little"
"""Whether this machine stores numbers in the order of the packed state."""


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


class Correction:
    """A vector and its outer product with the context's part of it, to take off a block.

    Attributes:
        y: shape (rows,), the product of a block with a context.
        outer: shape (rows, d).
    """

    __slots__ = ("_column", "_scale", "outer", "y")

    def __init__(self, d: int) -> None:
        self.y = np.empty(d + 1)
        self._column = self.y[:, None]
        self.outer = np.empty((d + 1, d))
        self._scale = np.empty(())

    def take_off(self, block: Matrix, u: Vector, s: float) -> None:
        """Take yuᵀ/s off the block, shape (d + 1, d); y and its view u (d,) are used up.

        Only products of one vector with itself: what is symmetric stays exactly so.
        """
        self._scale[()] = 1.0 / math.sqrt(s)
        np.multiply(self.y, self._scale, self.y)
        self._column.dot(u[None, :], self.outer)
        np.subtract(block, self.outer, block)


class Work:
    """Arrays that a decision writes into instead of making new ones.

    Attributes:
        grid: shape (K, d + 2), the product of each model's rows with a context.
        x_row: shape (d + 2,), the context and two zeros; x: a view of the context's part.
        squares: shape (K,).
    """

    __slots__ = ("grid", "squares", "tail", "x", "x_row")

    def __init__(self, K: int, d: int) -> None:
        # Row k of the grid is model k times x: one product with whole rows gives every xᵀA⁻¹x.
        self.grid, self.x_row, self.squares = np.zeros((K, d + 2)), np.zeros(d + 2), np.empty(K)
        self.x, self.tail = self.x_row[:d], self.grid[:, d:]


def work_for(K: int, d: int) -> Work:
    """Return the arrays for K models of dimension d, which all routers of that size share.

    Nothing in them outlasts an event, and of 10,000 routers they would take 150 MB.
    """
    return _work_of(K, d, threading.get_ident())


def correction_for(d: int) -> Correction:
    """Return the correction's arrays for dimension d, which all regressions share."""
    return _correction_of(d, threading.get_ident())


@lru_cache(maxsize=64)
def _work_of(K: int, d: int, thread: int) -> Work:
    return Work(K, d)


@lru_cache(maxsize=64)
def _correction_of(d: int, thread: int) -> Correction:
    return Correction(d)
