"""Write and read the sums of one model as bytes: A and b take some 300 at 26 dimensions.

A is written as the count, the mean context, and by how much contexts scatter around the mean: a
size for each feature, and correlations in steps of 1/31. Most correlations are small, so they
stand in a Rice code (`kernel.numbers.rice`). b is written likewise: the mean response, and how it
moves with each feature. Rounded sums have an odd number of bytes, other sums an even one.
"""

from __future__ import annotations

from functools import cache
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from router_state.config import Matrix, Vector
from router_state.errors import UnusablePrior
from router_state.kernel import rice_decode, rice_encode

STEPS = 31
"""Steps of a correlation between 0 and 1. Rounding moves expectations by at most 0.15 deviations of
their doubt, at 20 to 600 requests and 26 dimensions; in steps of 1/127 by 0.07, at 80 bytes more.
"""
Whole: TypeAlias = npt.NDArray[np.int64]
"""Positions in a matrix."""


@cache
def lower(d: int, below: int = 0) -> tuple[Whole, Whole]:
    """Return the rows and columns of a lower triangle. They are kept, as computing them takes
    longer than using them.

    Args:
        below: 0: with the diagonal; -1: without.
    """
    return np.tril_indices(d, below)


def pack(A: Matrix, b: Vector) -> bytes:
    """Return sums as bytes, rounded. A stays positive semidefinite: what rounding takes from an
    eigenvalue is added to the diagonal."""
    f = len(b) - 1
    count = max(float(A[-1, -1]), 0.0)
    unit = count or 1.0
    vectors, level = np.empty((3, f)), float(b[-1]) / unit
    mean, size, slopes = vectors
    mean[:] = A[-1, :f] / unit
    rest = A[:f, :f] - unit * (mean[:, None] * mean)
    size[:] = np.sqrt(np.maximum(rest.diagonal(), 0.0))
    # A feature without scatter has no correlations and no slope.
    some = np.where(size > 0.0, size, np.inf)
    steps, grown = _correlations(rest / (some[:, None] * some))
    size *= grown**0.5
    slopes[:] = (b[:f] - level * unit * mean) / (some * grown**0.5)
    scales = np.abs(vectors).max(1, initial=0.0).astype("<f4")
    halves = vectors / np.where(scales > 0.0, scales, 1.0)[:, None]
    numbers = np.array([count, level], "<f4").tobytes() + scales.tobytes()
    found: bytes = numbers + halves.astype("<f2").tobytes() + rice_encode(steps)
    return found if len(found) % 2 else found + b"\0"


def unpack(data: bytes, d: int) -> tuple[Matrix, Vector]:
    """Invert `pack`, but for the rounding.

    Raises:
        UnusablePrior: these are no sums of d dimensions.
    """
    f, at = d - 1, 20
    if len(data) % 2 == 0 or len(data) < at + 6 * f:
        raise UnusablePrior(f"{len(data)} bytes are not the sums of {d} dimensions")
    numbers = np.frombuffer(data, "<f4", 5).astype(float)
    halves = np.frombuffer(data, "<f2", 3 * f, at).astype(float).reshape(3, f)
    if not (np.isfinite(numbers).all() and np.isfinite(halves).all() and numbers[0] >= 0.0):
        raise UnusablePrior("the sums of a family must be finite, and their count not negative")
    count, level = numbers[:2].tolist()
    mean, size, slopes = halves * numbers[2:, None]
    unit = count or 1.0
    R = np.zeros((f, f))
    R[lower(f, -1)] = _steps(data[at + 6 * f :], f * (f - 1) // 2) / STEPS
    R += R.T
    R.reshape(-1)[:: f + 1] = 1.0
    A, b = np.empty((d, d)), np.empty(d)
    A[:f, :f] = R * (size[:, None] * size) + unit * (mean[:, None] * mean)
    A[-1, :f] = A[:f, -1] = unit * mean
    A[-1, -1] = count
    b[:f], b[-1] = slopes * size + level * unit * mean, level * unit
    return A, b


def most_size(d: int) -> int:
    """Return the most bytes that the sums of d dimensions take."""
    f = d - 1
    return 22 + 6 * f + (7 * f * (f - 1) // 2 + 7) // 8


def _correlations(R: Matrix) -> tuple[Vector, float]:
    """Return the lower triangle of a correlation matrix in steps, and by which factor its diagonal
    must grow for that to be positive semidefinite."""
    f, lift = len(R), 0.0
    if f < 2:
        return np.empty(0), 1.0
    # Rounding moves no eigenvalue by more than half a step for each feature.
    most = f / (2.0 * STEPS)
    for last in (False, False, True):
        lift = most if last else lift
        rounded = np.rint(np.clip(R / (1.0 + lift), -1.0, 1.0) * STEPS)
        rounded.reshape(-1)[:: f + 1] = STEPS
        if last or (least := _least(rounded) / STEPS) >= 0.0:
            break
        lift = min(lift - 1.5 * least, most)
    return rounded[lower(f, -1)], 1.0 + lift


def _least(A: Matrix) -> float:
    """Return the least eigenvalue of a matrix; 0 where it is above 0, which is told sooner."""
    try:
        np.linalg.cholesky(A)
    except np.linalg.LinAlgError:
        return float(np.linalg.eigvalsh(A)[0])
    return 0.0


def _steps(data: bytes, n: int) -> Vector:
    """Return n correlations in steps. Raises UnusablePrior."""
    try:
        found = rice_decode(data, n)
    except ValueError as error:
        raise UnusablePrior(f"the correlations of a family's sums are damaged: {error}") from None
    if (np.abs(found) > STEPS).any():
        raise UnusablePrior("a correlation of a family's sums is above 1")
    return found
