"""Find routers whose labels mean something else: their coefficients, beside their level, do not
rise with those of the others.

The slope is that of a regression of h_r on J_r·θ_a, where θ_a is estimated without router r; the
names are those of `family_kin`.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from router_state.config import Matrix, Vector
from router_state.families.family_statements import Of, Stack

LEAST_MEMBER_SLOPE = 0.5
"""Slope of a router's coefficients on the others' below which it is left out: 1 means alike, 0
constant, −1 inverted, and labels on another scale have that scale's factor. To weight routers by
the probability that they fit, instead of leaving some out, harms no less (benchmarks.families)."""
SLOPE_DEVIATIONS = 2.0
"""Deviations of a slope's estimate by which a slope must also be below 1 for its router to be left
out."""
RETURN_DEVIATIONS = 1.0
"""The same deviations for a router that is left out already. With one limit alone such a router
would come and go: what it says makes its own slope less sure, and each time it came the others
would look unlike."""


def broken(slopes: Vector, doubts: Vector, counts: Vector) -> npt.NDArray[np.bool_]:
    """Tell for each router whether its slope leaves it out.

    Args:
        doubts: deviations of the slopes; counts: 0 for a router that is left out already.
    """
    deviations = np.where(counts > 0.0, SLOPE_DEVIATIONS, RETURN_DEVIATIONS)
    return np.less(slopes, np.minimum(LEAST_MEMBER_SLOPE, 1.0 - deviations * doubts))


def slopes(
    statements: Mapping[str, Of],
    theta: Mapping[str, Vector],
    covariances: Mapping[str, Matrix],
    *,
    counts: Vector,
    noise: float,
) -> tuple[Vector, Vector]:
    """Return the slope of each router's coefficients on those of the others, and its deviation;
    1 and infinity where no data determine them.

    Args:
        statements: by model.
        theta, covariances: of θ_a, the latter ÷ σ², by model.
        counts: 1 for each router, 0 for one that is left out.
        noise: σ².
    """
    others: dict[str, Stack] = {}
    J, middle, total, along, across = np.zeros((5, len(counts)))
    for model, of in statements.items():
        others[model] = _others(of, theta[model], covariances[model], counts[of.at])
        J[of.at] += of.J[:, -1, -1]
        middle[of.at] += (of.J[:, -1] * others[model]).sum(1)
        total[of.at] += of.h[:, -1]
    # A level is no slope: what models differ by counts, and what prompts do.
    middle, total = middle / np.maximum(J, 1e-12), total / np.maximum(J, 1e-12)
    for model, of in statements.items():
        apart = others[model].copy()
        apart[:, -1] -= middle[of.at]
        along[of.at] += (apart * (of.h - total[of.at, None] * of.J[:, -1])).sum(1)
        across[of.at] += (apart * (of.J @ apart[:, :, None])[:, :, 0]).sum(1)
    determined = across > 0.0
    across = np.where(determined, across, 1.0)
    found = np.where(determined, along / across, 1.0)
    return np.asarray(found, np.float64), np.where(determined, np.sqrt(noise / across), np.inf)


def _others(of: Of, theta: Vector, covariance: Matrix, counts: Vector) -> Stack:
    """Return θ_a without each router, shape (n, d)."""
    precision = np.linalg.inv(covariance)
    left = precision - counts[:, None, None] * of.J
    rest = precision @ theta - counts[:, None] * of.h
    return np.asarray(np.linalg.solve(left, rest[:, :, None])[:, :, 0], np.float64)
