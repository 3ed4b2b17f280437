"""What an arm knows before its first reward."""

from __future__ import annotations

import numpy as np

from router_state.arms import Arms
from router_state.config import Matrix, Prior, Vector
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


def statistics(
    prior: Prior | None, arms: Arms, *, n_eff: float, ridge: float
) -> tuple[Matrix, Vector]:
    """Return A (d, d) and b (d,) with which an arm starts under this prior, a ridge in it.

    Args:
        n_eff: observations that a prior counts for unless it says so.

    Raises:
        InvalidConfig: the prior has another dimension, or names a model that the portfolio does not
            have.
    """
    d = arms.d
    if prior is None:
        return cold(d, ridge=ridge)
    n_eff = n_eff if prior.n_eff is None else prior.n_eff
    if prior.like is not None:
        # By what is in the portfolio before this declaration: see `portfolio.declare`.
        known = arms.find(prior.like)
        if known is None:
            raise InvalidConfig(f"a prior is like {prior.like!r}, which is not in the portfolio")
        A = known.rewards.A()
        return from_offline(A, A @ known.rewards.theta, n_eff=n_eff, ridge=ridge)
    if prior.A is not None and prior.b is not None:
        if prior.A.shape != (d, d) or prior.b.shape != (d,):
            raise InvalidConfig(
                f"a prior has shape {prior.A.shape} and {prior.b.shape}; the router has {d} "
                "dimensions"
            )
        return from_offline(prior.A, prior.b, n_eff=n_eff, ridge=ridge)
    guess = DEFAULT_GUESS if prior.expected_reward is None else prior.expected_reward
    return from_guess(d, guess, n_eff=n_eff, ridge=ridge)
