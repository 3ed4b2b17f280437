"""Arrays that the hot path reuses: at these sizes making one costs as much as filling it."""

from __future__ import annotations

import numpy as np


class Work:
    """Arrays that the hot path writes into instead of making new ones, with the views that it needs of them."""

    __slots__ = (
        "column", "grid", "half", "outer", "row", "rows", "scale", "squares", "tail", "u", "x", "x_row", "y", "z", "z_column",
        "z_outer", "z_row", "z_u",
    )  # fmt: skip

    def __init__(self, K: int, d: int) -> None:
        # Row k of the grid is arm k times x, the last one x itself: one product with whole rows gives every xᵀA⁻¹x, and xᵀx.
        self.grid = np.zeros((K + 1, d + 2))
        self.rows, self.x_row, self.squares = self.grid[:K].reshape(-1), self.grid[K], np.empty(K + 1)
        self.x, self.tail = self.x_row[:d], self.grid[:K, d:]
        self.y = np.empty(d + 2)
        self.u, self.column, self.row = self.y[:d], self.y[:, None], self.y[None, :d]
        self.outer = np.empty((d + 2, d))
        self.half = self.outer[:d]
        # The same for a cost model, whose block has one row less.
        self.z = np.empty(d + 1)
        self.z_u, self.z_column, self.z_row = self.z[:d], self.z[:, None], self.z[None, :d]
        self.z_outer = np.empty((d + 1, d))
        self.scale = np.empty(())
