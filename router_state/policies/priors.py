"""What an arm knows before its first reward."""

from __future__ import annotations

import numpy as np

from router_state.arms import Arms
from router_state.config import Knobs, Matrix, Prior, Vector
from router_state.errors import InvalidConfig

DEFAULT_GUESS = 0.5
"""Mean reward of a model of which a prior says nothing."""


def cold(d: int, *, ridge: float) -> tuple[Matrix, Vector]:
    """Return the statistics of an arm of which nothing is known: A = ridge·I, b = 0."""
    return ridge * np.eye(d), np.zeros(d)


def from_offline(A: Matrix, b: Vector, *, n_eff: float, ridge: float) -> tuple[Matrix, Vector]:
    """Scale offline statistics to `n_eff` observations and keep their mean: A = sA + ridge·I, b =
    sb + ridge·θ.

    ParetoBandit Eq. 10–12; s = n_eff ÷ A[d, d], the bias entry that counts the offline
    observations.

    Raises:
        InvalidConfig: not symmetric, not positive definite or not finite.
    """
    if not (np.isfinite(A).all() and np.isfinite(b).all()):
        raise InvalidConfig("a prior must be finite")
    if not np.allclose(A, A.T, rtol=1e-6, atol=1e-9):
        raise InvalidConfig("a prior's A must be symmetric")
    A = (A + A.T) / 2.0
    try:
        np.linalg.cholesky(A)
    except np.linalg.LinAlgError:
        raise InvalidConfig("a prior's A must be positive definite") from None
    # The bias is 1 in every context, so the last entry of A counts the observations behind it.
    scale = n_eff / float(A[-1, -1])
    theta = np.linalg.solve(A, b)
    # The ridge pulls towards the prior's own mean: scaled alone it would pull towards nothing.
    return scale * A + ridge * np.eye(len(b)), scale * b + ridge * theta


def from_guess(
    d: int, expected_reward: float, *, n_eff: float, ridge: float
) -> tuple[Matrix, Vector]:
    """Return `n_eff` isotropic pseudo-observations of a model that earns `expected_reward` whatever
    the prompt (paper, 3.4)."""
    b = np.zeros(d)
    b[-1] = expected_reward * (n_eff + ridge)
    return (n_eff + ridge) * np.eye(d), b


def typical(arms: Arms) -> Vector:
    """Return the mean coefficients of the arms that take traffic and have been met, shape (d,);
    zeros if there are none."""
    met = [arm.belief.theta for arm in arms.taking if arm.pulls_left == 0]
    mean: Vector = np.mean(met, axis=0) if met else np.zeros(arms.d)
    return mean


def statistics_for(prior: Prior | None, *, arms: Arms, knobs: Knobs) -> tuple[Matrix, Vector]:
    """Return A (d, d) and b (d,) with which an arm starts under this prior.

    Raises:
        InvalidConfig: the prior has another dimension, or names a model that the portfolio does not
            have.
    """
    if knobs.shared_learning:
        A, b = _offered(prior, arms=arms, knobs=knobs)
        ridges = arms.rewards.ridges
        return A + np.diag(ridges), b + ridges * arms.rewards.mean
    return _offered(prior, arms=arms, knobs=knobs)


def _offered(prior: Prior | None, *, arms: Arms, knobs: Knobs) -> tuple[Matrix, Vector]:
    """Return A (d, d) and b (d,) of a prior, the ridge in it unless the pool has one."""
    d, ridge = arms.d, 0.0 if knobs.shared_learning else knobs.ridge
    if prior is None:
        A, b = cold(d, ridge=ridge)
        return (A, b + ridge * typical(arms)) if knobs.paced_onboarding else (A, b)
    n_eff = knobs.n_eff if prior.n_eff is None else prior.n_eff
    if prior.like is not None:
        # By what is in the portfolio before this declaration: see `portfolio.declare`.
        known = arms.find(prior.like)
        if known is None:
            raise InvalidConfig(f"a prior is like {prior.like!r}, which is not in the portfolio")
        A = known.belief.A()
        return from_offline(A, A @ known.belief.theta, n_eff=n_eff, ridge=ridge)
    if prior.A is not None and prior.b is not None:
        if prior.A.shape != (d, d) or prior.b.shape != (d,):
            raise InvalidConfig(
                f"a prior has shape {prior.A.shape} and {prior.b.shape}; the router has {d} "
                "dimensions"
            )
        return from_offline(prior.A, prior.b, n_eff=n_eff, ridge=ridge)
    guess = DEFAULT_GUESS if prior.expected_reward is None else prior.expected_reward
    return from_guess(d, guess, n_eff=n_eff, ridge=ridge)
