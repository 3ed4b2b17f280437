"""The posterior sample: one draw of all models' coefficients of rewards.

The draw serves the dual and the choices alike until the next one (Thompson 1933, once per solution
of the dual). So the price of a dollar fits the choices, and what a few answers rule out is not
drawn again. An arm's level is its expected reward on the traffic as it is; of the doubt about it
the draw takes `LEVEL` deviations. Of the rest, how the arm differs between prompts, it takes
`FEATURES`: a wrong level is wrong on every request, and d − 1 coefficients would drown it.
"""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING

import numpy as np

from router_state.errors import CorruptSnapshot
from router_state.kernel.linear import add, dot, factor, room
from router_state.kernel.randomness import Chance
from router_state.kernel.regression import Regression, require_length, taken
from router_state.kernel.words import Array, Floats, Index, Known, Real, cclass, known, view

if TYPE_CHECKING:
    from collections.abc import Sequence

    from router_state.changes import Journal
    from router_state.config import Vector

LEVEL, FEATURES = 0.6, 0.2
"""Deviations that a draw takes (drawn worlds, docs/lab/mechanisms.md: 0.5 to 0.7 and 0.2 to 0.3 do
not differ).
"""
SERVES = 8
"""Decisions that one draw serves, as many as a solution of the dual; each of the first eight has
its own. What comes late is learned of more draws than with 16, which is worth 0.004 where tasks
follow each other (docs/lab/elsewhere.md)."""
ALONE = 8
"""Decisions from the start that have a draw each, see `SERVES`."""
WIDE_SHARE = 3
"""Dimensions per decision that a draw serves, where that is more: a factor costs O(K·d³)."""
LATELY = 32.0
"""Contexts that the traffic's mean is about: a level is one of the prompts that come now."""
SAMPLE_PIECE = "\x1fdraw"
"""The piece that holds it."""


@cclass
class PosteriorSample:
    """The draw in force.

    Attributes:
        d, K: dimensions and arms.
        array: what it adds to the coefficients of each arm, (K·d), variances of the part that moves
            levels, by arm (K), and the mean context of late (d); `values` is what the kernel reads
            of it.
        drawn: draws so far; left: decisions that the last one still serves.
    """

    journal: Journal
    d: Index
    K: Index
    drawn: Index
    left: Index
    array: Array
    values: Floats

    def __init__(self, d: int, journal: Journal) -> None:
        self.journal, self.d, self.K = journal, d, 0
        self.array = np.zeros(d)
        self.values = view(self.array)
        self.drawn = self.left = 0

    def resize(self, K: int) -> None:
        """Start without a draw for K arms; the mean context stays."""
        self.journal.pieces.add(SAMPLE_PIECE)
        center = self.array[self.K * (self.d + 1) :]
        self.K, self.left = K, 0
        self.array = np.concatenate([np.zeros(K * self.d + K), center])
        self.values = view(self.array)

    @property
    def offsets(self) -> Vector:
        """Return what it adds to the coefficients, shape (K, d), a view."""
        return self.array[: self.K * self.d].reshape(self.K, self.d)

    def serve(self, x: Vector) -> bool:
        """Take a decision's context x, shape (d,), into the mean; tell whether the draw serves it,
        or it is time for another one."""
        context: Known = known(x)
        d: Index = require_length(context, self.d)
        self.journal.pieces.add(SAMPLE_PIECE)
        count: Real = self.drawn + 1.0 if self.drawn < ALONE else LATELY
        center: Index = self.K * (d + 1)
        for i in range(d):
            self.values[center + i] += (context[i] - self.values[center + i]) / count
        if self.left > 0 and self.drawn > ALONE:
            self.left -= 1
            return True
        return False

    def renew(
        self, regressions: Sequence[Regression], *, noise: Real, chance: Chance, free: bool
    ) -> None:
        """Draw anew; λ_t then follows.

        Args:
            noise: σ², of which the inverses are multiples.
            free: whether a dollar was worth nothing of late: then the whole doubt about levels is
                drawn from, as trying costs no more than what it tells.
        """
        d, K, values = self.d, self.K, self.values
        if len(regressions) != K:
            raise ValueError(f"a draw for {K} arms is not one for {len(regressions)}")
        T: Index = d * (d + 1) // 2
        one: Regression
        center: Index = K * (d + 1)
        share: Real = 1.0 if free else LEVEL
        self.drawn += 1
        self.left = max(SERVES, d // WIDE_SHARE) - 1
        space: Floats = room(T + 2 * d)
        for k in range(K):
            one = regressions[k]
            if one.d != d:
                raise ValueError(f"a draw of {d} dimensions is none of {one.d}")
            # A factor is of the whole V: rows that are pending would be missing in it.
            one.flush()
            for n in range(T):
                space[n] = one.values[n]
            # One factor L for both: L·z is the draw, and |centerᵀL| how unsure the level is.
            factor(space, 0, d)
            scale: Real = sqrt(noise / one.decay)
            chance.normals(space, T, d)
            for i in range(d):
                space[T + d + i] = 0.0
            place: Index = 0
            level: Real = 0.0
            offset: Index = k * d
            for i in range(d):
                drawn: Real = scale * dot(space, place, space, T, i + 1)
                level += drawn * values[center + i]
                values[offset + i] = FEATURES * drawn
                add(values[center + i], space, place, space, T + d, i + 1)
                place += i + 1
            square: Real = dot(space, T + d, space, T + d, d) * scale * scale
            values[K * d + k] = (share * share - FEATURES * FEATURES) * square
            # The last feature is 1 for every prompt: what is added to its coefficient moves the
            # level, and nothing between prompts.
            values[offset + d - 1] += (share - FEATURES) * level
        self.journal.jumped = True

    def of(self, x: Vector) -> list[float]:
        """Return what the draw adds to the expected reward of each arm for a context x, shape
        (d,)."""
        d: Index = self.d
        space: Floats = taken(x, d)
        return [dot(self.values, k * d, space, 0, d) for k in range(self.K)]

    def pack(self) -> bytes:
        """Return offsets, levels, center and counts."""
        counts = np.array([self.drawn, self.left], "<f8")
        return self.array.astype("<f8", copy=False).tobytes() + counts.tobytes()

    def unpack(self, data: bytes, K: int) -> None:
        """Invert `pack`. Raises CorruptSnapshot."""
        size = K * self.d + K + self.d
        if len(data) != 8 * (size + 2):
            raise CorruptSnapshot(f"a draw has {len(data)} bytes, not {8 * (size + 2)}")
        values = np.frombuffer(data, "<f8")
        if not np.isfinite(values).all():
            raise CorruptSnapshot("a draw is not finite")
        self.K, self.array = K, values[:size].astype(np.float64)
        self.values = view(self.array)
        self.drawn, self.left = int(values[size]), int(values[size + 1])


def levels_of(sample: PosteriorSample) -> list[float]:
    """Return the variances of the part of a draw that moves levels, by arm."""
    return [sample.values[sample.K * sample.d + k] for k in range(sample.K)]
