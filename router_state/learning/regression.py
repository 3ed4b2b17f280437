"""What an arm has learned of its rewards: rank-one updates, geometric forgetting, and a ridge that
must not fade away.

Kept of the design matrix is only its inverse: scoring needs nothing else, and what rarely needs A
itself inverts it again. An arm's statistics decay geometrically. Instead of multiplying a whole
matrix at every reward, each arm carries the product of its decays since its ridge was last whole as
one scalar, `decay`: A⁻¹ = A_hat⁻¹/decay, and θ = A⁻¹b does not see it at all. What is left of the
ridge is ridge·decay.
"""

from __future__ import annotations

import math

import numpy as np

from router_state.config import Matrix, Vector
from router_state.errors import NonFiniteInput, RewardOutOfRange
from router_state.journal import Journal
from router_state.learning.linalg import lower_triangle, symmetric_from, symmetric_inverse
from router_state.learning.stack import TAILS, WIDE, Stack

MAX_DECAY_STEPS = 1000
"""Steps of the clock that one gap may decay by (ParetoBandit Eq. 7–8)."""
RIDGE_FLOOR = 0.1
"""Share of the ridge below which it is given back."""
LEAST_EIGENVALUE = 1e-12
"""Share of the largest eigenvalue that the smallest gets: above the rounding of 64 bits."""


def checked_reward(reward: float) -> float:
    """Return a reward as a float.

    Raises:
        NonFiniteInput, RewardOutOfRange: not a reward.
    """
    reward = float(reward)
    if not 0.0 <= reward <= 1.0:
        if not math.isfinite(reward):
            raise NonFiniteInput("a reward is not finite")
        raise RewardOutOfRange("a reward must be between 0 and 1")
    return reward


class Belief:
    """The regression of one arm's rewards on contexts.

    Attributes:
        name: of its piece, which is that of its arm.
        decay: see the module, in (0, 1].
        forgotten: −Σ ln of all decays so far: what of an observation is left is exp(forgotten then
            − forgotten now).
        last_update, last_played: on the router's clock.
        pending: rows of `tails` still to be taken off `inverse`.
        block, inverse, theta, tails: views of the stack, see there.
    """

    __slots__ = (
        "_journal",
        "_work",
        "block",
        "d",
        "decay",
        "forgotten",
        "inverse",
        "last_played",
        "last_update",
        "name",
        "pending",
        "tails",
        "theta",
    )

    block: Matrix
    inverse: Matrix
    theta: Vector
    tails: Matrix

    def __init__(self, name: str, d: int, journal: Journal, *, now_t: int = 0) -> None:
        self.name, self.d, self._journal = name, d, journal
        self.decay, self.forgotten, self.pending = 1.0, 0.0, 0
        self.last_update = self.last_played = now_t

    def bind(self, stack: Stack, k: int) -> None:
        """Keep views of row k of the stack."""
        self.block, self.tails, self._work = stack.rows[k], stack.tails[k], stack.work
        self.inverse, self.theta = self.block[: self.d], self.block[self.d]

    def start(self, A: Matrix, b: Vector) -> None:
        """Start from statistics A (d, d), the ridge in it, and b (d,)."""
        self.inverse[:] = symmetric_inverse(A)
        self.theta[:] = self.inverse @ b
        self._journal.pieces.add(self.name)

    def held(self) -> tuple[Matrix, Vector, float]:
        """See Regression."""
        self.flush()
        return self.inverse, self.theta, self.decay

    def conclude(self, inverse: Matrix, theta: Vector) -> None:
        """See Regression; the prior is whole again."""
        self.inverse[:], self.theta[:] = inverse, theta
        self.decay, self.pending = 1.0, 0
        self._journal.pieces.add(self.name)

    def forget(self, *, t: int, gamma: float, ridge: float | None) -> None:
        """Decay by γ^(t − last_update); give the ridge back once less than a tenth of it is left.

        ParetoBandit Eq. 7–8, the exponent capped at 1,000 steps. O(1), and O(d³) once in
        ln(10)/−ln(γ) rewards. Without a `ridge` whoever knows the prior has it whole again, see
        `conclude`.
        """
        steps = t - self.last_update
        self.last_update = t
        self._journal.pieces.add(self.name)
        if gamma >= 1.0 or steps <= 0:
            return
        steps = min(steps, MAX_DECAY_STEPS)
        self.forgotten -= steps * math.log(gamma)
        decay = self.decay * gamma**steps
        if decay >= RIDGE_FLOOR or ridge is None:
            self.decay = decay
        else:
            self._restore_ridge(decay=decay, ridge=ridge)

    def left_at(self, t: int, gamma: float) -> float:
        """Return what `decay` is once it has forgotten until clock t without a ridge."""
        steps = t - self.last_update
        if gamma >= 1.0 or steps <= 0:
            return self.decay
        return float(self.decay * gamma ** min(steps, MAX_DECAY_STEPS))

    def fade(self, share: float, *, ridge: float | None) -> None:
        """Keep this share of everything learned, and have the ridge whole again, see `forget`."""
        self.forgotten -= math.log(share)
        if ridge is None:
            self.decay *= share
        else:
            self._restore_ridge(decay=self.decay * share, ridge=ridge)
        self._journal.pieces.add(self.name)

    def shift(self, offset: float) -> None:
        """Expect this much more reward for every prompt."""
        self.theta[-1] += offset
        self._journal.pieces.add(self.name)

    def _restore_ridge(self, *, decay: float, ridge: float) -> None:
        """Fold a decay into the statistics and top the ridge up to its full size, as if it had said
        reward 0 all along."""
        self.flush()
        added = (1.0 - decay) * ridge
        A = symmetric_inverse(self.inverse)
        A *= decay
        A[np.diag_indices(self.d)] += added
        self.inverse[:] = symmetric_inverse(A)
        # b = A·θ as it was, and is never formed: (A + c·I)⁻¹b is θ less c·(A + c·I)⁻¹θ.
        self.theta -= self.inverse.dot(self.theta) * added
        self.decay = 1.0

    def observe(self, x: Vector, reward: float) -> tuple[float, float]:
        """Add one reward: A += xxᵀ, b += reward·x, in O(d²).

        Li et al. 2010, Algorithm 1 (arXiv:1003.0146), by Sherman–Morrison: with u = A⁻¹x and s = 1
        + xᵀu, A⁻¹ −= uuᵀ/s and θ += u·(reward − θᵀx)/s; both are one outer product. In undecayed
        statistics the observation weighs 1/decay. A⁻¹ stays exactly symmetric: only products vᵢ·vⱼ
        of one vector with itself are taken off.

        Args:
            x: context, shape (d,), last entry 1.0.
            reward: observed quality in [0, 1].

        Returns:
            The residual reward − θᵀx and the variance xᵀA⁻¹x, both from before.

        Raises:
            NonFiniteInput: `x` or `reward` holds a NaN or an infinity; nothing has changed.
        """
        d, decay, block, correction = self.d, self.decay, self.block, self._work.arm
        y, u = correction.y, correction.u
        block.dot(x, y)
        n = self.pending
        if n:
            V = self.tails[:n]
            # What is still to be taken off counts already.
            u -= V.dot(x).dot(V)
        xu = float(x.dot(u))
        residual = reward - y.item(d)
        if not math.isfinite(xu + residual):
            raise NonFiniteInput("a context or a reward is not finite")
        self._journal.pieces.add(self.name)
        if xu < 0.0:  # rounding has left the inverse indefinite
            self._repair()
            u[:] = self.inverse.dot(x)
            xu = float(x.dot(u))
        if d >= WIDE:
            # θ moves at once, as every score reads it; of A⁻¹ the correction is only noted, and
            # taken off with the others.
            self.theta += u * (residual / (decay + xu))
            np.multiply(u, 1.0 / math.sqrt(decay + xu), self.tails[n])
            self.pending = n + 1
            if n + 1 == TAILS:
                self.flush()
            return residual, xu / decay
        # Row d of the block is θ: with −residual in its place the same outer product moves it, and
        # w below it not at all.
        y[d] = -residual
        y[d + 1] = 0.0
        correction.take_off(block, decay + xu)
        return residual, xu / decay

    def revise(self, x: Vector, *, difference: float, discount: float) -> None:
        """Move b by the difference between a revised reward and the one learned from, of which
        `discount` is left; A stays.

        Args:
            x: context, shape (d,).
            difference: new reward − old reward, in [−1, 1].
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
        self._journal.pieces.add(self.name)

    def _repair(self) -> None:
        """Make A⁻¹ positive definite again."""
        self.flush()
        values, vectors = np.linalg.eigh(self.inverse)
        # In ascending order, as `eigh` returns them.
        values = np.maximum(values, values[-1] * LEAST_EIGENVALUE)
        full = (vectors * values) @ vectors.T
        self.inverse[:] = (full + full.T) / 2.0

    def flush(self) -> None:
        """Take the pending rows off the inverse."""
        if self.pending:
            self._work.take_off(self.inverse, self.tails[: self.pending])
            self.pending = 0
            self._journal.pieces.add(self.name)

    def A(self) -> Matrix:
        """Return the decayed design matrix, shape (d, d)."""
        return symmetric_inverse(self.A_inv())

    def A_inv(self) -> Matrix:
        """Return the inverse of the decayed design matrix, shape (d, d)."""
        V = self.tails[: self.pending]
        A_inv: Matrix = (self.inverse - V.T @ V) / self.decay
        return A_inv

    def b(self) -> Vector:
        """Return the decayed response, shape (d,)."""
        b: Vector = self.A() @ self.theta
        return b

    def packed_size(self) -> int:
        """Return how many numbers `pack` returns, with `pending` as it is."""
        return self.d * (self.d + 1) // 2 + self.d + self.pending * self.d

    def pack(self) -> list[Vector]:
        """Return its arrays: the lower triangle of A_hat⁻¹, θ, the pending rows."""
        arrays = [self.inverse.ravel()[lower_triangle(self.d)], self.theta]
        return [*arrays, self.tails[: self.pending].ravel()] if self.pending else arrays

    def unpack(self, values: Vector) -> None:
        """Fill its arrays in, `pending` being restored."""
        triangle, theta, tails = np.split(
            values, [self.d * (self.d + 1) // 2, self.d * (self.d + 3) // 2]
        )
        self.inverse[:] = symmetric_from(triangle, self.d)
        self.theta[:] = theta
        self.tails[: self.pending] = tails.reshape(self.pending, self.d)
