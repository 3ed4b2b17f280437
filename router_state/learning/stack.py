"""The arrays of all arms, stacked so that one product scores them all."""

from __future__ import annotations

import numpy as np

from router_state.config import Matrix, Vector
from router_state.learning.work import work_for

WIDE = 64
"""Dimensions from which on corrections of the inverse are collected; benchmarks.core times 26 and
385."""
TAILS = 16
"""Corrections that are collected: one product takes all of them off at hardly more than the price
of one, but each decision reads those that wait (at d = 385, 16 take a tenth less than 8)."""


class Stack:
    """Row k of every array belongs to the k-th arm, whose owners keep views of it; they are bound
    anew when rows come or go.

    Attributes:
        d: dimensions.
        rows: shape (K, d + 2, d): A_hat⁻¹ in rows 0..d-1, θ in row d, in row d + 1 the coefficients
            w of the cost model.
        flat: the same as one matrix, shape (K·(d + 2), d).
        tails: shape (K, 16, d) from `WIDE` dimensions on, else (K, 0, d): rows v of which vvᵀ is
            still to be taken off A_hat⁻¹.
        work: arrays that the hot path reuses.
        prompt_costs: whether any w is known to be other than 0.
    """

    __slots__ = ("_coefficients", "d", "flat", "prompt_costs", "rows", "tails", "work")

    prompt_costs: bool

    def __init__(self, d: int, K: int = 0) -> None:
        self.d = d
        self._use(np.zeros((K, d + 2, d)), np.zeros((K, TAILS if d >= WIDE else 0, d)))

    def grow(self) -> None:
        """Append the row of one more arm, all zeros."""
        self._use(
            np.concatenate([self.rows, np.zeros((1, *self.rows.shape[1:]))]),
            np.concatenate([self.tails, np.zeros((1, *self.tails.shape[1:]))]),
        )

    def drop(self, k: int) -> None:
        """Drop row k; the rows after it move up."""
        self._use(np.delete(self.rows, k, axis=0), np.delete(self.tails, k, axis=0))

    def show_costs(self, k: int, w: Vector) -> None:
        """Put the coefficients of the k-th arm's cost model, shape (d,), where scoring reads
        them."""
        self._coefficients[k] = w
        # Until some prompt is known to cost more than another, scoring needs no exponential for
        # each arm.
        if not self.prompt_costs:
            self.prompt_costs = bool(w.any())

    def _use(self, rows: Matrix, tails: Matrix) -> None:
        self.rows, self.tails = rows, tails
        self.flat, self._coefficients = rows.reshape(-1, self.d), rows[:, self.d + 1]
        self.prompt_costs = bool(self._coefficients.any())
        self.work = work_for(len(rows), self.d)
