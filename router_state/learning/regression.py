"""One Gaussian linear regression with forgetting, for rewards and for logarithms of bills.

What is kept of the design matrix is its inverse V = A⁻¹: predictions need nothing else. Statistics
decay geometrically. Instead of multiplying a matrix at every observation, a regression carries the
product of its decays since its prior was last whole as one scalar, `decay`: A⁻¹ = V/decay, and
θ = A⁻¹b does not see it at all. What is left of the prior is prior·decay.
"""

from __future__ import annotations

import math

import numpy as np

from router_state.changes import Journal
from router_state.config import Matrix, Vector
from router_state.errors import CorruptSnapshot, NonFiniteInput
from router_state.learning.linalg import (
    correction_for,
    lower_triangle,
    symmetric_from,
    symmetric_inverse,
)
from router_state.learning.stack import TAILS, WIDE

MAX_DECAY_STEPS = 1000
"""Steps of the clock that one gap may decay by (ParetoBandit Eq. 7–8)."""
RIDGE_FLOOR = 0.1
"""Share of the prior that is left when it is made whole again (ParetoBandit Eq. 7–8)."""
LEAST_EIGENVALUE = 1e-12
"""Share of the largest eigenvalue that the smallest gets: above the rounding of 64 bits."""


class Regression:
    """The regression of one model's rewards, or of the logarithms of its bills, on contexts.

    Attributes:
        piece: name of the piece of the state that holds it; `journal` is told when it changes.
        decay: see the module, in (0, 1].
        forgotten: −Σ ln of all decays so far: what is left of an observation is exp(forgotten then
            − forgotten now).
        last_update: the router's clock at the last observation.
        pending: rows v of `tails` of which vvᵀ is still to be taken off `inverse`.
        block: shape (d + 1, d): θ, and V in the rows before it or behind it.
        inverse, theta, tails: V (d, d), θ (d,) and the pending rows (16, d) or (0, d), views.
    """

    __slots__ = (
        "_correction",
        "_u",
        "at",
        "block",
        "d",
        "decay",
        "forgotten",
        "inverse",
        "journal",
        "last_update",
        "pending",
        "piece",
        "tails",
        "theta",
    )

    block: Matrix
    inverse: Matrix
    theta: Vector
    tails: Matrix
    _u: Vector

    def __init__(
        self, piece: str, d: int, journal: Journal, *, now_t: int = 0, leads: bool = False
    ) -> None:
        """Start without arrays, see `bind`; θ `leads` the block or ends it."""
        self.piece, self.d, self.journal = piece, d, journal
        self.at = 0 if leads else d
        self.decay, self.forgotten, self.pending = 1.0, 0.0, 0
        self.last_update = now_t
        self._correction = correction_for(d)

    def bind(self, block: Matrix, tails: Matrix) -> None:
        """Keep views of its arrays, shape (d + 1, d) and (16, d) or (0, d)."""
        self.block, self.tails, self.theta = block, tails, block[self.at]
        first = 0 if self.at else 1
        self.inverse = block[first : first + self.d]
        self._u = self._correction.y[first : first + self.d]

    def start(self, A: Matrix, b: Vector) -> None:
        """Start from statistics A (d, d), a prior in it, and b (d,)."""
        inverse = symmetric_inverse(A)
        self.conclude(inverse, inverse @ b)

    def conclude(self, inverse: Matrix, theta: Vector) -> None:
        """Take over V (d, d) and θ (d,); the prior is whole again."""
        self.inverse[:], self.theta[:] = inverse, theta
        self.decay, self.pending = 1.0, 0
        self.changed()

    def changed(self) -> None:
        """Report that its piece is to be written."""
        self.journal.pieces.add(self.piece)

    def forget(self, *, t: int, gamma: float, ridge: float | None = None) -> None:
        """Decay by γ^(t − last_update), the exponent capped at 1,000 steps (ParetoBandit Eq. 7–8).

        With a `ridge` it is given back once less than a tenth of it is left: O(1), and O(d³) once
        in ln(10)/−ln(γ) observations. Without one whoever knows the prior makes it whole.
        """
        left = self.left_at(t, gamma)
        steps = t - self.last_update
        self.last_update = t
        self.changed()
        if gamma >= 1.0 or steps <= 0:
            return
        self.forgotten -= min(steps, MAX_DECAY_STEPS) * math.log(gamma)
        if left >= RIDGE_FLOOR or ridge is None:
            self.decay = left
        else:
            self._restore_ridge(decay=left, ridge=ridge)

    def left_at(self, t: int, gamma: float) -> float:
        """Return what `decay` is once it has forgotten until clock t without a ridge."""
        steps = t - self.last_update
        if gamma >= 1.0 or steps <= 0:
            return self.decay
        return float(self.decay * gamma ** min(steps, MAX_DECAY_STEPS))

    def fade(self, share: float) -> None:
        """Keep this share of everything learned."""
        self.forgotten -= math.log(share)
        self.decay *= share
        self.changed()

    def shift(self, offset: float) -> None:
        """Expect this much more for every context."""
        self.theta[-1] += offset
        self.changed()

    def _restore_ridge(self, *, decay: float, ridge: float) -> None:
        """Fold a decay into the statistics and top the ridge up to its full size, as if it had said
        0 all along."""
        self.flush()
        added = (1.0 - decay) * ridge
        A = symmetric_inverse(self.inverse)
        A *= decay
        A[np.diag_indices(self.d)] += added
        self.inverse[:] = symmetric_inverse(A)
        # b = A·θ as it was, and is never formed: (A + c·I)⁻¹b is θ less c·(A + c·I)⁻¹θ.
        self.theta -= self.inverse.dot(self.theta) * added
        self.decay = 1.0

    def look(self, x: Vector) -> tuple[float, float]:
        """Return θᵀx and xᵀVx for a context (d,), not decayed, and keep Vx for `learn`.

        Raises:
            NonFiniteInput: the context or what was learned is not finite.
        """
        y, u = self._correction.y, self._u
        self.block.dot(x, y)
        if self.pending:
            V = self.tails[: self.pending]
            # What is still to be taken off counts already.
            u -= V.dot(x).dot(V)
        spread = float(x.dot(u))
        mean = y.item(self.at)
        if not math.isfinite(spread + mean):
            raise NonFiniteInput("a context or what was learned is not finite")
        if spread < 0.0:  # rounding has left the inverse indefinite
            self._repair()
            u[:] = self.inverse.dot(x)
            spread = float(x.dot(u))
        return mean, spread

    def learn(self, residual: float, spread: float) -> None:
        """Add the observation of the last `look`: A += xxᵀ, b += y·x, in O(d²).

        Li et al. 2010, Algorithm 1 (arXiv:1003.0146), by Sherman–Morrison: with u = Vx and s =
        decay + xᵀu, V −= uuᵀ/s and θ += u·residual/s; both are one outer product. In undecayed
        statistics the observation weighs 1/decay.

        Args:
            residual: what was observed less what was predicted.
            spread: xᵀVx as `look` returned it.
        """
        s, correction, u = self.decay + spread, self._correction, self._u
        self.changed()
        if self.d >= WIDE:
            # θ moves at once, as every score reads it; of V the correction is only noted, and taken
            # off with the others.
            self.theta += u * (residual / s)
            np.multiply(u, 1.0 / math.sqrt(s), self.tails[self.pending])
            self.pending += 1
            if self.pending == TAILS:
                self.flush()
            return
        # The block has θ beside V: with −residual in its place the same outer product moves it.
        correction.y[self.at] = -residual
        correction.take_off(self.block, u, s)

    def move_along(self, step: float) -> None:
        """Move θ by so many times Vx of the last `look`: predictions of contexts like x move."""
        self.theta += step * self._u
        self.changed()

    def observe(self, x: Vector, value: float) -> tuple[float, float]:
        """Add one observation; return its residual and xᵀA⁻¹x, both from before.

        Raises:
            NonFiniteInput: `x` or `value` holds a NaN or an infinity; nothing has changed.
        """
        mean, spread = self.look(x)
        residual = value - mean
        if not math.isfinite(residual):
            raise NonFiniteInput("what was observed is not finite")
        self.learn(residual, spread)
        return residual, spread / self.decay

    def revise(self, x: Vector, *, difference: float, discount: float) -> None:
        """Move b by the difference between a revised value and the one learned from; A stays.

        Args:
            x: context, shape (d,).
            difference: new value − old value.
            discount: what is left of the original observation, in [0, 1].

        Raises:
            NonFiniteInput: a value is not finite; nothing has changed.
        """
        # In undecayed statistics what is left of an observation weighs that much more.
        step = x * (difference * discount / self.decay)
        if not math.isfinite(float(step.dot(x))):
            raise NonFiniteInput("a context or a reward is not finite")
        self.flush()
        self.theta += self.inverse.dot(step)
        self.changed()

    def _repair(self) -> None:
        """Make V positive definite again."""
        self.flush()
        values, vectors = np.linalg.eigh(self.inverse)
        # In ascending order, as `eigh` returns them.
        values = np.maximum(values, values[-1] * LEAST_EIGENVALUE)
        full = (vectors * values) @ vectors.T
        self.inverse[:] = (full + full.T) / 2.0

    def flush(self) -> None:
        """Take the pending rows off the inverse."""
        if self.pending:
            V = self.tails[: self.pending]
            self.inverse -= V.T @ V
            self.pending = 0
            self.changed()

    def V(self) -> Matrix:
        """Return V once the pending rows are taken off, shape (d, d)."""
        V = self.tails[: self.pending]
        inverse: Matrix = self.inverse - V.T @ V
        return inverse

    def A_inv(self) -> Matrix:
        """Return the inverse of the decayed design matrix, shape (d, d)."""
        return self.V() / self.decay

    def A(self) -> Matrix:
        """Return the decayed design matrix, shape (d, d)."""
        return symmetric_inverse(self.A_inv())

    def b(self) -> Vector:
        """Return the decayed response, shape (d,)."""
        b: Vector = self.A() @ self.theta
        return b

    def pack(self) -> list[Vector]:
        """Return its arrays: the lower triangle of V, θ, the pending rows."""
        arrays = [self.inverse.ravel()[lower_triangle(self.d)], self.theta]
        return [*arrays, self.tails[: self.pending].ravel()] if self.pending else arrays

    def unpack(self, values: Vector) -> None:
        """Invert `pack`. Raises CorruptSnapshot."""
        d, half = self.d, self.d * (self.d + 1) // 2
        triangle, theta, tails = np.split(values, [half, half + d])
        rows = len(tails) // d
        if len(tails) % d or rows > max(len(self.tails) - 1, 0):
            raise CorruptSnapshot(f"{len(tails)} numbers are no pending rows of {d}")
        self.inverse[:] = symmetric_from(triangle, d)
        self.theta[:] = theta
        self.pending = rows
        self.tails[:rows] = tails.reshape(rows, d)
