"""Frontiers of two goods, their knee, and the area under reward over cost."""

from __future__ import annotations

import numpy as np

RESAMPLES = 2000


def area(costs: np.ndarray, rewards: np.ndarray, low: float, high: float) -> float:
    """Return the mean height between two costs of the line through the points (cost, reward) that
    no cheaper one equals.

    Outside the points' range the line goes on level.
    """
    kept: list[tuple[float, float]] = []
    for cost, reward in sorted(
        zip(costs.tolist(), rewards.tolist(), strict=True), key=lambda point: (point[0], -point[1])
    ):
        if not kept or reward > kept[-1][1]:
            kept.append((cost, reward))
    xs, ys = np.array(kept).T
    grid = np.concatenate([[low], xs[(xs > low) & (xs < high)], [high]])
    return float(np.trapezoid(np.interp(grid, xs, ys), grid) / (high - low))


def frontier(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return which points no other point beats in both goods, in the order of the first good."""
    better = (
        (one[:, None] <= one)
        & (other[:, None] <= other)
        & ((one[:, None] < one) | (other[:, None] < other))
    )
    kept = np.flatnonzero(~better.any(axis=1))
    return kept[np.argsort(one[kept], kind="stable")]


def knee(one: np.ndarray, other: np.ndarray) -> int:
    """Return the point of the frontier that is farthest from the line between its ends, both goods
    scaled to [0, 1].
    """
    kept = frontier(one, other)
    if len(kept) < 3:
        return int(kept[np.argmax(_scaled(one[kept]) + _scaled(other[kept]))])
    x, y = _scaled(one[kept]), _scaled(other[kept])
    distance = np.abs((y[-1] - y[0]) * (x - x[0]) - (x[-1] - x[0]) * (y - y[0]))
    return int(kept[np.argmax(distance)])


def _scaled(values: np.ndarray) -> np.ndarray:
    scaled: np.ndarray = (values - values.min()) / (np.ptp(values) + 1e-12)
    return scaled


def knees(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return how often each setting is the knee when seeds are drawn again; arrays have shape
    (settings, seeds).
    """
    rng = np.random.default_rng(42)
    counts = np.zeros(len(one), dtype=np.int64)
    for _ in range(RESAMPLES):
        drawn = rng.choice(one.shape[1], size=one.shape[1])
        counts[knee(one[:, drawn].mean(axis=1), other[:, drawn].mean(axis=1))] += 1
    return counts / RESAMPLES
