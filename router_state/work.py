"""Arrays that the hot path reuses: at these sizes making one costs as much as filling it."""

from __future__ import annotations

import numpy as np


class Work:
    """Arrays that the hot path writes into instead of making new ones, with the views that it needs of them."""

    __slots__ = ("column", "grid", "half", "outer", "row", "rows", "scale", "squares", "tail", "u", "u_column", "x", "x_row", "y")

    def __init__(self, K: int, d: int) -> None:
        # Row k of the grid is arm k times x, the last one x itself: one product with whole rows gives every xᵀA⁻¹x, and xᵀx.
        self.grid = np.zeros((K + 1, d + 2))
        self.rows, self.x_row, self.squares = self.grid[:K].reshape(-1), self.grid[K], np.empty(K + 1)
        self.x, self.tail = self.x_row[:d], self.grid[:K, d:]
        self.y = np.empty(d + 2)
        self.u, self.column, self.u_column, self.row = self.y[:d], self.y[:, None], self.y[:d, None], self.y[None, :d]
        self.outer = np.empty((d + 2, d))
        self.half = self.outer[:d]
        self.scale = np.empty(())
