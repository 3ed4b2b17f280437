"""The arms of a router: ridge statistics of every model, stacked so that one product scores them all.

An arm's statistics decay geometrically. Instead of multiplying a whole matrix at every reward, each arm carries the product of
its decays since its ridge was last whole as one scalar, `decay`: A = decay·A_hat, b = decay·b_hat, A⁻¹ = A_hat⁻¹/decay, and
θ = A⁻¹b does not see it at all. What is left of the ridge is ridge·decay.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from router_state.config import Matrix, Price, Vector

LOG_PRICE_FLOOR, LOG_PRICE_CEILING = np.log(1e-4), np.log(0.1)


def log_price(per_1k: float) -> float:
    """Place a list price ($ per 1k tokens) on the paper's logarithmic scale: 0 at 1e-4, 1 at 0.1, clipped (Eq. 6)."""
    position = (np.log(max(per_1k, 1e-4)) - LOG_PRICE_FLOOR) / (LOG_PRICE_CEILING - LOG_PRICE_FLOOR)
    return float(min(1.0, max(0.0, position)))


class Arms:
    """K arms of dimension d; row k of every attribute is the arm `names[k]`.

    Attributes:
        A_hat: undecayed design matrices, shape (K, d, d).
        stack: shape (K, d + 2, d): A_hat⁻¹ in rows 0..d-1, θ in row d, the cost coefficients w in row d + 1.
        b_hat: undecayed responses, shape (K, d).
        decay: see the module, in (0, 1].
        forgotten: −Σ ln of all decays so far: what of an observation is left is exp(forgotten then − forgotten now).
        last_update, last_played: on the router's clock.
        pulls_left: onboarding pulls still to make.
        retired_at: since when it takes no new traffic (bills and rewards in flight still settle), or None.
        price: list price in force, and derived from it `per_1k` and `log_price`.
    """

    __slots__ = (
        "A_hat", "A_hat_inv", "b_hat", "d", "decay", "flat", "forgotten", "last_played", "last_update", "log_price", "names",
        "per_1k", "price", "pulls_left", "retired_at", "stack", "theta", "w",
    )  # fmt: skip

    def __init__(self, d: int) -> None:
        self.d = d
        self.names: tuple[str, ...] = ()
        self.A_hat: Matrix = np.empty((0, d, d))
        self.b_hat: Matrix = np.empty((0, d))
        self.decay: list[float] = []
        self.forgotten: list[float] = []
        self.last_update: list[int] = []
        self.last_played: list[int] = []
        self.pulls_left: list[int] = []
        self.retired_at: list[float | None] = []
        self.price: list[Price] = []
        self._use(np.empty((0, d + 2, d)))
        self._derive_prices()

    def __len__(self) -> int:
        return len(self.names)

    def _use(self, stack: Matrix) -> None:
        """Adopt a stack and cut the views that the hot path uses."""
        self.stack = stack
        self.flat = stack.reshape(-1, self.d)
        self.A_hat_inv = [stack[k, : self.d] for k in range(len(stack))]
        self.theta = [stack[k, self.d] for k in range(len(stack))]
        self.w = [stack[k, self.d + 1] for k in range(len(stack))]

    def _derive_prices(self) -> None:
        self.per_1k = [price.per_1k for price in self.price]
        self.log_price = [log_price(c) for c in self.per_1k]

    def index(self, model: str) -> int:
        """Return the row of a model. Raises ValueError if there is none."""
        return self.names.index(model)

    def add(self, model: str, *, price: Price, A: Matrix, b: Vector, now_t: int, pulls: int) -> None:
        """Append an arm with statistics A (d, d) and b (d,), known at clock `now_t`."""
        row = np.zeros((1, self.d + 2, self.d))
        row[0, : self.d] = symmetric_inverse(A)
        row[0, self.d] = row[0, : self.d] @ b
        self.names += (model,)
        self.A_hat = np.concatenate([self.A_hat, A[None]])
        self.b_hat = np.concatenate([self.b_hat, b[None]])
        self.decay.append(1.0)
        self.forgotten.append(0.0)
        self.last_update.append(now_t)
        self.last_played.append(now_t)
        self.pulls_left.append(pulls)
        self.retired_at.append(None)
        self.price.append(price)
        self._use(np.concatenate([self.stack, row]))
        self._derive_prices()

    def remove(self, k: int) -> None:
        """Drop row k; the rows after it move up."""
        self.names = self.names[:k] + self.names[k + 1 :]
        self.A_hat = np.delete(self.A_hat, k, axis=0)
        self.b_hat = np.delete(self.b_hat, k, axis=0)
        columns: Sequence[list[int] | list[float] | list[float | None] | list[Price]] = (
            self.decay, self.forgotten, self.last_update, self.last_played, self.pulls_left, self.retired_at, self.price,
        )  # fmt: skip
        for column in columns:
            del column[k]
        self._use(np.delete(self.stack, k, axis=0))
        self._derive_prices()

    def restore(self, names: tuple[str, ...], *, prices: list[Price], scalars: Mapping[str, list[Any]]) -> None:
        """Make room for arms whose arrays are about to be filled in, with these scalars by attribute name."""
        K, d = len(names), self.d
        self.names, self.price = names, prices
        for name, values in scalars.items():
            setattr(self, name, values)
        self.A_hat, self.b_hat = np.zeros((K, d, d)), np.zeros((K, d))
        self._use(np.zeros((K, d + 2, d)))
        self._derive_prices()

    def reprice(self, k: int, price: Price) -> None:
        """Put a new list price in force for row k."""
        self.price[k] = price
        self._derive_prices()

    def A(self, k: int) -> Matrix:
        """Return the decayed design matrix of row k, shape (d, d)."""
        A: Matrix = self.A_hat[k] * self.decay[k]
        return A

    def A_inv(self, k: int) -> Matrix:
        """Return the inverse of the decayed design matrix of row k, shape (d, d)."""
        return self.A_hat_inv[k] / self.decay[k]

    def b(self, k: int) -> Vector:
        """Return the decayed response of row k, shape (d,)."""
        b: Vector = self.b_hat[k] * self.decay[k]
        return b


def symmetric_inverse(A: Matrix) -> Matrix:
    """Invert a symmetric positive definite matrix, exactly symmetric."""
    inverse = np.linalg.inv(A)
    return (inverse + inverse.T) / 2.0
