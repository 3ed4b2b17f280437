"""One reward into one arm: forgetting, Sherman–Morrison, and the ridge that must not fade away."""

from __future__ import annotations

import math

import numpy as np

from router_state.arms import Arms, symmetric_inverse
from router_state.config import Vector
from router_state.errors import NonFiniteInput

MAX_DECAY_STEPS = 1000
RIDGE_FLOOR = 0.1


def forget(arms: Arms, k: int, *, t: int, gamma: float, ridge: float) -> None:
    """Decay arm k by γ^(t − last_update); give the ridge back once less than a tenth of it is left.

    ParetoBandit Eq. 7–8, the exponent capped at 1,000 steps. O(1), and O(d³) once in ln(10)/−ln(γ) rewards.
    """
    steps = min(t - arms.last_update[k], MAX_DECAY_STEPS)
    arms.last_update[k] = t
    if gamma >= 1.0 or steps <= 0:
        return
    arms.forgotten[k] -= steps * math.log(gamma)
    decay = arms.decay[k] * gamma**steps
    if decay >= RIDGE_FLOOR:
        arms.decay[k] = decay
        return
    restore_ridge(arms, k, decay=decay, ridge=ridge)


def restore_ridge(arms: Arms, k: int, *, decay: float, ridge: float) -> None:
    """Fold the decay into the statistics of arm k and top the ridge up to its full size."""
    A = arms.A_hat[k]
    A *= decay
    A[np.diag_indices(arms.d)] += (1.0 - decay) * ridge
    arms.b_hat[k] *= decay
    arms.decay[k] = 1.0
    arms.A_hat_inv[k][:] = symmetric_inverse(A)
    np.dot(arms.A_hat_inv[k], arms.b_hat[k], out=arms.theta[k])


def observe_reward(arms: Arms, k: int, x: Vector, *, reward: float) -> None:
    """Add one reward to arm k: A += xxᵀ, b += reward·x, in O(d²).

    Li et al. 2010, Algorithm 1 (arXiv:1003.0146); A⁻¹ by Sherman–Morrison. In undecayed statistics the observation weighs
    1/decay. All three stay exactly symmetric: only products vᵢ·vⱼ of one vector with itself are added.

    Args:
        x: context, shape (d,), last entry 1.0.
        reward: observed quality in [0, 1].

    Raises:
        NonFiniteInput: `x` or `reward` holds a NaN or an infinity; nothing has changed.
    """
    decay, A_hat_inv = arms.decay[k], arms.A_hat_inv[k]
    u = A_hat_inv.dot(x)
    xu = float(x.dot(u))
    if not (math.isfinite(xu) and math.isfinite(reward)):
        raise NonFiniteInput("a context or a reward is not finite")
    A_hat = arms.A_hat[k]
    column = (x * (1.0 / math.sqrt(decay)))[:, None]
    A_hat += column.dot(column.T)
    arms.b_hat[k] += x * (reward / decay)
    if xu > -RIDGE_FLOOR * decay:
        column = (u * (1.0 / math.sqrt(decay + xu)))[:, None]
        A_hat_inv -= column.dot(column.T)
    else:  # rounding has left A⁻¹ indefinite
        A_hat_inv[:] = symmetric_inverse(A_hat)
    np.dot(A_hat_inv, arms.b_hat[k], out=arms.theta[k])


def revise_reward(arms: Arms, k: int, x: Vector, *, difference: float, discount: float) -> None:
    """Move b by the difference between a revised reward and the one learned from, forgotten since by `discount`; A stays.

    Args:
        x: context, shape (d,).
        difference: new reward − old reward, in [−1, 1].
        discount: what is left of the original observation, in [0, 1].

    Raises:
        NonFiniteInput: a value is not finite; nothing has changed.
    """
    weight = difference * discount / arms.decay[k]
    if not (math.isfinite(weight) and math.isfinite(float(x.dot(x)))):
        raise NonFiniteInput("a context or a reward is not finite")
    arms.b_hat[k] += x * weight
    np.dot(arms.A_hat_inv[k], arms.b_hat[k], out=arms.theta[k])
