"""Write and read the sums of one model as bytes: A and b take some 300 at 26 dimensions.

A is written as the count, the mean context, and by how much contexts scatter around the mean: a
size for each feature, and correlations in steps of 1/31. Most correlations are small, so they
stand in a Rice code (Rice and Plaunt 1971). b is written likewise: the mean response, and how it
moves with each feature. Rounded sums have an odd number of bytes, other sums an even one.
"""

from __future__ import annotations

from functools import cache
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from router_state.config import Matrix, Vector
from router_state.errors import UnusablePrior

STEPS = 31
"""Steps of a correlation between 0 and 1. Rounding moves expectations by at most 0.15 deviations of
their doubt, at 20 to 600 requests and 26 dimensions; in steps of 1/127 by 0.07, at 80 bytes more.
"""
MOST_BITS = 5
"""Most bits of a correlation beside those in unary."""
Whole: TypeAlias = npt.NDArray[np.int64]
"""Positions in a matrix, or correlations in steps."""


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
    mean, level = A[-1, :f] / unit, float(b[-1]) / unit
    rest = A[:f, :f] - unit * np.outer(mean, mean)
    size = np.sqrt(np.maximum(np.diag(rest), 0.0))
    steps, grown = _correlations(_ratio(rest, np.outer(size, size)))
    size = size * np.sqrt(grown)
    slopes = _ratio(b[:f] - level * unit * mean, size)
    vectors = [_halves(one) for one in (mean, size, slopes)]
    numbers = np.array([count, level, *(scale for scale, _ in vectors)], "<f4")
    found = b"".join([numbers.tobytes(), *(data for _, data in vectors), _rice(steps)])
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
    count, level = numbers[:2]
    mean, size, slopes = halves * numbers[2:, None]
    unit = count or 1.0
    R = np.zeros((f, f))
    R[lower(f, -1)] = _steps(data[at + 6 * f :], f * (f - 1) // 2) / STEPS
    R += R.T
    np.fill_diagonal(R, 1.0)
    A, b = np.empty((d, d)), np.empty(d)
    A[:f, :f] = R * np.outer(size, size) + unit * np.outer(mean, mean)
    A[-1, :f] = A[:f, -1] = unit * mean
    A[-1, -1] = count
    b[:f], b[-1] = slopes * size + level * unit * mean, level * unit
    return A, b


def most_size(d: int) -> int:
    """Return the most bytes that the sums of d dimensions take."""
    f = d - 1
    return 22 + 6 * f + (7 * f * (f - 1) // 2 + 7) // 8


def _ratio(values: npt.NDArray[np.float64], scale: npt.NDArray[np.float64]) -> Matrix:
    return np.divide(values, scale, out=np.zeros_like(values), where=scale > 0.0)


def _halves(values: Vector) -> tuple[float, bytes]:
    """Return a scale, and values as 16-bit floats in it."""
    scale = float(np.float32(np.abs(values).max(initial=0.0)))
    return scale, (values / (scale or 1.0)).astype("<f2").tobytes()


def _correlations(R: Matrix) -> tuple[Whole, float]:
    """Return the lower triangle of a correlation matrix in steps, and by which factor its diagonal
    must grow for that to be positive semidefinite."""
    f, lift = len(R), 0.0
    if f < 2:
        return np.empty(0, np.int64), 1.0
    # Rounding moves no eigenvalue by more than half a step for each feature.
    most = f / (2.0 * STEPS)
    for last in (False, False, True):
        lift = most if last else lift
        rounded = np.rint(np.clip(R / (1.0 + lift), -1.0, 1.0) * STEPS)
        np.fill_diagonal(rounded, STEPS)
        least = float(np.linalg.eigvalsh(rounded)[0]) / STEPS
        if last or least >= 0.0:
            break
        lift = min(lift - 1.5 * least, most)
    return rounded[lower(f, -1)].astype(np.int64), 1.0 + lift


def _rice(steps: Whole) -> bytes:
    """Return whole numbers in a Rice code: k, the last k bits of each, and the others in unary."""
    folded = np.where(steps < 0, -2 * steps - 1, 2 * steps)
    bits = np.arange(MOST_BITS + 1)
    k = int(((folded[:, None] >> bits).sum(0) + bits * len(folded)).argmin())
    high = np.zeros(int((folded >> k).sum()) + len(folded), np.uint8)
    high[np.cumsum((folded >> k) + 1) - 1] = 1
    low = (folded[:, None] >> np.arange(k)) & 1
    return bytes([k]) + np.packbits(np.concatenate([low.ravel().astype(np.uint8), high])).tobytes()


def _steps(data: bytes, n: int) -> Whole:
    """Invert `_rice`, for n numbers. Raises UnusablePrior."""
    k, bits = data[0], np.unpackbits(np.frombuffer(data, np.uint8, offset=1))
    ends = np.flatnonzero(bits[n * k :])
    if k > MOST_BITS or len(ends) != n:
        raise UnusablePrior("the correlations of a family's sums are damaged")
    low = bits[: n * k].reshape(n, k) @ (1 << np.arange(k))
    folded = (np.diff(ends, prepend=-1) - 1 << k) | low
    if (folded > 2 * STEPS).any():
        raise UnusablePrior("a correlation of a family's sums is above 1")
    return np.where(folded & 1, -(folded + 1) // 2, folded // 2)
