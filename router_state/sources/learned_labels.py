"""The labels of judges as models have learned them, and what is taken off them.

A regression is linear in its labels: b = Σ w·y·x. So what is taken off all labels of a judge on a
model can be changed at any time, those of the past included, exactly and in O(d²): by the change ×
Σ w·x, the sum of their contexts.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import orjson
from msgspec import Struct, to_builtins

from router_state.arms import Arms
from router_state.changes import Journal
from router_state.config import Vector
from router_state.kernel import Arm, exp_of
from router_state.packing.framing import decoded

PIECE = "\x1flabels:"
"""Prefix of the names of pieces; the source and the model follow, \\x1f between them."""
Of = tuple[str, str]
"""A judge and a model."""


class LearnedLabels(Struct, array_like=True, gc=False):
    """The labels of one judge that one model has learned and that are in force.

    Attributes:
        born: offset of the declaration under which the sum began.
        contexts: Σ w·x, (d,), with w what each label weighs in the regression.
        forgotten: the regression's `forgotten` at which the sum is right.
        offset: what is taken off each label.
    """

    born: int
    contexts: list[float]
    forgotten: float = 0.0
    offset: float = 0.0

    def at(self, forgotten: float) -> Vector:
        """Return the sum once the regression has forgotten so much."""
        return exp_of(self.forgotten - forgotten) * np.array(self.contexts)

    def add(self, x: Vector, weight: float, forgotten: float) -> None:
        """Add a context with its present weight; a negative weight takes it away."""
        self.contexts = (self.at(forgotten) + weight * x).tolist()
        self.forgotten = forgotten


class LabelsByModel:
    """The labels of all judges as all models have learned them; it alone changes them."""

    __slots__ = ("all", "journal")

    def __init__(self, journal: Journal) -> None:
        self.journal, self.all = journal, dict[Of, LearnedLabels]()

    def offset(self, of: Of, born: int | None = None) -> float:
        """Return what is taken off a label.

        Args:
            born: `born` of the sum that the label was counted in; None: it is not learned yet.
        """
        one = self.all.get(of)
        return 0.0 if one is None or born not in (None, one.born) else one.offset

    def count(self, of: Of, arm: Arm, x: Vector, weight: float, *, born: int) -> int:
        """Count a label that the model has learned; return the `born` of its sum."""
        one = self.all.get(of)
        if one is None:
            one = self.all[of] = LearnedLabels(born, [0.0] * len(x))
        one.add(x, weight, arm.rewards.forgotten)
        self.journal.pieces.add(piece_of(of))
        return one.born

    def discount(self, of: Of, arm: Arm, x: Vector, weight: float, *, born: int) -> None:
        """Count a label no more; `born` is that of the sum that it was counted in."""
        one = self.all.get(of)
        if one is not None and one.born == born:
            one.add(x, -weight, arm.rewards.forgotten)
            self.journal.pieces.add(piece_of(of))

    def take_off(self, source: str, arms: Arms, offsets: dict[str, float]) -> None:
        """Take these offsets off all labels of a judge, in place of those before; 0 where none is
        given."""
        for of, one in self.all.items():
            offset, arm = offsets.get(of[1], 0.0), arms.find(of[1])
            if of[0] != source or offset == one.offset or arm is None:
                continue
            regression = arm.rewards
            sum_now = one.at(regression.forgotten)
            regression.revise(sum_now, difference=one.offset - offset, discount=1.0)
            one.offset = offset
            self.journal.pieces.add(piece_of(of))
            self.journal.jumped = True

    def drop(self, gone: list[Of]) -> None:
        """Forget which labels of a judge a model has learned."""
        for of in gone:
            del self.all[of]
            self.journal.pieces.add(piece_of(of))

    # Its state.

    def pack(self, piece: str) -> bytes | None:
        """Return a piece; None: it is not one of these."""
        source, _, model = piece.removeprefix(PIECE).partition("\x1f")
        one = self.all.get((source, model)) if piece.startswith(PIECE) else None
        return None if one is None else orjson.dumps(to_builtins(one))

    def restore(self, of: Of, body: bytes) -> None:
        """Invert `pack`. Raises DamagedState."""
        if body:
            self.all[of] = decoded(body, LearnedLabels, "labels of a judge")

    def faults(self, arms: Arms) -> Iterator[str]:
        """Yield the faults of sums that can't be true."""
        for (_, model), one in self.all.items():
            numbers = (*one.contexts, one.forgotten, one.offset)
            arm = arms.find(model)
            is_known = arm is not None and one.forgotten <= arm.rewards.forgotten
            if not (is_known and len(one.contexts) == arms.d and np.isfinite(numbers).all()):
                yield "learned labels of judges"


def piece_of(of: Of) -> str:
    """Return the name of the piece with a judge's labels of a model."""
    return PIECE + "\x1f".join(of)
