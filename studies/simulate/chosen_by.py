"""Tell whether a history chose by products of features, which lines can't follow."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from studies.simulate.shared_lines import NEVER_VARIES, Sums

MORE_THAN_LINES = 2.0
"""Ratio of the signal of products to that of features, above which history chose by products. In
`python -m benchmarks.off_policy` it is 4 to 30 where a history chose by products and the direct
estimate misses, and at most 1.1 where it chose by lines.
"""
BY_CHANCE = 3.0
"""Standard deviations of the products' statistic that chance may reach."""


def chosen_by_products(sums: Sequence[Sums]) -> bool:
    """Tell whether products of features predict the called model better than features do.

    Contexts are whitened to z. The signal of features is Σ n_a·|mean of z|² over models a, and that
    of products Σ n_a·|mean of zzᵀ − I|²/2. Each is divided by its degrees of freedom, so that
    chance makes 1 of both.
    """
    if len(sums) < 2:
        return False
    counts = np.array([one.n for one in sums], dtype=np.float64)
    n, x = counts.sum(), np.array([one.x for one in sums])
    mean = x.sum(axis=0) / n
    spread = np.array([one.xx for one in sums]).sum(axis=0) / n - np.outer(mean, mean)
    variances, directions = np.linalg.eigh(spread)
    varies = variances > NEVER_VARIES * max(variances.max(), 0.0)
    features = int(np.count_nonzero(varies))
    if features == 0:
        return False
    whiten = directions[:, varies] / np.sqrt(variances[varies])
    by_features = by_products = 0.0
    for one, count in zip(sums, counts, strict=True):
        away = one.x / count - mean
        square = one.xx / count - np.outer(mean, one.x / count) - np.outer(away, mean)
        z, zz = away @ whiten, whiten.T @ square @ whiten - np.eye(features)
        by_features += count * (z @ z)
        by_products += count * (zz * zz).sum() / 2.0
    degrees = (len(sums) - 1) * features
    pairs = degrees * (features + 1) / 2.0
    least = max(by_features / degrees, 1.0 + BY_CHANCE * math.sqrt(2.0 / pairs))
    return bool(by_products / pairs > MORE_THAN_LINES * least)
