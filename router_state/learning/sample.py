"""How sure the arms are of their rewards, and what is made of it: one draw from what is believed of
all coefficients.

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

from router_state.config import Matrix, Vector
from router_state.errors import CorruptSnapshot
from router_state.journal import Journal
from router_state.learning.linalg import floats, packed
from router_state.learning.regression import Belief
from router_state.learning.stack import Stack

LEVEL, FEATURES = 0.6, 0.2
"""Deviations that a draw takes (drawn worlds, docs/algorithm.md: 0.5 to 0.7 and 0.2 to 0.3 do not
differ)."""
UNBOUND_LEVEL = 1.0
"""Of the level, where money has long been no limit: there the whole doubt is drawn from, as a model
that was ruled out by a few bad answers is else not met again for thousands of requests."""
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
CONTENDS = 16.0
"""Squared deviations of a difference of scores within which the lower one may win."""
LEAST_PROPENSITY = 1e-3
"""Of a model that was chosen: the Gaussian approximation knows nothing of rarer events."""
ANGLES = tuple(
    (float(0.5 + point / 2.0), float(weight / (4.0 * math.pi)))
    for point, weight in zip(*np.polynomial.legendre.leggauss(6), strict=True)
)
"""Gauss-Legendre points on (0, 1), and their weights ÷ 2π: at most 0.0025 off."""
GRID = np.linspace(-4.0, 4.0, 129)
"""Scores, in deviations, that the probabilities of many rivals are summed over. The rivals' part
rises from 0 to 1, so the sum is at most half a cell's probability (0.0125) off, however narrow they
are."""
CUMULATED = np.array([0.5 * math.erfc(-point / math.sqrt(2.0)) for point in GRID.tolist()])
"""The normal distribution function at the grid's points."""
CUMULATED[[0, -1]] = 0.0, 1.0
"""Of the standard normal distribution, at these points."""
CELLS = 0.5 * np.diff(CUMULATED)
"""Half of what lies between two points: the weights of a trapezoidal sum."""
NARROWEST, LEAST_DEVIATION = 1e-3, 1e-150
"""Of a rival's deviation, to that of the score and as such: narrower ones win by their expectation
alone."""


class Doubt:
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
        self.offsets, self.levels, self.left = np.zeros((K, self.offsets.shape[1])), [0.0] * K, 0

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
        beliefs: Sequence[Belief],
        *,
        noise: float,
        rng: np.random.Generator,
        unbound: bool,
    ) -> None:
        """Draw anew; λ_t then follows.

        Args:
            noise: σ², of which the inverses are multiples.
            unbound: whether money has long been no limit.
        """
        d = len(self.center)
        self.drawn += 1
        self.left = max(SERVES, d // WIDE_SHARE) - 1
        # A factor is of the whole inverse: rows that are pending would be missing in it.
        for belief in beliefs:
            belief.flush()
        scale = np.array([math.sqrt(noise / belief.decay) for belief in beliefs])[:, None]
        # One factor L for both: L·z is the draw, and |centerᵀL| how unsure the level is.
        roots = _roots(stack.rows[:, :d])
        offsets: Matrix = (roots @ rng.standard_normal((len(beliefs), d, 1)))[..., 0] * scale
        level = offsets.dot(self.center)
        deviations = np.matmul(self.center, roots) * scale
        share = UNBOUND_LEVEL if unbound else LEVEL
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
        self.offsets, self.levels, self.center = (
            offsets.reshape(K, d).copy(),
            levels.tolist(),
            center.copy(),
        )
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


def probability(variance: float, rivals: Sequence[tuple[float, float]]) -> float:
    """Return how probable it is that a normal score is larger than independent others, at least
    `LEAST_PROPENSITY`.

    Exact for one rival; for two an integral over their correlation, for more one over the score.

    Args:
        variance: of the score.
        rivals: by how much each one's expectation is lower, and its variance.
    """
    if len(rivals) == 1:
        gap, other = rivals[0]
        found = _below(gap, math.sqrt(variance + other))
    elif len(rivals) == 2 and variance > 0.0:
        found = _below_both(variance, *rivals)
    else:
        found = _below_all(math.sqrt(variance), np.array(rivals))
    return min(max(found, LEAST_PROPENSITY), 1.0)


def _below(gap: float, deviation: float) -> float:
    """Return P(deviation·z < gap) of a standard normal z."""
    if deviation <= 0.0:
        return 1.0 if gap > 0.0 else 0.5 if gap == 0.0 else 0.0
    return 0.5 * math.erfc(-gap / (deviation * math.sqrt(2.0)))


def _below_both(variance: float, one: tuple[float, float], two: tuple[float, float]) -> float:
    """Return the probability that both rivals are below, from the integral over the correlation of
    the two differences (Drezner and Wesolowsky 1990)."""
    deviation, other = math.sqrt(variance + one[1]), math.sqrt(variance + two[1])
    h, k = one[0] / deviation, two[0] / other
    total, angle = 0.0, math.asin(min(variance / (deviation * other), 1.0))
    squares, product = -0.5 * (h * h + k * k), h * k
    for point, weight in ANGLES:
        sine = math.sin(angle * point)
        total += weight * math.exp((squares + product * sine) / (1.0 - sine * sine))
    return _below(h, 1.0) * _below(k, 1.0) + angle * total


def _below_all(deviation: float, rivals: Matrix) -> float:
    """Return the probability that all rivals, shape (n, 2), are below, as a sum over the score."""
    others = np.maximum(np.sqrt(rivals[:, 1:]), deviation * NARROWEST + LEAST_DEVIATION)
    # Beyond the grid `interp` returns its ends, which are 0 and 1.
    below = np.interp((rivals[:, :1] + deviation * GRID) / others, GRID, CUMULATED).prod(0)
    return float((below[1:] + below[:-1]).dot(CELLS))
