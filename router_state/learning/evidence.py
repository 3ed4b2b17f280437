"""Regressions that scatter around shared coefficients: their evidence, and what follows from it.

θ_a = θ_0 + δ_a, δ_a ~ N(0, σ²R⁻¹), θ_0 ~ N(μ, σ²R_0⁻¹), R and R_0 diagonal. Given θ_0 the
regressions are independent, so nothing of size (Nd)² is needed: each keeps V_a = (A_a + R)⁻¹, and
θ_0 follows from sums of d × d matrices (Lindley and Smith 1972).

All is said around a point m, the shared coefficients as they were: y_a = b_a − A_a·m is what the
response says beyond it. With B_a = I − V_a·R = V_a·A_a, how far data determine a regression,

    θ_0 = m + e,   (R·ΣB_a + R_0)·e = R·ΣV_a·y_a + R_0·(μ − m),   θ_a = m + V_a·(y_a + R·e).

Groups of regressions, each with its own θ_0 and scales, lie one behind the other in the same
arrays: at d = 26 an estimate is mostly calls of numpy, and one call serves all groups. What a group
gets does not depend on which others there are, to the bit: no product goes across groups.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from router_state.config import Matrix, Vector
from router_state.learning.linalg import symmetric_inverse

LEAST_EVIDENCE = 1e-9
"""Observations, and of a feature's mean square, below which nothing is known of the contexts."""


class Scales(NamedTuple):
    """What is assumed of P groups.

    `ridges` and `shared_ridges` are the diagonals of R and R_0, `toward` is R_0·(μ − m), all of
    shape (P, d); `counts` says how many regressions each group has.
    """

    ridges: Matrix
    shared_ridges: Matrix
    toward: Matrix
    counts: list[int]

    def each(self, values: Matrix) -> Matrix:
        """Return values of the groups, shape (P, …), by regression, shape (N, …)."""
        return values if len(self.counts) == 1 else values.repeat(self.counts, 0)

    def summed(self, values: Matrix) -> Matrix:
        """Return the sums over the regressions of each group, shape (P, …)."""
        counts, shape = self.counts, values.shape[1:]
        if counts.count(counts[0]) == len(counts):
            total: Matrix = np.add.reduce(values.reshape(len(counts), counts[0], *shape), 1)
            return total
        total, start = np.empty((len(counts), *shape)), 0
        for group, count in enumerate(counts):
            np.add.reduce(values[start : start + count], 0, None, total[group])
            start += count
        return total


class Fitted(NamedTuple):
    """Posterior at given scales, in units of σ.

    `inverse` V_a, shape (N, d, d); `excess` θ_a − m, shape (N, d); `shift` e, shape (P, d).
    """

    inverse: Matrix
    excess: Matrix
    shift: Matrix


def fit(A: Matrix, y: Matrix, scales: Scales) -> Fitted:
    """Return the posterior of N regressions, in O(N·d³).

    Args:
        A, y: shape (N, d, d) and (N, d).
    """
    ridges = scales.ridges
    inverse = symmetric_inverse(plus(A, scales.each(ridges)))
    information = scales.summed(inverse)
    information *= ridges[:, :, None]
    information *= -ridges[:, None, :]
    diagonal = diagonals(information)
    diagonal += ridges * np.array(scales.counts)[:, None]
    diagonal += scales.shared_ridges
    said = ridges * scales.summed(times(inverse, y))
    said += scales.toward
    shift: Matrix = np.asarray(np.linalg.solve(information, said[:, :, None]), np.float64)[:, :, 0]
    return Fitted(inverse, times(inverse, y + scales.each(ridges * shift)), shift)


class Sizes(NamedTuple):
    """What one group's posterior says of the sizes of its coefficients, entry by entry.

    `known` counts of the δ_a what data determine and not the prior (MacKay 1992), `squares` is
    their Σ δ²; `known_shared` is the first of θ_0, and `shift` θ_0 − m, shape (d,).
    """

    known: list[float]
    squares: list[float]
    known_shared: list[float]
    shift: Vector


def sizes(inverse: Matrix, excess: Matrix, scales: Scales) -> list[Sizes]:
    """Return what is known of the sizes of coefficients, by group, at the scales of which `inverse`
    V_a and `excess` V_a·y_a are, shape (N, d, d) and (N, d); both are used up."""
    ridges, by_row = scales.ridges, scales.each(scales.ridges)
    inverse *= -by_row[:, None, :]
    determined, known = inverse, diagonals(inverse)
    known += 1.0
    information = scales.summed(determined)
    information *= ridges[:, :, None]
    diagonal = diagonals(information)
    diagonal += scales.shared_ridges
    covariance: Matrix = np.asarray(np.linalg.inv(information), dtype=np.float64)
    said = ridges * scales.summed(excess)
    said += scales.toward
    shift = times(covariance, said)
    # Of δ_a = θ_a − θ_0 = V_a·y_a − B_a·e: what the doubt about θ_0 adds to its own variance.
    doubt = np.vecdot(np.matmul(determined, scales.each(covariance)), determined)
    doubt *= by_row
    excess -= times(determined, scales.each(shift))
    excess *= excess
    # 1 for a coefficient that data determine, 0 for one of which only the prior speaks.
    known = scales.summed(np.maximum(known - doubt, 0.0))
    shared = np.maximum(1.0 - scales.shared_ridges * diagonals(covariance), 0.0)
    squares = scales.summed(excess)
    return [
        Sizes(*found)
        for found in zip(known.tolist(), squares.tolist(), shared.tolist(), shift, strict=True)
    ]


def sums(
    inverse: Matrix, excess: Matrix, left: Vector, ridges: Vector | Matrix
) -> tuple[Matrix, Matrix]:
    """Return A_a and y_a, decayed, of regressions whose inverse and excess are V_a and V_a·y_a."""
    A: Matrix = np.asarray(np.linalg.inv(inverse), dtype=np.float64)
    y = times(A, excess)
    diagonal = diagonals(A)
    diagonal -= ridges
    A *= left[:, None, None]
    y *= left[:, None]
    return A, y


def spreads(A: Matrix, scales: Scales) -> list[tuple[float, Vector | None]]:
    """Return of each group the mean square of a feature over all that was observed, and the mean
    context; 1 and None before anything was.

    Args:
        A: shape (N, d, d).
    """
    # The last feature is 1 for every context: the last row of A is Σx.
    totals, diagonal = scales.summed(A[:, -1]), scales.summed(diagonals(A)).tolist()
    found: list[tuple[float, Vector | None]] = []
    for total, squares in zip(totals, diagonal, strict=True):
        count = squares.pop()
        features = sum(squares, 0.0) / max(len(squares), 1)
        if count < LEAST_EVIDENCE or features <= LEAST_EVIDENCE * count:
            found.append((1.0, None))
            continue
        total /= count
        total[-1] = 1.0
        found.append((features / count, total))
    return found


def diagonals(A: Matrix) -> Matrix:
    """Return a view of the diagonals of contiguous A, shape (N, d, d)."""
    view: Matrix = A.reshape(len(A), -1)[:, :: A.shape[-1] + 1]
    return view


def plus(A: Matrix, diagonal: Vector | Matrix) -> Matrix:
    """Return A, shape (N, d, d), with a diagonal added."""
    total = A.copy()
    entries = diagonals(total)
    entries += diagonal
    return total


def times(A: Matrix, b: Matrix) -> Matrix:
    """Return A_a·b_a for each a, shape (N, d)."""
    product: Matrix = np.matmul(A, b[:, :, None])[:, :, 0]
    return product
