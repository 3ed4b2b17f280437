"""The arms of a router: what is known of every model, stacked so that one product scores them all.

Kept of the design matrix is only its inverse: scoring needs nothing else, and what rarely needs A itself inverts it again. An arm's
statistics decay geometrically. Instead of multiplying a whole matrix at every reward, each arm carries the product of its decays
since its ridge was last whole as one scalar, `decay`: A⁻¹ = A_hat⁻¹/decay, and θ = A⁻¹b does not see it at all. What is left of
the ridge is ridge·decay.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from router_state.config import Matrix, Price, Vector
from router_state.cost_model import EXPECTED_COUNTS, MIN_PRICE_PER_1K, CostModel, first_guess
from router_state.drift import Suspicion, Watch
from router_state.work import Work

WIDE = 64
TAILS = 8
LOG_PRICE_FLOOR, LOG_PRICE_CEILING = np.log(1e-4), np.log(0.1)


def log_price(per_1k: float) -> float:
    """Place a list price ($ per 1k tokens) on the paper's logarithmic scale: 0 at 1e-4, 1 at 0.1, clipped (Eq. 6)."""
    position = (np.log(max(per_1k, 1e-4)) - LOG_PRICE_FLOOR) / (LOG_PRICE_CEILING - LOG_PRICE_FLOOR)
    return float(min(1.0, max(0.0, position)))


class Arms:
    """K arms of dimension d; row k of every attribute is the arm `names[k]`.

    Attributes:
        stack: shape (K, d + 2, d): A_hat⁻¹ in rows 0..d-1, θ in row d, in row d + 1 the coefficients w of its cost model as of
            `show_costs`.
        tails: from `WIDE` dimensions on, shape (K, 8, d): the last few rows v of which vvᵀ is still to be taken off A_hat⁻¹,
            `pending[k]` of them; one product takes eight off at the price of one.
        decay: see the module, in (0, 1].
        forgotten: −Σ ln of all decays so far: what of an observation is left is exp(forgotten then − forgotten now).
        last_update, last_played: on the router's clock.
        pulls_left: onboarding pulls still to make.
        retired_at: since when it takes no new traffic (bills and rewards in flight still settle), or None.
        ratio, bills: mean ratio ρ of its bills to the list price, and how many it stands for; the first guess counts for one.
        costs: how its bills deviate from ρ by prompt.
        watch: looks out for a drift of its rewards; suspicion: what is assumed since one was found, or None.
        price: list price in force.

    Derived: of the prices `per_1k`, `log_price` and `list_price` (what ratios are of, never 0); `row` {name: k}; `open`, a None
    per arm while every arm takes traffic, else None; `highest_per_1k` of those that do; whether any arm is `onboarding` or a
    `suspect`; `mean_cost_usd`, what a request costs on average; whether any arm has `prompt_costs`, that is w ≠ 0. `penalty`
    holds what `penalties` last returned, and for which weight.
    """

    __slots__ = (
        "A_hat_inv", "bills", "block", "costs", "d", "decay", "flat", "forgotten", "highest_per_1k", "last_played", "last_update",
        "list_price", "log_price", "mean_cost_usd", "names", "onboarding", "open", "penalty", "pending", "per_1k", "price",
        "prompt_costs", "pulls_left", "ratio", "retired_at", "row", "stack", "suspect", "suspicion", "tails", "theta", "w", "watch",
        "work",
    )  # fmt: skip

    def __init__(self, d: int) -> None:
        self.d = d
        self.names: tuple[str, ...] = ()
        self.decay: list[float] = []
        self.forgotten: list[float] = []
        self.last_update: list[int] = []
        self.last_played: list[int] = []
        self.pulls_left: list[int] = []
        self.pending: list[int] = []
        self.ratio: list[float] = []
        self.bills: list[float] = []
        self.retired_at: list[float | None] = []
        self.costs: list[CostModel] = []
        self.watch: list[Watch] = []
        self.suspicion: list[Suspicion | None] = []
        self.price: list[Price] = []
        self._use(np.empty((0, d + 2, d)), np.empty((0, TAILS if d >= WIDE else 0, d)))
        self.derive()

    def __len__(self) -> int:
        return len(self.names)

    def _use(self, stack: Matrix, tails: Matrix) -> None:
        """Adopt a stack and cut the views that the hot path uses."""
        d, K = self.d, len(stack)
        self.stack, self.tails = stack, tails
        self.flat = stack.reshape(-1, d)
        self.block = list(stack)
        self.A_hat_inv = [stack[k, :d] for k in range(K)]
        self.theta = [stack[k, d] for k in range(K)]
        self.w = [stack[k, d + 1] for k in range(K)]
        self.work = Work(K, d)

    def derive(self) -> None:
        """Derive what the hot path reads from what was just changed."""
        self.per_1k = [price.per_1k for price in self.price]
        self.list_price = [max(c, MIN_PRICE_PER_1K) for c in self.per_1k]
        self.log_price = [log_price(c) for c in self.per_1k]
        self.row = {name: k for k, name in enumerate(self.names)}
        taking = [c for c, at in zip(self.per_1k, self.retired_at, strict=True) if at is None]
        self.open: list[str | None] | None = [None] * len(taking) if taking and len(taking) == len(self.names) else None
        self.highest_per_1k = max(taking, default=0.0)
        self.onboarding = any(self.pulls_left)
        self.suspect = any(suspicion is not None for suspicion in self.suspicion)
        self.mean_cost_usd = [ratio * price for ratio, price in zip(self.ratio, self.list_price, strict=True)]
        self.prompt_costs = bool(self.stack[:, self.d + 1].any())
        self.penalty: tuple[float, list[float]] = (0.0, [0.0] * len(self.names))

    def penalties(self, weight: float) -> list[float]:
        """Return weight times each arm's price on the logarithmic scale; to be read only."""
        known, penalties = self.penalty
        if known != weight:
            penalties = [weight * c for c in self.log_price]
            self.penalty = (weight, penalties)
        return penalties

    def index(self, model: str) -> int:
        """Return the row of a model. Raises ValueError if there is none."""
        return self.names.index(model)

    def _columns(self) -> Sequence[list[Any]]:
        return (
            self.decay, self.forgotten, self.last_update, self.last_played, self.pulls_left, self.pending, self.ratio,
            self.bills, self.retired_at, self.costs, self.watch, self.suspicion, self.price,
        )  # fmt: skip

    def add(self, model: str, *, price: Price, A: Matrix, b: Vector, now_t: int, pulls: int) -> None:
        """Append an arm with statistics A (d, d) and b (d,), known at clock `now_t`."""
        row = np.zeros((1, self.d + 2, self.d))
        row[0, : self.d] = symmetric_inverse(A)
        row[0, self.d] = row[0, : self.d] @ b
        self.names += (model,)
        fresh = (1.0, 0.0, now_t, now_t, pulls, 0, first_guess(price), 1.0, None, CostModel(self.d), Watch(), None, price)
        for column, value in zip(self._columns(), fresh, strict=True):
            column.append(value)
        self._use(np.concatenate([self.stack, row]), np.concatenate([self.tails, np.zeros((1, *self.tails.shape[1:]))]))
        self.derive()

    def remove(self, k: int) -> None:
        """Drop row k; the rows after it move up."""
        self.names = self.names[:k] + self.names[k + 1 :]
        for column in self._columns():
            del column[k]
        self._use(np.delete(self.stack, k, axis=0), np.delete(self.tails, k, axis=0))
        self.derive()

    def restore(self, names: tuple[str, ...], *, prices: list[Price], scalars: Mapping[str, list[Any]]) -> None:
        """Make room for arms whose arrays are about to be filled in, with these scalars by attribute name."""
        K, d = len(names), self.d
        self.names, self.price = names, prices
        self.costs = [CostModel(d) for _ in names]
        self.watch = [Watch() for _ in names]
        self.suspicion = [None] * K
        for name, values in scalars.items():
            setattr(self, name, values)
        self._use(np.zeros((K, d + 2, d)), np.zeros((K, *self.tails.shape[1:])))
        self.derive()

    def reprice(self, k: int, price: Price) -> None:
        """Put a new list price in force for row k; what bills say of the tokens per request stays."""
        if (self.price[k].per_1k == 0.0) != (price.per_1k == 0.0):  # bills of a free model say nothing of its tokens
            self.ratio[k], self.bills[k], self.costs[k] = first_guess(price), 1.0, CostModel(self.d)
            self.show_costs(k)
        self.price[k] = price
        self.derive()

    def show_costs(self, k: int) -> None:
        """Let scoring see the coefficients of the cost model of row k."""
        self.w[k][:] = self.costs[k].w
        self.prompt_costs = True

    def expect(self, k: int, *, ratio: float, bills: float = EXPECTED_COUNTS) -> None:
        """Start row k from a known mean ratio of cost to list price instead of the first guess; it counts for so many bills."""
        self.ratio[k], self.bills[k] = ratio, bills
        self.mean_cost_usd[k] = ratio * self.list_price[k]

    def flush(self, k: int) -> None:
        """Take the pending rows of arm k off its inverse."""
        n = self.pending[k]
        if n:
            V = self.tails[k, :n]
            inverse = self.A_hat_inv[k]
            np.dot(V.T, V, self.work.half)
            np.subtract(inverse, self.work.half, inverse)
            self.pending[k] = 0

    def A(self, k: int) -> Matrix:
        """Return the decayed design matrix of row k, shape (d, d)."""
        return symmetric_inverse(self.A_inv(k))

    def A_inv(self, k: int) -> Matrix:
        """Return the inverse of the decayed design matrix of row k, shape (d, d)."""
        V = self.tails[k, : self.pending[k]]
        A_inv: Matrix = (self.A_hat_inv[k] - V.T @ V) / self.decay[k]
        return A_inv

    def b(self, k: int) -> Vector:
        """Return the decayed response of row k, shape (d,)."""
        b: Vector = self.A(k) @ self.theta[k]
        return b


def symmetric_inverse(A: Matrix) -> Matrix:
    """Invert a symmetric positive definite matrix, exactly symmetric."""
    inverse = np.linalg.inv(A)
    return (inverse + inverse.T) / 2.0
