"""The dollar dual: the price of a dollar, in reward, at which a window's winners meet the
budget."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from router_state.config import Matrix, Vector

Tangent = Callable[[float], tuple[float, float]]
"""By a price: what the winners score together, and what they cost beyond what is allowed."""
STEP = 1.1
"""First factor by which the price is moved in search of one on the other side; each is the fourth
power of the one before."""
NEAR, FAR = 1e-9, 1e12
"""Prices, in reward per dollar, below which 0 and above which infinity is tried."""
PRECISION = 1e-12
"""Share of the terms of a sum that rounding may take."""
SMALL = 24
"""Entries of a window up to which loops are faster than calls of numpy (a young router's)."""
MOST_TANGENTS = 100
"""Bounds the tangents of one solution; the most that 40,000 drawn windows of up to 64 arms took was
18."""


@lru_cache(maxsize=64)
def _rows(n: int, K: int) -> tuple[npt.NDArray[np.intp], Vector]:
    """Return where each row of a flattened (n, K) matrix begins, and n ones; to be read only."""
    return np.arange(0, n * K, K), np.ones(n)


def _by_products(scores: Matrix, costs: Matrix, allowed: float) -> Tangent:
    """Return a function of the price: the winners' total score, and what they cost beyond what is
    allowed."""
    rows, ones = _rows(*scores.shape)
    values = np.empty(scores.shape)
    flat_scores, flat_costs = scores.ravel(), costs.ravel()

    def tangent(price: float) -> tuple[float, float]:
        np.multiply(costs, -price, values)
        # Beyond FAR the scores would be lost in the rounding of the products: the cheapest win.
        at = np.add(values, scores, values).argmax(1) if price < FAR else costs.argmin(1)
        at += rows
        return float(flat_scores[at].dot(ones)), float(flat_costs[at].dot(ones)) - allowed

    return tangent


def _by_loops(scores: Matrix, costs: Matrix, allowed: float) -> Tangent:
    """As `_by_products`, for a few entries."""
    rows: list[list[tuple[float, float]]] = [
        list(zip(*row, strict=True)) for row in zip(scores.tolist(), costs.tolist(), strict=True)
    ]

    def tangent(price: float) -> tuple[float, float]:
        total = dollars = 0.0
        weight = 1.0
        if price >= FAR:
            weight, price = 0.0, 1.0
        for row in rows:
            won, paid = row[0]
            best = weight * won - price * paid
            for score, cost in row:
                value = weight * score - price * cost
                if value > best:
                    best, won, paid = value, score, cost
            total += won
            dollars += paid
        return total, dollars - allowed

    return tangent


def solve_dual(
    scores: Matrix, costs: Matrix, *, target: float, start: float = 0.0, within: float = 0.0
) -> float | None:
    """Return the smallest λ ≥ 0 at which the rows' winners (largest scores − λ·costs) cost at most
    `target` on average, or None.

    It is where Σ max(scores − λ·costs) + λ·n·target, convex and piecewise linear, has its minimum.
    Two tangents, one on either side, meet closer to it than where they touch (Kelley 1960), and at
    it once no piece is left between them: exact, O(nK) each.

    A tangent that comes again is one of the two, up to rounding: then no piece is left either.

    Args:
        scores, costs: shape (n, K), n ≥ 1, finite.
        target: mean cost per row.
        start: where to look first.
        within: share of the target by which the cost may be below it; 0: exact.
    """
    n = len(scores)
    # Totals instead of means: a sum is one product, and nothing is divided.
    allowed = target * n
    slack, enough = PRECISION * abs(allowed), -within * abs(allowed)
    tangent = (_by_loops if scores.size <= SMALL else _by_products)(scores, costs, allowed)
    low: tuple[float, float] | None = None
    high: tuple[float, float] | None = None
    price, step = min(start, FAR), STEP
    left = MOST_TANGENTS
    # One price on either side first. The factor grows so fast that five tangents reach over ten
    # decades: after a jump λ may be anywhere.
    while low is None or high is None:
        left -= 1
        line = tangent(price)
        if enough < 0.0 and enough <= line[1] <= slack:
            return price
        if line[1] > slack:
            # Even the cheapest are too dear together: no price of a dollar helps.
            if price >= FAR:
                return None
            low, price = line, price * step if price > NEAR else FAR
        else:
            # Whoever chooses freely stays within the budget: a dollar is worth nothing.
            if price <= 0.0:
                return 0.0
            high, price = line, price / step if price > NEAR else 0.0
        step = min(step**4, FAR)
    for _ in range(left):
        price = (low[0] - high[0]) / (low[1] - high[1])
        line = tangent(price)
        if enough < 0.0 and enough <= line[1] <= slack:
            break
        bound, scale = low[0] - price * low[1], max(abs(low[0]), abs(price * low[1]))
        if line in (low, high) or line[0] - price * line[1] <= bound + PRECISION * scale:
            break
        if line[1] > slack:
            low = line
        else:
            high = line
    return max(0.0, price)
