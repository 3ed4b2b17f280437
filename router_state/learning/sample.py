"""The posterior sample: one draw of all models' coefficients of rewards.

The draw serves the dual and the choices alike until the next one (Thompson 1933, once per solution
of the dual): so the price of a dollar fits the choices, and what a few answers rule out is not
drawn again. Of the doubt about an arm's level, its expected reward on the traffic as it is, the
draw takes `LEVEL` deviations, of what is left, how it differs between prompts, `FEATURES`: a wrong
level is wrong on every request, and d − 1 coefficients together would drown it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from router_state.changes import Journal
from router_state.config import Matrix, Vector
from router_state.errors import CorruptSnapshot
from router_state.learning.linalg import floats, packed
from router_state.learning.regression import Regression
from router_state.learning.stack import Stack

LEVEL, FEATURES = 0.6, 0.2
"""Deviations that a draw takes (drawn worlds, docs/algorithm.md: 0.5 to 0.7 and 0.2 to 0.3 do not
differ)."""
SERVES = 8
"""Decisions that one draw serves, as many as a solution of the dual; each of the first eight has
its own. What comes late is learned of more draws than with 16, which is worth 0.004 where tasks
follow each other (docs/elsewhere.md)."""
ALONE = 8
"""Decisions from the start that have a draw each, see `SERVES`."""
WIDE_SHARE = 3
"""With d dimensions it serves d ÷ 3 where that is more: a factor of a covariance costs O(K·d³)."""
LATELY = np.array(32.0)
"""Contexts that the traffic's mean is about: a level is one of the prompts that come now. An array,
as numpy would make one of a float at every decision."""
PIECE = "\x1fdraw"
"""The piece that holds it."""


class PosteriorSample:
    """The draw in force.

    Attributes:
        offsets: what it adds to the coefficients of each arm, shape (K, d).
        levels: variances of the part that moves levels, by arm.
        center: mean context of late, shape (d,).
        drawn: draws so far; left: decisions that the last one still serves.
    """

    __slots__ = ("_journal", "center", "drawn", "left", "levels", "offsets")

    def __init__(self, d: int, journal: Journal) -> None:
        self._journal = journal
        self.offsets: Matrix = np.zeros((0, d))
        self.levels: list[float] = []
        self.center: Vector = np.zeros(d)
        self.drawn = self.left = 0

    def resize(self, K: int) -> None:
        """Start anew, as arms have come or gone."""
        self._journal.pieces.add(PIECE)
        self.offsets, self.left = np.zeros((K, self.offsets.shape[1])), 0
        self.levels = [0.0] * K

    def serve(self, x: Vector) -> bool:
        """Take a decision's context x, shape (d,), into the mean; tell whether the draw serves it,
        or it is time for another one."""
        self._journal.pieces.add(PIECE)
        center = self.center
        center += (x - center) / (self.drawn + 1.0 if self.drawn < ALONE else LATELY)
        if self.left > 0 and self.drawn > ALONE:
            self.left -= 1
            return True
        return False

    def renew(
        self,
        stack: Stack,
        regressions: Sequence[Regression],
        *,
        noise: float,
        rng: np.random.Generator,
        free: bool,
    ) -> None:
        """Draw anew; λ_t then follows.

        Args:
            noise: σ², of which the inverses are multiples.
            free: whether a dollar was worth nothing of late: then the whole doubt about levels is
                drawn from, as trying costs no more than what it tells.
        """
        d = len(self.center)
        self.drawn += 1
        self.left = max(SERVES, d // WIDE_SHARE) - 1
        # A factor is of the whole inverse: rows that are pending would be missing in it.
        for regression in regressions:
            regression.flush()
        scale = np.array([math.sqrt(noise / regression.decay) for regression in regressions])[
            :, None
        ]
        # One factor L for both: L·z is the draw, and |centerᵀL| how unsure the level is.
        roots = _roots(stack.blocks[:, :d])
        offsets: Matrix = (roots @ rng.standard_normal((len(regressions), d, 1)))[..., 0] * scale
        level = offsets.dot(self.center)
        deviations = np.matmul(self.center, roots) * scale
        share = 1.0 if free else LEVEL
        squares = np.add.reduce(deviations * deviations, axis=1)
        self.levels = ((share**2 - FEATURES**2) * squares).tolist()
        # The last feature is 1 for every prompt: what is added to its coefficient moves the level,
        # and nothing between prompts.
        offsets *= FEATURES
        offsets[:, -1] += (share - FEATURES) * level
        self.offsets = offsets
        self._journal.jumped = True

    def of(self, x: Vector) -> list[float]:
        """Return what the draw adds to the expected reward of each arm for a context x, shape
        (d,)."""
        added: list[float] = self.offsets.dot(x).tolist()
        return added

    def pack(self) -> bytes:
        """Return offsets, levels, center and counts."""
        return packed(self.offsets, self.levels, self.center, [self.drawn, self.left])

    def unpack(self, data: bytes, K: int) -> None:
        """Invert `pack`. Raises CorruptSnapshot."""
        d = len(self.center)
        size = K * d + K + d + 2
        offsets, levels, center, counts = np.split(
            floats(data, least=size, most=size), np.cumsum([K * d, K, d])
        )
        if not np.isfinite(offsets).all():
            raise CorruptSnapshot("a draw is not finite")
        self.offsets, self.center = offsets.reshape(K, d).copy(), center.copy()
        self.levels = levels.tolist()
        self.drawn, self.left = (int(count) for count in counts)


def _roots(covariances: Matrix) -> Matrix:
    """Return L with LLᵀ = V for each V, shape (K, d, d)."""
    d = covariances.shape[-1]
    # Before the first reward they are diagonal, and then so are their factors.
    if covariances[0, 0, 1] == 0.0 and all(
        np.count_nonzero(covariance) == d for covariance in covariances
    ):
        return np.asarray(np.sqrt(covariances), dtype=np.float64)
    try:
        return np.asarray(np.linalg.cholesky(covariances), dtype=np.float64)
    except np.linalg.LinAlgError:  # rounding has left one indefinite
        values, vectors = np.linalg.eigh(covariances)
        return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :], dtype=np.float64)
