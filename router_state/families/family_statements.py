"""Statements of all routers of a family about one model, in one stack; the names are those of
`family_kin`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from router_state.config import Vector
from router_state.families.family_sums import Sums

Members: TypeAlias = Mapping[str, Mapping[str, Sums]]
"""Sums by router and model."""
Stack: TypeAlias = npt.NDArray[np.float64]
"""Matrices (n, d, d), or vectors (n, d), of the routers that have a model."""


@dataclass(slots=True, eq=False)
class Of:
    """Statements of the routers that have one model.

    Attributes:
        at: their positions among all routers; A, b: their sums; J, h, V: their statements J and h,
            and V = (A + wR)⁻¹.
    """

    at: npt.NDArray[np.int64]
    A: Stack
    b: Stack
    J: Stack
    h: Stack
    V: Stack

    def without(self, levels: Vector) -> Stack:
        """Return b without the levels of all routers."""
        found: Stack = self.b - levels[self.at, None] * self.A[:, -1]
        return found

    def total(self, counts: Vector) -> Sums:
        """Return J and h of all routers, each times its entry of `counts`."""
        here = counts[self.at]
        return Sums(np.einsum("n,nij->ij", here, self.J), here @ self.h)


def statements(R: Stack, A: Stack, b: Stack) -> tuple[Stack, Stack, Stack]:
    """Return J, h and V of n sums, given the diagonals of R, shape (n, d)."""
    one = np.eye(R.shape[1])
    V = np.asarray(np.linalg.inv(A + R[:, :, None] * one), np.float64)
    J = R[:, :, None] * (one - V * R[:, None, :])
    return (J + J.transpose(0, 2, 1)) / 2.0, R * (V @ b[:, :, None])[:, :, 0], V


def stacked(model: str, names: list[str], members: Members) -> Of:
    """Return the sums of all routers that have a model."""
    at = [k for k, name in enumerate(names) if model in members[name]]
    A = np.stack([members[names[k]][model].A for k in at])
    b = np.stack([members[names[k]][model].b for k in at])
    return Of(np.array(at), A, b, np.zeros_like(A), np.zeros_like(b), np.zeros_like(A))


def mean_square(statements: Iterable[Of], d: int) -> float:
    """Return the mean square of a feature over all observations; 1 before the first one."""
    count = squares = 0.0
    for of in statements:
        counted = float(of.A[:, -1, -1].sum())
        count += counted
        squares += float(np.einsum("nii->", of.A)) - counted
    return squares / (count * (d - 1)) if d > 1 and count > 0.0 and squares > 0.0 else 1.0
