"""Start an arm from its prior of rewards."""

from __future__ import annotations

import numpy as np

from router_state.arms import Arms
from router_state.config import Matrix, Prior, Vector
from router_state.errors import InvalidConfig, UnusablePrior
from router_state.kernel import EPSILON
from router_state.learning.guess import REWARDS
from router_state.learning.offline_sums import require_counted, require_observed

MOST_PREDICTED = 10.0
"""Largest root mean square of a prior's predictions on its own contexts. Rewards of 0 to 1 give at
most 1; the margin is for statistics that were scaled by hand.
"""
MOST_COEFFICIENT = 1e6
"""Largest norm of a prior's coefficients, which bounds its predictions for a context of norm 1."""


def cold(d: int, *, ridge: float) -> tuple[Matrix, Vector]:
    """Return the statistics of an arm without a prior: A = ridge·I, b = 0."""
    return ridge * np.eye(d), np.zeros(d)


def from_offline(
    what: str, A: Matrix, b: Vector, *, n_eff: float, ridge: float
) -> tuple[Matrix, Vector]:
    """Scale offline statistics to `n_eff` observations and keep their mean: A = sA + ridge·I, b =
    sb + ridge·θ.

    ParetoBandit Eq. 10–12; s = n_eff ÷ A[d, d], the bias entry that counts the offline
    observations.

    Raises:
        UnusablePrior: A is not positive definite, or the predictions can't be rewards.
    """
    A = (A + A.T) / 2.0
    theta = coefficients_of(what, A, b)
    # The bias is 1 in every context, so the last entry of A counts the observations behind it.
    scale = n_eff / float(A[-1, -1])
    # The ridge pulls towards the prior's own mean: without the term in b it would pull towards 0.
    return scale * A + ridge * np.eye(len(b)), scale * b + ridge * theta


def coefficients_of(what: str, A: Matrix, b: Vector) -> Vector:
    """Return A⁻¹b, shape (d,), if its predictions can be rewards.

    Raises:
        UnusablePrior: A is not positive definite, or the predictions are out of all proportion.
    """
    count = float(A[-1, -1])
    values = np.linalg.eigvalsh(A / count)
    if not values[0] > EPSILON * values[-1]:
        raise UnusablePrior(f"{what} must have a positive definite A, by more than rounding")
    with np.errstate(all="ignore"):
        theta: Vector = np.asarray(np.linalg.solve(A, b), np.float64)
        # bᵀA⁻¹b is the sum of squared predictions on the prior's own contexts.
        squares, norm = float(b @ theta) / count, float(np.linalg.norm(theta))
    if not (squares <= MOST_PREDICTED**2 and norm <= MOST_COEFFICIENT):
        raise UnusablePrior(
            f"{what} predicts rewards of {abs(squares) ** 0.5:.3g} on its own contexts, and of up "
            f"to {norm:.3g} for a context of norm 1; rewards are between 0 and 1"
        )
    return theta


def from_guess(
    d: int, expected_reward: float, *, n_eff: float, ridge: float
) -> tuple[Matrix, Vector]:
    """Return `n_eff` isotropic pseudo-observations of a model that earns `expected_reward` whatever
    the prompt (paper, 3.4)."""
    b = np.zeros(d)
    b[-1] = expected_reward * (n_eff + ridge)
    return (n_eff + ridge) * np.eye(d), b


def statistics(
    model: str, prior: Prior | None, arms: Arms, *, n_eff: float, ridge: float, unseen: float
) -> tuple[Matrix, Vector]:
    """Return A (d, d), ridge included, and b (d,) with which a model's arm starts under this
    prior.

    Args:
        n_eff: observations that a prior counts for unless it names a number; of another model, as
            many as that model has at most.
        unseen: part of the bias entry of a cold arm's A, which no observation made.

    Raises:
        InvalidConfig: the prior names a model that the portfolio does not have.
        UnusablePrior: the prior has another dimension, or can't have come from rewards.
    """
    d, what = arms.d, f"the prior of {model!r}"
    if prior is None:
        return cold(d, ridge=ridge)
    named, n_eff = prior.n_eff is not None, n_eff if prior.n_eff is None else prior.n_eff
    require_counted(what, n_eff)
    if prior.like is not None:
        # `like` refers to the portfolio before this declaration, see `redeclaring.declare`.
        known = arms.find(prior.like)
        if known is None:
            raise InvalidConfig(f"{what} is like {prior.like!r}, which is not in the portfolio")
        A = known.rewards.A()
        # What nobody has seen makes nobody sure: a copy of a cold arm is cold.
        n_eff = n_eff if named else min(n_eff, float(A[-1, -1]) - unseen)
        if n_eff <= 0.0:
            return cold(d, ridge=ridge)
        return from_offline(what, A, A @ known.rewards.theta, n_eff=n_eff, ridge=ridge)
    if prior.A is not None and prior.b is not None:
        require_observed(what, prior.A, prior.b, d=d)
        return from_offline(what, prior.A, prior.b, n_eff=n_eff, ridge=ridge)
    guess = REWARDS.mean if prior.expected_reward is None else prior.expected_reward
    return from_guess(d, guess, n_eff=n_eff, ridge=ridge)
