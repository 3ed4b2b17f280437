"""The arrays of all models of a router: one contiguous block per model."""

from __future__ import annotations

import numpy as np

from router_state.config import Matrix
from router_state.learning.linalg import work_for

WIDE = 64
"""Dimensions from which on corrections of the inverse are collected; benchmarks.core times 26 and
385."""
TAILS = 16
"""Corrections that are collected: one product takes all of them off at hardly more than the price
of one, but each decision reads those that wait (at d = 385, 16 take a tenth less than 8)."""


class Stack:
    """Row k of every array belongs to the k-th model, whose regressions keep views of it.

    The views are bound anew when rows come or go.

    Attributes:
        d: dimensions.
        blocks: shape (K, 2d + 2, d): the rewards' V in rows 0..d-1 and θ in row d, then the bills'
            θ in row d + 1 and V in the rows behind.
        scored: view of the first d + 2 rows of each block, all that scoring reads.
        tails: shape (K, 2, 16, d) from `WIDE` dimensions on, else (K, 2, 0, d): rows v of which vvᵀ
            is still to be taken off the V of rewards and of bills.
        work: arrays that a decision reuses.
    """

    __slots__ = ("blocks", "d", "scored", "tails", "work")

    def __init__(self, d: int, K: int = 0) -> None:
        self.d = d
        self._use(np.zeros((K, 2 * d + 2, d)), np.zeros((K, 2, TAILS if d >= WIDE else 0, d)))

    def grow(self) -> None:
        """Append the row of one more model, all zeros."""
        self._use(
            np.concatenate([self.blocks, np.zeros((1, *self.blocks.shape[1:]))]),
            np.concatenate([self.tails, np.zeros((1, *self.tails.shape[1:]))]),
        )

    def drop(self, k: int) -> None:
        """Drop row k; the rows after it move up."""
        self._use(np.delete(self.blocks, k, axis=0), np.delete(self.tails, k, axis=0))

    def _use(self, blocks: Matrix, tails: Matrix) -> None:
        self.blocks, self.tails = blocks, tails
        self.scored = blocks[:, : self.d + 2]
        self.work = work_for(len(blocks), self.d)
