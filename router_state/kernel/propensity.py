"""The probability with which a model was chosen, for whoever evaluates other policies later."""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING

import numpy as np

from router_state.kernel.elementary import below, exp
from router_state.kernel.linear import room
from router_state.kernel.words import Array, Floats, Index, Real, behind, pure, view, whole

if TYPE_CHECKING:
    from collections.abc import Sequence

CONTENDS = 16.0
"""Squared deviations of a difference of scores within which the lower one may win."""
LEAST_PROPENSITY = 1e-3
"""Least propensity of a chosen model: the Gaussian approximation knows nothing of rarer events."""
POINTS: Array = 0.5 + 0.5 * np.array(
    [
        -0.932469514203152,
        -0.661209386466265,
        -0.238619186083197,
        0.238619186083197,
        0.661209386466265,
        0.932469514203152,
    ]
)
SHARES: Array = np.array(
    [
        0.171324492379171,
        0.360761573048139,
        0.467913934572691,
        0.467913934572691,
        0.360761573048139,
        0.171324492379171,
    ]
) / (4.0 * np.pi)
"""Gauss-Legendre points on (0, 1), and their weights ÷ 2π (Abramowitz and Stegun 25.4.30): at most
0.0025 off."""
NODES: Floats = view(POINTS)
WEIGHTS: Floats = view(SHARES)
CELLS, WIDEST = 128, 4.0
"""Cells, and deviations either way, that the probabilities of many rivals are summed over. The
rivals' part rises from 0 to 1, so the sum is at most half a cell's probability (0.0125) off,
however narrow they are."""
NARROWEST, LEAST_DEVIATION = 1e-3, 1e-150
"""Least deviation of a rival, to that of the score and as such: narrower ones win by their
expectation alone."""


def wins(k: Index, means: Sequence[float], variances: Sequence[float]) -> float:
    """Return the probability that the k-th of several independent normal scores is the largest, at
    least `LEAST_PROPENSITY`.

    Exact for one rival; for two an integral over their correlation, for more one over the score.
    """
    K: Index = len(means)
    if len(variances) != K or not 0 <= k < K:
        raise ValueError(f"{len(variances)} variances of {K} scores, of which {k} won")
    scores: Floats = room(4 * K)
    for j in range(K):
        scores[2 * j], scores[2 * j + 1] = means[j], variances[j]
    return largest(k, scores, K)


@pure
def largest(k: Index, scores: Floats, n: Index) -> Real:
    """Return the probability that the k-th of n scores is the largest, see `wins`; `scores` has
    mean and variance of each, and room for as many numbers behind them."""
    space: Floats = behind(scores, 2 * n)
    value: Real = scores[2 * k]
    variance: Real = scores[2 * k + 1]
    rivals: Index = 0
    for j in range(n):
        gap: Real = value - scores[2 * j]
        spread: Real = scores[2 * j + 1]
        # The others have no chance that would show, and each rival costs an integral.
        if j != k and (gap < 0.0 or gap * gap < CONTENDS * (variance + spread)):
            space[2 * rivals], space[2 * rivals + 1] = gap, spread
            rivals += 1
    if rivals == 0:
        return 1.0
    found: Real
    if rivals == 1:
        found = apart(space[0], sqrt(variance + space[1]))
    elif rivals == 2 and variance > 0.0:
        found = both_apart(variance, space)
    else:
        found = all_apart(sqrt(variance), space, rivals)
    return min(max(found, LEAST_PROPENSITY), 1.0)


@pure
def apart(gap: Real, deviation: Real) -> Real:
    """Return P(deviation·z < gap) of a standard normal z."""
    if deviation <= 0.0:
        return 1.0 if gap > 0.0 else 0.5 if gap == 0.0 else 0.0
    return below(gap / deviation)


@pure
def arcsine(x: Real) -> Real:
    """Return arcsin x for 0 ≤ x ≤ 1, at most 2e-8 off (Abramowitz and Stegun 4.4.46)."""
    series = 0.0066700901 + x * -0.0012624911
    series = -0.0170881256 + x * series
    series = 0.0308918810 + x * series
    series = -0.0501743046 + x * series
    series = 0.0889789874 + x * series
    series = -0.2145988016 + x * series
    series = 1.5707963050 + x * series
    return 1.5707963267948966 - sqrt(max(1.0 - x, 0.0)) * series


@pure
def sine(x: Real) -> Real:
    """Return sin x for 0 ≤ x ≤ π/2, to 1e-10: its series."""
    square = x * x
    series = 1.0 - square / 156.0
    series = 1.0 - square / 110.0 * series
    series = 1.0 - square / 72.0 * series
    series = 1.0 - square / 42.0 * series
    series = 1.0 - square / 20.0 * series
    return x * (1.0 - square / 6.0 * series)


@pure
def both_apart(variance: Real, rivals: Floats) -> Real:
    """Return the probability that two rivals are below, from the integral over the correlation of
    the two differences (Drezner and Wesolowsky 1990)."""
    one, other = sqrt(variance + rivals[1]), sqrt(variance + rivals[3])
    h, k = rivals[0] / one, rivals[2] / other
    total: Real = 0.0
    angle: Real = arcsine(min(variance / (one * other), 1.0))
    squares: Real = -0.5 * (h * h + k * k)
    for point in range(6):
        s: Real = sine(angle * NODES[point])
        total += WEIGHTS[point] * exp((squares + h * k * s) / (1.0 - s * s))
    return below(h) * below(k) + angle * total


@pure
def all_apart(deviation: Real, rivals: Floats, n: Index) -> Real:
    """Return the probability that all of n rivals are below, as a sum over the score."""
    total: Real = 0.0
    before: Real = 0.0
    least: Real = deviation * NARROWEST + LEAST_DEVIATION
    # Of each rival the place of its deviation in the grid at the first point, and its step.
    for j in range(n):
        other: Real = CELLS / (2.0 * WIDEST) / max(sqrt(rivals[2 * j + 1]), least)
        rivals[2 * j] = (rivals[2 * j] - deviation * WIDEST) * other + CELLS / 2
        rivals[2 * j + 1] = deviation * (2.0 * WIDEST / CELLS) * other
    for point in range(CELLS + 1):
        product: Real = 1.0
        for j in range(n):
            place: Real = rivals[2 * j] + point * rivals[2 * j + 1]
            if place < CELLS:
                product *= cumulated(place)
        if point:
            mass: Real = CUMULATED[point] - CUMULATED[point - 1]
            total += 0.5 * mass * (product + before)
        before = product
    return total


@pure
def cumulated(place: Real) -> Real:
    """Return P(Z < z) for a place in the grid below its end, between two points on the line through
    them; 0 before it."""
    if not place > 0.0:
        return 0.0
    cell: Index = whole(place)
    return CUMULATED[cell] + (CUMULATED[cell + 1] - CUMULATED[cell]) * (place - cell)


def _cumulated() -> Array:
    found = np.array([below(-WIDEST + point * 2.0 * WIDEST / CELLS) for point in range(CELLS + 1)])
    found[0], found[CELLS] = 0.0, 1.0
    return found


GRID: Array = _cumulated()
CUMULATED: Floats = view(GRID)
"""The normal distribution function at the grid's points."""
