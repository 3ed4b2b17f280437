"""The probability with which a model was chosen, for whoever evaluates other policies later."""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING

import numpy as np

from router_state.kernel.elementary import below
from router_state.kernel.linear import room
from router_state.kernel.words import Floats, Index, Real, cfunc, view

if TYPE_CHECKING:
    from collections.abc import Sequence

LEAST_PROPENSITY = 1e-3
"""Least propensity of a chosen model: the sum below knows nothing of rarer events."""
CELLS, WIDEST = 128, 4.0
"""Cells, and deviations either way, that probabilities are summed over. The rivals' part rises from
0 to 1, so the sum is at most half a cell's probability (0.0125) off, however narrow they are."""


def wins(k: Index, means: Sequence[float], variances: Sequence[float]) -> float:
    """Return the probability that the k-th of several independent normal scores is the largest, at
    least `LEAST_PROPENSITY`: exact for one rival, for more a sum over the k-th score."""
    K: Index = len(means)
    if len(variances) != K or not 0 <= k < K:
        raise ValueError(f"{len(variances)} variances of {K} scores, of which {k} won")
    space: Floats = room(2 * K)
    value: Real = means[k]
    variance: Real = variances[k]
    rivals: Index = 0
    for j in range(K):
        mean: Real = means[j]
        spread: Real = variances[j]
        gap: Real = value - mean
        # The others have no chance that would show, and each rival costs an integral.
        if j != k and (gap < 0.0 or gap * gap < WIDEST * WIDEST * (variance + spread)):
            space[2 * rivals], space[2 * rivals + 1] = gap, spread
            rivals += 1
    if rivals == 0:
        return 1.0
    found: Real
    if rivals == 1:
        found = apart(space[0], sqrt(variance + space[1]))
    else:
        found = all_apart(sqrt(variance), space, rivals)
    return min(max(found, LEAST_PROPENSITY), 1.0)


@cfunc
def apart(gap: Real, deviation: Real) -> Real:
    """Return P(deviation·z < gap) of a standard normal z."""
    if deviation <= 0.0:
        return 1.0 if gap > 0.0 else 0.5 if gap == 0.0 else 0.0
    return below(gap / deviation)


@cfunc
def all_apart(deviation: Real, rivals: Floats, n: Index) -> Real:
    """Return the probability that all of n rivals are below, as a sum over the score."""
    total: Real = 0.0
    before: Real = 0.0
    cell: Real = 2.0 * WIDEST / CELLS
    for point in range(CELLS + 1):
        z: Real = -WIDEST + point * cell
        product: Real = 1.0
        for j in range(n):
            if product > 0.0:
                ahead: Real = rivals[2 * j] + deviation * z
                other: Real = sqrt(rivals[2 * j + 1])
                product *= cumulated(ahead / other) if other > 0.0 else apart(ahead, 0.0)
        if point:
            mass: Real = CUMULATED[point] - CUMULATED[point - 1]
            total += 0.5 * mass * (product + before)
        before = product
    return total


@cfunc
def cumulated(z: Real) -> Real:
    """Return P(Z < z), between two points of the grid on the line through them; 0 and 1 beyond."""
    if z <= -WIDEST:
        return 0.0
    if z >= WIDEST:
        return 1.0
    place: Real = (z + WIDEST) * (CELLS / (2.0 * WIDEST))
    cell: Index = int(place)
    return CUMULATED[cell] + (CUMULATED[cell + 1] - CUMULATED[cell]) * (place - cell)


def _cumulated() -> Floats:
    found = np.array([below(-WIDEST + point * 2.0 * WIDEST / CELLS) for point in range(CELLS + 1)])
    found[0], found[CELLS] = 0.0, 1.0
    return view(found)


CUMULATED: Floats = _cumulated()
"""The normal distribution function at the grid's points."""
