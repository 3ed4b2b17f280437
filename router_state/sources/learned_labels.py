"""The labels of judges as models have learned them: what is taken off them, and whether they
count.

A regression is linear in its labels: A = Σ w·xxᵀ, b = Σ w·y·x. So what is taken off all labels of
a judge on a model can be changed at any time, those of the past included, exactly and in O(d²); and
all of them can be taken out of the regression, and be put in again, in O(d³).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np
from msgspec import Struct

from router_state.arms import Arms
from router_state.changes import Journal
from router_state.config import Vector
from router_state.errors import DamagedState
from router_state.kernel import Arm, conclude_with, exp_of

PIECE = "\x1flabels:"
"""Prefix of the names of pieces; the source and the model follow, \\x1f between them."""
Of = tuple[str, str]
"""A judge and a model."""
LEAST_LEFT = 1e-3
"""Labels that are left below which nothing is said of their mean: rounding may leave so much."""


@lru_cache
def _triangle(d: int) -> tuple[Any, Any]:
    return np.tril_indices(d)


def _dimensions(sums: Vector) -> int:
    # Of d dimensions there are 2d + d·(d + 1) ÷ 2 sums.
    return (math.isqrt(25 + 8 * len(sums)) - 5) // 2


class LearnedLabels(Struct, gc=False, eq=False):
    """The labels of one judge on one model that are in force.

    Attributes:
        born: offset of the declaration under which the sums began.
        sums: Σ w·x (d), with w what each label weighs in the regression; then of the labels of
            weight 1, which no verdict went with, the lower triangle of Σ w·xxᵀ, row by row, and
            Σ w·y·x (d).
        forgotten: the regression's `forgotten` at which the sums are right.
        offset: what is taken off each label.
        aside: whether the labels of weight 1 are out of the regression.
    """

    born: int
    sums: Vector
    forgotten: float = 0.0
    offset: float = 0.0
    aside: bool = False

    def add(self, x: Vector, y: float, weight: float, left: float, forgotten: float) -> None:
        """Add a label, of which this share is left; a negative share takes it away."""
        d = len(x)
        self.forget(forgotten)
        self.sums[:d] += weight * left * x
        if weight == 1.0:
            rows, columns = _triangle(d)
            self.sums[d:-d] += left * (x[rows] * x[columns])
            self.sums[-d:] += left * y * x

    def forget(self, forgotten: float) -> None:
        """Let the sums decay until a regression has forgotten so much."""
        self.sums *= exp_of(self.forgotten - forgotten)
        self.forgotten = forgotten

    def mean(self) -> tuple[float, float]:
        """Return how many labels of weight 1 are left, and their mean."""
        # The last feature is 1 for every context: the last entries are Σ w and Σ w·y.
        d = _dimensions(self.sums)
        count = float(self.sums[-d - 1])
        return (count, float(self.sums[-1]) / count) if count > LEAST_LEFT else (0.0, 0.0)

    def taught(self, d: int) -> Vector:
        """Return what the labels of weight 1 add to A, a triangle, and to b."""
        found = self.sums[d:].copy()
        # The last feature is 1 for every context: the last row of A is Σ w·x.
        found[-d:] -= self.offset * found[-2 * d : -d]
        return found

    def pack(self) -> bytes:
        """Return its bytes."""
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


class LabelsByModel:
    """The labels of all judges as all models have learned them; it alone changes them."""

    __slots__ = ("all", "journal")

    def __init__(self, journal: Journal) -> None:
        self.journal, self.all = journal, dict[Of, LearnedLabels]()

    def counted(self, of: Of, born: int | None) -> LearnedLabels | None:
        """Return the sums that a label is counted in; None: it is in none.

        Args:
            born: that of the sums that the label was counted in.
        """
        one = self.all.get(of)
        return None if one is None or one.born != born else one

    def mean(self, of: Of) -> tuple[float, float]:
        """Return how many labels a model has learned of a judge, and their mean."""
        one = self.all.get(of)
        return (0.0, 0.0) if one is None else one.mean()

    def begin(self, of: Of, arms: Arms, born: int, *, aside: bool) -> None:
        """Begin the sums of a judge and a model; the next pair says what is taken off."""
        d = arms.d
        sums = np.zeros(2 * d + d * (d + 1) // 2)
        self.all[of] = LearnedLabels(born, sums, aside=aside)
        self.journal.pieces.add(piece_of(of))

    def add(self, of: Of, arm: Arm, x: Vector, y: float, *, weight: float, left: float) -> None:
        """Count a label, of which this share is left; a negative share: no more."""
        self.all[of].add(x, y, weight, left, arm.rewards.forgotten)
        self.journal.pieces.add(piece_of(of))

    def take_off(self, source: str, arms: Arms, offsets: dict[str, float]) -> None:
        """Take these offsets off all labels of a judge, in place of those before; 0 where none is
        given."""
        for of, one in self._of(source):
            offset, arm = offsets.get(of[1], 0.0), arms.find(of[1])
            if offset == one.offset or arm is None:
                continue
            one.forget(arm.rewards.forgotten)
            moved = one.sums[: arms.d].copy()
            if one.aside:
                moved -= one.sums[-2 * arms.d : -arms.d]
            arm.rewards.revise(moved, difference=one.offset - offset, discount=1.0)
            one.offset = offset
            self.journal.pieces.add(piece_of(of))
            self.journal.jumped = True

    def differs(self, source: str, aside: bool) -> bool:
        """Tell whether `set_aside` would change anything."""
        return any(one.aside != aside for _, one in self._of(source))

    def set_aside(self, source: str, arms: Arms, aside: bool) -> None:
        """Take all labels of a judge out of the regressions, or put them in again."""
        sums: list[Vector | None] = [None] * len(arms)
        for of, one in self._of(source):
            arm = arms.find(of[1])
            if one.aside == aside or arm is None:
                continue
            one.forget(arm.rewards.forgotten)
            sums[arms.row[of[1]]] = one.taught(arms.d) * (-1.0 if aside else 1.0)
            one.aside = aside
            self.journal.pieces.add(piece_of(of))
        conclude_with(arms.rewards, arms.regressions, sums)
        self.journal.jumped = True

    def shift(self, model: str, offset: float) -> None:
        """Note that all labels of a model count as this much higher."""
        for of, one in self.all.items():
            if of[1] == model:
                d = _dimensions(one.sums)
                one.sums[-d:] += offset * one.sums[-2 * d : -d]
                self.journal.pieces.add(piece_of(of))

    def _of(self, source: str) -> Iterator[tuple[Of, LearnedLabels]]:
        return ((of, one) for of, one in self.all.items() if of[0] == source)

    def drop(self, gone: list[Of]) -> None:
        """Forget which labels of a judge a model has learned."""
        for of in gone:
            del self.all[of]
            self.journal.pieces.add(piece_of(of))

    def faults(self, arms: Arms) -> Iterator[str]:
        """Yield the faults of sums that can't be true."""
        for (_, model), one in self.all.items():
            arm = arms.find(model)
            is_known = arm is not None and 0.0 <= one.forgotten <= arm.rewards.forgotten
            if not (is_known and np.isfinite(one.sums).all()):
                yield "learned labels of judges"


def piece_of(of: Of) -> str:
    """Return the name of the piece with a judge's labels of a model."""
    return PIECE + "\x1f".join(of)


def pieced(piece: str) -> Of:
    """Invert `piece_of`."""
    source, _, model = piece.removeprefix(PIECE).partition("\x1f")
    return source, model
