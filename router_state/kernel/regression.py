"""One Gaussian linear regression with forgetting, for rewards and for logarithms of bills.

What is kept of the design matrix is its inverse V = A⁻¹: predictions need nothing else. Statistics
decay geometrically. Instead of multiplying a matrix at every observation, a regression carries the
product of its decays since its prior was last whole as one scalar, `decay`: A⁻¹ = V/decay, and
θ = A⁻¹b does not see it at all. What is left of the prior is prior·decay.
"""

from __future__ import annotations

from math import isfinite, sqrt
from typing import TYPE_CHECKING

import numpy as np

from router_state.errors import CorruptSnapshot, NonFiniteInput
from router_state.kernel.elementary import log, power
from router_state.kernel.linear import (
    add,
    dot,
    factor,
    finite,
    invert,
    product,
    products,
    quadratic,
    room,
    take_off,
    times,
)
from router_state.kernel.words import Array, Floats, Index, Real, cclass, cfunc, known, pure, view

if TYPE_CHECKING:
    from router_state.changes import Journal
    from router_state.config import Matrix, Vector

MAX_DECAY_STEPS = 1000
"""Steps of the clock that one gap may decay by (ParetoBandit Eq. 7–8)."""
RIDGE_FLOOR = 0.1
"""Share of the prior that is left when it is made whole again (ParetoBandit Eq. 7–8)."""
WIDE = 64
"""Dimensions from which on corrections of V are collected; benchmarks.core times 26 and 385."""
TAILS = 16
"""Corrections that are collected: one pass takes all of them off at hardly more than the price of
one, but each decision reads those that wait."""


@cclass
class Regression:
    """The regression of one model's rewards, or of the logarithms of its bills, on contexts.

    Attributes:
        piece: name of the piece of the state that holds it; `journal` is told when it changes.
        d: dimensions.
        decay: see the module, in (0, 1].
        forgotten: −Σ ln of all decays so far: what is left of an observation is exp(forgotten then
            − forgotten now).
        last_update: the router's clock at the last observation.
        pending: rows v of which vvᵀ is still to be taken off V.
        array: the lower triangle of V, row by row; θ; room for 16 pending rows where d is large;
            and Vx of the last `look`. `values` is what the kernel reads of it.
        at: where θ begins; seen: where Vx of the last `look` does.
        mean_seen: θᵀx of the last `look`.
    """

    piece: str
    journal: Journal
    d: Index
    decay: Real
    forgotten: Real
    last_update: Index
    pending: Index
    at: Index
    seen: Index
    mean_seen: Real
    array: Array
    values: Floats

    def __init__(self, piece: str, d: int, journal: Journal, *, now_t: int = 0) -> None:
        if d < 1:
            raise ValueError(f"a regression has no {d} dimensions")
        self.piece, self.d, self.journal = piece, d, journal
        self.decay, self.forgotten, self.pending, self.last_update = 1.0, 0.0, 0, now_t
        self.at, self.mean_seen = d * (d + 1) // 2, 0.0
        self.seen = self.at + d + (TAILS if d >= WIDE else 0) * d
        self.array = np.zeros(self.seen + d)
        self.values = view(self.array)

    @property
    def theta(self) -> Vector:
        """The coefficients θ, shape (d,), a view."""
        return self.array[self.at : self.at + self.d]

    @property
    def bias_variance(self) -> float:
        """The variance of the bias's coefficient, not decayed: the last entry of V."""
        return self.values[self.at - 1]

    @property
    def kept(self) -> Vector:
        """All that a snapshot has to keep of the array, a view."""
        return self.array[: self.at + (1 + self.pending) * self.d]

    def start(self, A: Matrix, b: Vector) -> None:
        """Start from statistics A (d, d), a prior in it, and b (d,)."""
        d: Index = self.d
        A, b = np.asarray(A, np.float64), np.asarray(b, np.float64)
        if A.shape != (d, d) or b.shape != (d,):
            raise ValueError(f"statistics of {A.shape} and {b.shape} are not of {d} dimensions")
        space: Floats = room(2 * d)
        triangle = A[np.tril_indices(d)]
        self.array[: self.at] = triangle
        response: Floats = known(np.ascontiguousarray(b), d)
        for i in range(d):
            space[d + i] = response[i]
        invert(self.values, 0, d, space)
        times(self.values, 0, space, d, self.values, self.at, d)
        self.decay, self.pending = 1.0, 0
        self.changed()

    def know_only(self, ridge: Real, bias_ridge: Real, mean: Vector) -> None:
        """Take over the shared prior: V is the inverse of its ridges, and θ its mean (d,)."""
        V, d, place = self.values, self.d, 0
        shared: Floats = known(mean, d)
        for i in range(d):
            for j in range(i):
                V[place + j] = 0.0
            V[place + i] = 1.0 / (bias_ridge if i == d - 1 else ridge)
            V[self.at + i] = shared[i]
            place += i + 1
        self.decay, self.pending = 1.0, 0
        self.changed()

    def changed(self) -> None:
        """Report that its piece is to be written."""
        self.journal.pieces.add(self.piece)

    def forget(self, *, t: Index, gamma: Real, ridge: float | None = None) -> None:
        """Decay by γ^(t − last_update), the exponent capped at 1,000 steps (ParetoBandit Eq. 7–8).

        With a `ridge` it is given back once less than a tenth of it is left: O(1), and O(d³) once
        in ln(10)/−ln(γ) observations. Without one whoever knows the prior makes it whole.
        """
        left: Real = self.left_at(t, gamma)
        steps: Index = t - self.last_update
        self.last_update = t
        self.changed()
        if gamma >= 1.0 or steps <= 0:
            return
        self.forgotten -= min(steps, MAX_DECAY_STEPS) * log(gamma)
        if left >= RIDGE_FLOOR or ridge is None:
            self.decay = left
        else:
            self._restore_ridge(left, ridge)

    def left_at(self, t: Index, gamma: Real) -> float:
        """Return what `decay` is once it has forgotten until clock t without a ridge."""
        steps: Index = t - self.last_update
        if gamma >= 1.0 or steps <= 0:
            return self.decay
        return self.decay * power(gamma, min(steps, MAX_DECAY_STEPS))

    def fade(self, share: Real) -> None:
        """Keep this share of everything learned."""
        self.forgotten -= log(share)
        self.decay *= share
        self.changed()

    def shift(self, offset: Real) -> None:
        """Expect this much more for every context."""
        self.values[self.at + self.d - 1] += offset
        self.changed()

    def _restore_ridge(self, decay: Real, ridge: Real) -> None:
        """Fold a decay into the statistics and top the ridge up to its full size, as if it had said
        0 all along."""
        self.flush()
        V, d, added = self.values, self.d, (1.0 - decay) * ridge
        space: Floats = room(2 * d)
        invert(V, 0, d, space)
        place: Index = 0
        for i in range(d):
            for j in range(i + 1):
                V[place + j] *= decay
            V[place + i] += added
            place += i + 1
        invert(V, 0, d, space)
        # b = A·θ as it was, and is never formed: (A + c·I)⁻¹b is θ less c·(A + c·I)⁻¹θ.
        times(V, 0, V, self.at, space, d, d)
        add(-added, space, d, V, self.at, d)
        self.decay = 1.0

    def predict(self, x: Vector) -> float:
        """Return θᵀx."""
        space: Floats = taken(x, self.d)
        return dot(self.values, self.at, space, 0, self.d)

    def look(self, x: Vector) -> tuple[float, float]:
        """Return θᵀx and xᵀVx for a context (d,), not decayed, and keep Vx for `learn`.

        Raises:
            NonFiniteInput: the context or what was learned is not finite.
        """
        spread: Real = self.see(x)
        return self.mean_seen, spread

    @cfunc
    def see(self, x: Vector) -> Real:
        """Look as `look` does, with θᵀx in `mean_seen`; return xᵀVx."""
        d: Index = self.d
        space: Floats = taken(x, d)
        u: Index = self.seen
        spread: Real = self._product(space, u)
        self.mean_seen = dot(self.values, self.at, space, 0, d)
        if not isfinite(spread + self.mean_seen):
            raise NonFiniteInput("a context or what was learned is not finite")
        if spread < 0.0:  # rounding has left V indefinite
            self._repair()
            spread = self._product(space, u)
        return spread

    @cfunc
    def _product(self, x: Floats, u: Index) -> Real:
        """Write Vx into `values` from u on; return xᵀVx. What is still to be taken off counts
        already."""
        V: Floats = self.values
        d: Index = self.d
        times(V, 0, x, 0, V, u, d)
        row: Index = self.at + d
        for _ in range(self.pending):
            add(-dot(V, row, x, 0, d), V, row, V, u, d)
            row += d
        return dot(V, u, x, 0, d)

    def learn(self, residual: Real, spread: Real) -> None:
        """Add the observation of the last `look`: A += xxᵀ, b += y·x, in O(d²).

        Li et al. 2010, Algorithm 1 (arXiv:1003.0146), by Sherman–Morrison: with u = Vx and s =
        decay + xᵀu, V −= uuᵀ/s and θ += u·residual/s. In undecayed statistics the observation
        weighs 1/decay.

        Args:
            residual: what was observed less what was predicted.
            spread: xᵀVx as `look` returned it.
        """
        V: Floats = self.values
        d: Index = self.d
        s: Real = self.decay + spread
        u: Index = self.seen
        self.changed()
        add(residual / s, V, u, V, self.at, d)
        if d < WIDE:
            take_off(1.0 / s, V, u, V, 0, d)
            return
        row: Index = self.at + (1 + self.pending) * d
        scale: Real = 1.0 / sqrt(s)
        for i in range(d):
            V[row + i] = V[u + i] * scale
        self.pending += 1
        if self.pending == TAILS:
            self.flush()

    def move_along(self, step: Real) -> None:
        """Move θ by so many times Vx of the last `look`: predictions of contexts like x move."""
        add(step, self.values, self.seen, self.values, self.at, self.d)
        self.changed()

    def observe(self, x: Vector, value: Real) -> tuple[float, float]:
        """Add one observation; return its residual and xᵀA⁻¹x, both from before.

        Raises:
            NonFiniteInput: `x` or `value` holds a NaN or an infinity; nothing has changed.
        """
        if not isfinite(value):
            raise NonFiniteInput("what was observed is not finite")
        spread: Real = self.see(x)
        residual: Real = value - self.mean_seen
        self.learn(residual, spread)
        return residual, spread / self.decay

    def revise(self, x: Vector, *, difference: Real, discount: Real) -> None:
        """Move b by the difference between a revised value and the one learned from; A stays.

        Args:
            x: context, shape (d,).
            difference: new value − old value.
            discount: what is left of the original observation, in [0, 1].

        Raises:
            NonFiniteInput: a value is not finite; nothing has changed.
        """
        # In undecayed statistics what is left of an observation weighs that much more.
        step: Real = difference * discount / self.decay
        if not isfinite(step):
            raise NonFiniteInput("a reward is not finite")
        self.look(x)
        self.move_along(step)

    def _repair(self) -> None:
        """Make V positive definite again."""
        self.flush()
        factor(self.values, 0, self.d)
        product(self.values, 0, self.d)

    def flush(self) -> None:
        """Take the pending rows off V."""
        V, d, place = self.values, self.d, 0
        if not self.pending:
            return
        for i in range(d):
            row: Index = self.at + d
            for _ in range(self.pending):
                add(-V[row + i], V, row, V, place, i + 1)
                row += d
            place += i + 1
        self.pending = 0
        self.changed()

    def V(self) -> Matrix:
        """Return V once the pending rows are taken off, shape (d, d)."""
        d: Index = self.d
        full = np.zeros((d, d))
        full[np.tril_indices(d)] = self.array[: self.at]
        full += np.tril(full, -1).T
        rows = self.array[self.at + d : self.at + (1 + self.pending) * d].reshape(-1, d)
        return full - rows.T @ rows

    def A_inv(self) -> Matrix:
        """Return the inverse of the decayed design matrix, shape (d, d)."""
        return self.V() / self.decay

    def A(self) -> Matrix:
        """Return the decayed design matrix, shape (d, d)."""
        A = np.linalg.inv(self.A_inv())
        return (A + A.T) / 2.0

    def b(self) -> Vector:
        """Return the decayed response, shape (d,)."""
        return self.A() @ self.theta

    def restore(self, kept: Vector) -> None:
        """Take over what `kept` was. Raises CorruptSnapshot."""
        size, d = self.at + self.d, self.d
        rows, rest = divmod(len(kept) - size, d)
        if rest or not 0 <= rows <= (TAILS - 1 if d >= WIDE else 0):
            raise CorruptSnapshot(f"{len(kept)} numbers are no regression of {d} dimensions")
        self.array[: len(kept)] = kept
        self.pending = rows

    def is_finite(self) -> bool:
        """Tell whether everything in it is finite."""
        return finite(self.values, 0, self.at + (1 + self.pending) * self.d)


@cfunc
def taken(x: Vector, d: Index) -> Floats:
    """Copy a context of d dimensions into the kernel's room. Raises ValueError."""
    context: Floats = known(x, d)
    space: Floats = room(d)
    for i in range(d):
        space[i] = context[i]
    return space


@cfunc
def room_of_products(d: Index) -> Floats:
    """Return room for a context and, where that is faster, the products of its entries."""
    return room(d + (d * (d + 1) // 2 if d < WIDE else 0))


@pure
def multiply(x: Floats, d: Index) -> None:
    """Write the products of a context's entries behind it, see `spread_at`: all regressions need
    the same ones."""
    if d < WIDE:
        products(x, d)


@pure
def spread_at(one: Regression, x: Floats) -> Real:
    """Return xᵀVx of a context that has its products behind it."""
    d: Index = one.d
    if d < WIDE:
        return dot(one.values, 0, x, d, one.at)
    spread: Real = quadratic(one.values, 0, x, 0, d)
    row: Index = one.at + d
    for _ in range(one.pending):
        tail: Real = dot(one.values, row, x, 0, d)
        spread -= tail * tail
        row += d
    return spread
