"""Compute the probability with which a model was chosen, for off-policy evaluation."""

from libc.math cimport sqrt

import numpy as np

from router_state.kernel.numbers.elementary cimport below
from router_state.kernel.numbers.linear cimport EPSILON
from router_state.kernel.numbers.words cimport (
    Floats, Index, Real, behind, of_block, scratch, view, whole,
)

cdef Real LEAST_PROPENSITY = 1e-3
"""Least propensity of a chosen model: the sum in `largest` can't resolve rarer events."""
cdef enum:
    CELLS = 128
cdef Real WIDEST = 4.0
"""Number of cells over which probabilities are summed, and deviations of the score on either side
that they cover. The rivals' part rises from 0 to 1, so the error of the sum is at most half a
cell's probability (0.0125), however narrow the rivals' distributions are.
"""


def wins(Index k, means, variances):
    """Return the probability that the k-th of several independent normal scores is the largest, at
    least `LEAST_PROPENSITY`: exact for one rival, for more a sum over the k-th score."""
    K: Index = len(means)
    if len(variances) != K or not 0 <= k < K:
        raise ValueError(f"{len(variances)} variances of {K} scores, of which {k} won")
    held = scratch(4 * K)
    scores: Floats = of_block(held)
    for j in range(K):
        scores[2 * j], scores[2 * j + 1] = means[j], variances[j]
    return largest(k, scores, K)


cdef Real largest(Index k, Floats scores, Index n) noexcept:
    """Return the probability that the k-th of n scores is the largest, see `wins`. `scores` holds
    mean and variance of each score (2n), and room for 2n more numbers.
    """
    space: Floats = behind(scores, 2 * n)
    value: Real = scores[2 * k]
    variance: Real = scores[2 * k + 1]
    rivals: Index = 0
    for j in range(n):
        gap: Real = value - scores[2 * j]
        spread: Real = scores[2 * j + 1]
        if gap < 0.0 and variance + spread <= 0.0:
            return LEAST_PROPENSITY
        # Rivals without a noticeable chance are skipped, as each costs an integral.
        if j != k and (gap < 0.0 or gap * gap < WIDEST * WIDEST * (variance + spread)):
            space[2 * rivals], space[2 * rivals + 1] = gap, spread
            rivals += 1
    if rivals == 0:
        return 1.0
    found: Real
    if rivals == 1:
        found = below(space[0] / sqrt(variance + space[1]))
    else:
        found = all_apart(sqrt(variance), space, rivals)
    return min(max(found, LEAST_PROPENSITY), 1.0)


cdef inline Real all_apart(Real deviation, Floats rivals, Index n) noexcept:
    """Return the probability that all n rivals are below the k-th score, as a sum over that
    score.
    """
    total: Real = 0.0
    before: Real = 0.0
    # For each rival: its place in the grid at the first point, and the step from point to point.
    for j in range(n):
        other: Real = CELLS / (2.0 * WIDEST) / max(sqrt(rivals[2 * j + 1]), deviation * EPSILON)
        rivals[2 * j] = (rivals[2 * j] - deviation * WIDEST) * other + CELLS / 2
        rivals[2 * j + 1] = deviation * (2.0 * WIDEST / CELLS) * other
    for point in range(first_chance(rivals, n), CELLS + 1):
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


cdef inline Index first_chance(Floats rivals, Index n) noexcept:
    """Return a point of the grid before which the product of the rivals' parts is 0."""
    first: Real = 1.0
    for j in range(n):
        step: Real = rivals[2 * j + 1]
        zero: Real = -rivals[2 * j] / step if step > 0.0 else 0.0
        first = zero if zero > first else first
    return whole(min(first, CELLS)) - 1


cdef inline Real cumulated(Real place) noexcept:
    """Return P(Z < z) for a place in the grid below its end, between two points on the line through
    them; 0 before it."""
    if not place > 0.0:
        return 0.0
    cell: Index = whole(place)
    return CUMULATED[cell] + (CUMULATED[cell + 1] - CUMULATED[cell]) * (place - cell)


cdef Real nearly_below(Real z) noexcept:
    """Return P(Z < z) by the grid, at most 2e-4 off: 0 and 1 beyond its ends."""
    place: Real = (z + WIDEST) * (CELLS / (2.0 * WIDEST))
    return cumulated(place) if place < CELLS else 1.0


def _cumulated():
    found = np.array([below(-WIDEST + point * 2.0 * WIDEST / CELLS) for point in range(CELLS + 1)])
    found[0], found[CELLS] = 0.0, 1.0
    return found


GRID = _cumulated()
cdef Floats CUMULATED = view(GRID)
"""The normal distribution function at the grid's points."""


# For Python, which does not see numbers of C.
globals().update(LEAST_PROPENSITY=LEAST_PROPENSITY)
