"""The probability with which a model was chosen, for whoever evaluates other policies later."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from router_state.arms import Arms
from router_state.config import Matrix
from router_state.learning.sample import FEATURES
from router_state.pacing.window import PRICE_SPREAD
from router_state.policies.scoring import Projection
from router_state.record import Candidates

PRICE_VARIANCE = PRICE_SPREAD**2 / 3.0
"""Variance of a request's own price of a dollar, in squares of λ_t."""
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


def best(arms: Arms, seen: Projection, candidates: Candidates, k: int) -> float:
    """Return the probability that the k-th arm has the best score, over posterior samples and
    prices of a dollar.

    Scores are taken to be normal and independent; the smallest is `LEAST_PROPENSITY`.
    """
    noise = FEATURES * FEATURES * arms.rewards.noise
    scores: list[tuple[float, float]] = []
    rows = zip(
        candidates.excluded,
        seen.means,
        seen.variances,
        arms.regressions,
        arms.sample.levels,
        candidates.penalty,
        strict=True,
    )
    for j, (why, mean, spread, regression, level, penalty) in enumerate(rows):
        if why is None or j == k:
            drawn = noise * abs(spread) / regression.decay + level
            scores.append((mean - penalty, drawn + PRICE_VARIANCE * penalty * penalty))
            if j == k:
                own = scores.pop()
    return wins(own, scores)


def cheapest(log_costs: Mapping[int, tuple[float, float]], k: int) -> float:
    """Return the probability that the k-th arm is cheapest by a draw of the logarithms of costs,
    given with expectation and variance by arm."""
    scores = {j: (-log, variance) for j, (log, variance) in log_costs.items()}
    own = scores.pop(k)
    return wins(own, list(scores.values()))


def wins(own: tuple[float, float], others: list[tuple[float, float]]) -> float:
    """Return the probability that a normal score wins; each is its expectation and its variance."""
    value, variance = own
    rivals = []
    for other, spread in others:
        gap = value - other
        # The others have no chance that would show, and each rival costs an integral.
        if gap < 0.0 or gap * gap < CONTENDS * (variance + spread):
            rivals.append((gap, spread))
    return probability(variance, rivals) if rivals else 1.0


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
