"""One reward into one arm: forgetting, Sherman–Morrison, and the ridge that must not fade away."""

from __future__ import annotations

import math

import numpy as np

from router_state.arms import TAILS, WIDE, Arms, symmetric_inverse
from router_state.config import Matrix, Vector
from router_state.errors import NonFiniteInput, RewardOutOfRange

MAX_DECAY_STEPS = 1000
RIDGE_FLOOR = 0.1
AT_ONCE = 32


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


def forget(arms: Arms, k: int, *, t: int, gamma: float, ridge: float) -> None:
    """Decay arm k by γ^(t − last_update); give the ridge back once less than a tenth of it is left.

    ParetoBandit Eq. 7–8, the exponent capped at 1,000 steps. O(1), and O(d³) once in ln(10)/−ln(γ) rewards.
    """
    steps = t - arms.last_update[k]
    arms.last_update[k] = t
    if gamma >= 1.0 or steps <= 0:
        return
    steps = min(steps, MAX_DECAY_STEPS)
    arms.forgotten[k] -= steps * math.log(gamma)
    decay = arms.decay[k] * gamma**steps
    if decay >= RIDGE_FLOOR:
        arms.decay[k] = decay
    else:
        restore_ridge(arms, k, decay=decay, ridge=ridge)


def restore_ridge(arms: Arms, k: int, *, decay: float, ridge: float) -> None:
    """Fold a decay into the statistics of arm k and top the ridge up to its full size, as if it had said reward 0 all along."""
    arms.flush(k)
    added = (1.0 - decay) * ridge
    inverse, theta = arms.A_hat_inv[k], arms.theta[k]
    A = symmetric_inverse(inverse)
    A *= decay
    A[np.diag_indices(arms.d)] += added
    inverse[:] = symmetric_inverse(A)
    theta -= inverse.dot(theta) * added
    arms.decay[k] = 1.0


def observe_reward(arms: Arms, k: int, x: Vector, *, reward: float) -> tuple[float, float]:
    """Add one reward to arm k: A += xxᵀ, b += reward·x, in O(d²).

    Li et al. 2010, Algorithm 1 (arXiv:1003.0146), by Sherman–Morrison: with u = A⁻¹x and s = 1 + xᵀu,
    A⁻¹ −= uuᵀ/s and θ += u·(reward − θᵀx)/s; both are one outer product. In undecayed statistics the observation weighs 1/decay.
    A⁻¹ stays exactly symmetric: only products vᵢ·vⱼ of one vector with itself are taken off.

    Args:
        x: context, shape (d,), last entry 1.0.
        reward: observed quality in [0, 1].

    Returns:
        The residual reward − θᵀx and the variance xᵀA⁻¹x, both from before.

    Raises:
        NonFiniteInput: `x` or `reward` holds a NaN or an infinity; nothing has changed.
    """
    d, decay, block, correction = arms.d, arms.decay[k], arms.block[k], arms.work.arm
    y, u = correction.y, correction.u
    block.dot(x, y)
    n = arms.pending[k]
    if n:
        V = arms.tails[k, :n]
        u -= V.dot(x).dot(V)
    xu = x.dot(u).item()
    residual = reward - y.item(d)
    if not math.isfinite(xu + residual):
        raise NonFiniteInput("a context or a reward is not finite")
    if xu < 0.0:
        repair(arms, k)
        u[:] = arms.A_hat_inv[k].dot(x)
        xu = x.dot(u).item()
    if d >= WIDE:
        theta = block[d]
        theta += u * (residual / (decay + xu))
        np.multiply(u, 1.0 / math.sqrt(decay + xu), arms.tails[k, n])
        arms.pending[k] = n + 1
        if n + 1 == TAILS:
            arms.flush(k)
        return residual, xu / decay
    y[d] = -residual
    y[d + 1] = 0.0
    correction.take_off(block, decay + xu)
    return residual, xu / decay


def observe_rewards(arms: Arms, k: int, contexts: Matrix, rewards: Vector) -> None:
    """Add m rewards to arm k at once, as `observe_reward` would one after the other; equal to it up to rounding.

    Args:
        contexts: shape (m, d), each with 1.0 last; of decided requests, so they are finite.
        rewards: shape (m,), each in [0, 1].
    """
    arms.flush(k)
    root = 1.0 / math.sqrt(arms.decay[k])
    Z, targets = contexts * root, rewards * root
    if arms.d < WIDE and len(Z) > arms.d // 2:
        _observe_many(arms.A_hat_inv[k], arms.theta[k], Z, targets)
    else:
        for first in range(0, len(Z), AT_ONCE):
            _observe_few(arms.block[k], Z[first : first + AT_ONCE], targets[first : first + AT_ONCE])


def _observe_many(A_inv: Matrix, theta: Vector, Z: Matrix, targets: Vector) -> None:
    """Add m rewards, (I + A⁻¹ZᵀZ)⁻¹A⁻¹, in O(d³ + md²)."""
    system = A_inv.dot(Z.T.dot(Z))
    system.ravel()[:: len(system) + 1] += 1.0
    inverse = np.linalg.solve(system, A_inv)
    np.add(inverse, inverse.T, A_inv)
    A_inv *= 0.5
    theta += A_inv.dot((targets - Z.dot(theta)).dot(Z))


def _observe_few(block: Matrix, Z: Matrix, targets: Vector) -> None:
    """Add m rewards by Woodbury, in O(m³ + md²): LLᵀ = I + ZA⁻¹Zᵀ, W = L⁻¹ZA⁻¹, A⁻¹ −= WᵀW, θ −= WᵀL⁻¹(Zθ − r)."""
    d = block.shape[1]
    rows = Z.dot(block.T)
    gram = Z.dot(rows[:, :d].T)
    gram.ravel()[:: len(Z) + 1] += 1.0
    rows[:, d] -= targets
    rows[:, d + 1] = 0.0
    rows = np.linalg.inv(np.linalg.cholesky(gram)).dot(rows)
    block -= rows.T.dot(rows)[:, :d]  # of a matrix with itself: exactly symmetric


def repair(arms: Arms, k: int) -> None:
    """Make A⁻¹ of arm k positive definite again after rounding has left it indefinite."""
    arms.flush(k)
    inverse = arms.A_hat_inv[k]
    values, vectors = np.linalg.eigh(inverse)
    values = np.maximum(values, values[-1] * 1e-12)
    full = (vectors * values) @ vectors.T
    inverse[:] = (full + full.T) / 2.0


def revise_reward(arms: Arms, k: int, x: Vector, *, difference: float, discount: float) -> None:
    """Move b by the difference between a revised reward and the one learned from, forgotten since by `discount`; A stays.

    Args:
        x: context, shape (d,).
        difference: new reward − old reward, in [−1, 1].
        discount: what is left of the original observation, in [0, 1].

    Raises:
        NonFiniteInput: a value is not finite; nothing has changed.
    """
    step = x * (difference * discount / arms.decay[k])
    if not math.isfinite(float(step.dot(x))):
        raise NonFiniteInput("a context or a reward is not finite")
    arms.flush(k)
    theta = arms.theta[k]
    theta += arms.A_hat_inv[k].dot(step)
