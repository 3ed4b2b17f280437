"""Score every arm for one context, or for many at once."""

from __future__ import annotations

import math

from router_state.arms import Arms
from router_state.config import Matrix, Vector
from router_state.errors import NonFiniteInput, WrongContext

MIN_VARIANCE = 1e-12


def check_context(x: Vector, *, d: int) -> None:
    """Accept a context of shape (d,) whose last entry is the bias 1.0.

    Raises:
        WrongContext: another shape or bias.
        NonFiniteInput: a NaN or an infinity.
    """
    if x.shape != (d,):
        raise WrongContext(f"the context has {x.shape[0] if x.ndim == 1 else x.shape} entries; the router has {d} dimensions")
    if x.item(-1) != 1.0:
        raise WrongContext("the last entry of a context is the bias, 1.0")
    if not math.isfinite(x.dot(x)):
        raise NonFiniteInput("the context holds a NaN or an infinity, or overflows")


def project(arms: Arms, x: Vector) -> tuple[list[float], list[float], list[float]]:
    """Return per arm the mean θᵀx, the undecayed variance xᵀÂ⁻¹x, and the cost ratio wᵀx, from one product with the stack."""
    rows = arms.flat.dot(x).reshape(-1, arms.d + 2)
    variance: list[float] = rows[:, : arms.d].dot(x).tolist()
    mean: list[float] = rows[:, arms.d].tolist()
    ratio: list[float] = rows[:, arms.d + 1].tolist()
    return mean, variance, ratio


def project_many(arms: Arms, contexts: Matrix) -> list[tuple[list[float], list[float], list[float]]]:
    """Return `project` for each row of contexts, shape (n, d), from one matrix product."""
    n, d = contexts.shape
    rows = contexts.dot(arms.flat.T).reshape(n, -1, d + 2)
    variance = (rows[:, :, :d] @ contexts[:, :, None])[:, :, 0].tolist()
    return list(zip(rows[:, :, d].tolist(), variance, rows[:, :, d + 1].tolist(), strict=True))


def bonuses(arms: Arms, variance: list[float], *, t: int, alpha: float, gamma: float, v_max: float) -> list[float]:
    """Return per arm α·√(v ÷ max(γ^dt, 1/V_max)): idle arms become uncertain again (ParetoBandit Eq. 2 and 9).

    dt counts from the arm's last reward or last choice, so that an arm that awaits its rewards is not stale.
    """
    found = []
    for v, decay, updated, played in zip(variance, arms.decay, arms.last_update, arms.last_played, strict=True):
        v /= decay
        steps = t - (updated if updated > played else played)
        if steps > 0 and gamma < 1.0:
            v /= max(gamma ** (steps if steps < 1000 else 1000), 1.0 / v_max)
        found.append(alpha * math.sqrt(v if v > MIN_VARIANCE else MIN_VARIANCE))
    return found
