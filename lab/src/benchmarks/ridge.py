"""A ridge regression that learns one row at a time."""

from __future__ import annotations

import numpy as np

from benchmarks.arena import Array


def observe(A_inv: Array, theta: Array, x: Array, value: float) -> None:
    """Add one row in place, in O(d²): A⁻¹ by Sherman–Morrison, θ by the row's residual.

    Args:
        A_inv: shape (d, d); theta, x: shape (d,).
    """
    u = A_inv @ x
    s = 1.0 + float(x @ u)
    theta += u * (value - theta @ x) / s
    A_inv -= np.outer(u, u) / s
