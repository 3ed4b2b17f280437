"""Arrays that the hot path reuses: at these sizes making one costs as much as filling it."""

from __future__ import annotations

import math
import threading
from functools import lru_cache

import numpy as np

from router_state.config import Matrix


class Correction:
    """A vector and its outer product with itself, to take off a block of rows over d features.

    Attributes:
        y: one entry per row; u: the first d of them, a view.
        outer: shape (rows, d).
    """

    __slots__ = ("_column", "_row", "_scale", "outer", "u", "y")

    def __init__(self, rows: int, d: int) -> None:
        self.y = np.empty(rows)
        self.u, self._column, self._row = self.y[:d], self.y[:, None], self.y[None, :d]
        self.outer = np.empty((rows, d))
        self._scale = np.empty(())

    def take_off(self, block: Matrix, s: float) -> None:
        """Take yuᵀ/s off the block; y is used up. Only products of one vector with itself: what is
        symmetric stays exactly so."""
        self._scale[()] = 1.0 / math.sqrt(s)
        np.multiply(self.y, self._scale, self.y)
        self._column.dot(self._row, self.outer)
        np.subtract(block, self.outer, block)


class Work:
    """Arrays that the hot path writes into instead of making new ones, with the views that it needs
    of them."""

    __slots__ = ("arm", "cost", "grid", "half", "rows", "squares", "tail", "x", "x_row")

    def __init__(self, K: int, d: int) -> None:
        # Row k of the grid is arm k times x: one product with whole rows gives every xᵀA⁻¹x.
        self.grid, self.x_row, self.squares = np.zeros((K, d + 2)), np.zeros(d + 2), np.empty(K)
        self.rows, self.x, self.tail = self.grid.reshape(-1), self.x_row[:d], self.grid[:, d:]
        self.arm, self.cost = Correction(d + 2, d), Correction(d + 1, d)
        self.half = self.arm.outer[:d]

    def take_off(self, inverse: Matrix, tails: Matrix) -> None:
        """Take rows that were only noted off an inverse: inverse −= VᵀV, in place."""
        # The same product as `dot`, of which numpy copies one triangle to the other twice as fast.
        np.matmul(tails.T, tails, out=self.half)
        np.subtract(inverse, self.half, inverse)


def work_for(K: int, d: int) -> Work:
    """Return the arrays for K arms of dimension d, which all routers of that size share: nothing in
    them outlasts an event, and of 10,000 routers they would take 150 MB."""
    return _of_thread(K, d, threading.get_ident())


@lru_cache(maxsize=64)
def _of_thread(K: int, d: int, thread: int) -> Work:
    return Work(K, d)
