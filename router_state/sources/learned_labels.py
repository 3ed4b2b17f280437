"""Sum up a judge's labels as one model has learned them."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
from msgspec import Struct

from router_state.config import Vector
from router_state.errors import DamagedState
from router_state.kernel import exp_of

PIECE = "\x1flabels:"
"""Prefix of the names of pieces; the source and the model follow, \\x1f between them."""
Of = tuple[str, str]
"""A judge and a model."""
LEAST_LABELS_LEFT = 1e-3
"""Least number of remaining labels for which their mean is computed: rounding may leave such a
number where no label is left."""


@lru_cache
def _triangle(d: int) -> tuple[Any, Any]:
    return np.tril_indices(d)


class LearnedLabels(Struct, gc=False, eq=False):
    """The labels of one judge on one model that are in force.

    Attributes:
        born: offset of the declaration under which the sums began.
        sums: first Σ w·x (d), with w the weight of each label in the regression. Then two sums over
            the labels of weight 1, which belong to answers without a verdict: the lower triangle of
            Σ w·xxᵀ, row by row, and Σ w·y·x (d).
        forgotten: the regression's `forgotten` up to which the sums have decayed.
        offset: what is subtracted from each label.
        aside: whether the labels of weight 1 are out of the regression.
    """

    born: int
    sums: Vector
    forgotten: float = 0.0
    offset: float = 0.0
    aside: bool = False

    @classmethod
    def empty(cls, d: int, born: int, *, aside: bool) -> LearnedLabels:
        """Return the sums before the first label."""
        return cls(born, np.zeros(2 * d + d * (d + 1) // 2), aside=aside)

    @property
    def d(self) -> int:
        """Number of dimensions."""
        # Of d dimensions there are 2d + d·(d + 1) ÷ 2 sums.
        return (math.isqrt(25 + 8 * len(self.sums)) - 5) // 2

    def add(self, x: Vector, y: float, weight: float, left: float, forgotten: float) -> None:
        """Add a label. `left` is the share of its weight that remains after forgetting; a negative
        `left` removes the label.
        """
        d = len(x)
        self.forget(forgotten)
        self.sums[:d] += weight * left * x
        if weight == 1.0:
            rows, columns = _triangle(d)
            self.sums[d:-d] += left * (x[rows] * x[columns])
            self.sums[-d:] += left * y * x

    def forget(self, forgotten: float) -> None:
        """Let the sums decay until a regression has forgotten as much as `forgotten`."""
        self.sums *= exp_of(self.forgotten - forgotten)
        self.forgotten = forgotten

    def mean(self) -> tuple[float, float]:
        """Return how many labels of weight 1 are left, and their mean."""
        # The last feature is 1 for every context: the last entries are Σ w and Σ w·y.
        d = self.d
        count = float(self.sums[-d - 1])
        return (count, float(self.sums[-1]) / count) if count > LEAST_LABELS_LEFT else (0.0, 0.0)

    def shift(self, offset: float) -> None:
        """Note that the regression has raised all labels by `offset`."""
        d = self.d
        self.sums[-d:] += offset * self.sums[-2 * d : -d]

    def in_regression(self) -> Vector:
        """Return Σ w·x over the labels that are in the regression."""
        d = self.d
        return self.sums[:d] - (self.sums[-2 * d : -d] if self.aside else 0.0)

    def taught(self) -> Vector:
        """Return the terms that labels of weight 1 add to A (its lower triangle) and to b."""
        d = self.d
        found = self.sums[d:].copy()
        # The last feature is 1 for every context: the last row of A is Σ w·x.
        found[-d:] -= self.offset * found[-2 * d : -d]
        return found

    def pack(self) -> bytes:
        """Return the sums as bytes."""
        numbers = (self.born, self.forgotten, self.offset, self.aside)
        return np.concatenate([numbers, self.sums]).astype("<f8").tobytes()

    @classmethod
    def unpack(cls, data: bytes, d: int) -> LearnedLabels:
        """Invert `pack`. Raises DamagedState."""
        size = 4 + 2 * d + d * (d + 1) // 2
        if len(data) != 8 * size:
            raise DamagedState(f"labels of a judge have {len(data)} bytes, not {8 * size}")
        values = np.frombuffer(data, "<f8").astype(np.float64)
        if not (np.isfinite(values).all() and abs(values[0]) < 2.0**53):
            raise DamagedState("labels of a judge are not finite, or count what can't be counted")
        born, forgotten, offset, aside = values[:4].tolist()
        return cls(int(born), values[4:].copy(), forgotten, offset, bool(aside))


def piece_of(of: Of) -> str:
    """Return the name of the piece with a judge's labels of a model."""
    return PIECE + "\x1f".join(of)


def pieced(piece: str) -> Of:
    """Invert `piece_of`."""
    source, _, model = piece.removeprefix(PIECE).partition("\x1f")
    return source, model
