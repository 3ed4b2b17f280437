"""Start the costs of a model from a prior: a declared mean, or sums over earlier bills."""

from __future__ import annotations

import numpy as np

from router_state.config import CostPrior, Matrix, Price, Vector
from router_state.errors import UnusablePrior
from router_state.kernel import (
    BELIEVED,
    LEAST_CALIBRATION,
    LOGNORMAL_BILLS,
    MOST_EXPONENT,
    MOST_TAUGHT,
    CostModel,
    SharedPrior,
    bounded,
    exp_of,
    list_price_of,
    log_of,
    lognormal_mean,
)
from router_state.learning.offline_sums import require_counted, require_invertible, require_observed

MOST_BILLS = 200.0
"""Most bills that a prior counts for by default: prices and habits change."""


def checked(model: str, prior: CostPrior, *, price: Price, bills: SharedPrior) -> CostPrior:
    """Return a model's prior if the prior fits the router and the model's price.

    Args:
        bills: the shared prior of the arms' bills.

    Raises:
        UnusablePrior: the prior's dimension is not the router's, a number is not finite, A is not a
        sum of xxᵀ, the mean is below zero, or no call of the model can cost what the prior expects.
    """
    what = f"the cost prior of {model!r}"
    if not 0.0 <= prior.mean_usd < np.inf:
        raise UnusablePrior(f"{what} must have a mean cost that is finite, and not below zero")
    require_observed(what, prior.A, prior.b, d=bills.d)
    require_counted(what, bills_of(prior))
    least = np.linalg.eigvalsh(prior.A)[0]
    if least < -1e-6 * np.trace(prior.A):
        raise UnusablePrior(f"{what} must have as A a sum of xxᵀ over at least one bill")
    # A free model needs no prior of bills.
    if price.per_1k > 0.0:
        _require_payable(what, prior, list_price=list_price_of(price), bills=bills)
    return prior


def _require_payable(what: str, prior: CostPrior, *, list_price: float, bills: SharedPrior) -> None:
    """Check that the bills which a prior expects are possible at a list price.

    Raises:
        UnusablePrior: they are not possible.
    """
    A, b = sums_of(prior, list_price=list_price)
    A_R = A + np.diag(bills.ridges)
    require_invertible(what, A_R)
    count, means = float(A[-1, -1]), A[-1] / A[-1, -1]
    with np.errstate(all="ignore"):
        # bᵀ(A + R)⁻¹b is at most the sum of the squared logarithms of bills ÷ list price.
        size = float(np.linalg.norm(np.linalg.solve(np.linalg.cholesky(A_R), b))) / count**0.5
        w = np.linalg.solve(A_R, b)
        level, variance = float(b[-1]) / count, float(w @ (A / count - np.outer(means, means)) @ w)
    if not (size <= MOST_EXPONENT and abs(level) + variance / 2.0 <= MOST_EXPONENT):
        raise UnusablePrior(
            f"{what} expects bills whose logarithm is {level:.3g} above that of the list price on "
            f"average, {size:.3g} in root mean square and {abs(variance) ** 0.5:.3g} in deviation "
            f"between prompts; {MOST_EXPONENT:g} is the most that a call can be"
        )
    if not prior.mean_usd <= exp_of(MOST_EXPONENT) * list_price:
        raise UnusablePrior(
            f"{what} expects ${prior.mean_usd:.3g} a call, which is more than a price of "
            f"${list_price:.3g} per 1,000 tokens allows"
        )


def sums_of(prior: CostPrior, *, list_price: float) -> tuple[Matrix, Vector]:
    """Return Σ xxᵀ, shape (d, d), and Σ ln(bill ÷ list price)·x, shape (d,), scaled to the number
    of bills that the prior counts for.
    """
    # The bias entry is 1 in every context, so its sum of squares counts the bills.
    scale = bills_of(prior) / prior.A[-1, -1]
    # From logarithms of dollars to those of ratios: ln(usd/price) = ln(usd) − ln(price), summed
    # over x.
    b = prior.b - log_of(list_price) * prior.A[-1]
    return scale * prior.A, scale * b


def bills_of(prior: CostPrior) -> float:
    """Return how many bills a prior counts for."""
    return min(float(prior.A[-1, -1]), MOST_BILLS) if prior.n_eff is None else prior.n_eff


def start(
    model: CostModel, prior: CostPrior | None, mean_usd: float | None, *, tokens: float
) -> None:
    """Start a model's costs from earlier bills, which count like the model's own, or from a
    declared mean.
    """
    if model.free:
        return
    if prior is not None:
        A, b = sums_of(prior, list_price=model.list_price)
        believe(model, A, b, mean_usd=prior.mean_usd, bills=bills_of(prior), tokens=tokens)
    elif mean_usd is not None:
        at = model.prior.center
        level = bounded(log_of(mean_usd / model.list_price))
        A, b = BELIEVED * np.outer(at, at), BELIEVED * level * at
        believe(model, A, b, mean_usd=mean_usd, bills=BELIEVED, tokens=tokens)


def believe(
    model: CostModel, A: Matrix, b: Vector, *, mean_usd: float, bills: float, tokens: float
) -> None:
    """Start a model from earlier bills.

    Args:
        A, b: Σ xxᵀ and Σ ln(bill ÷ list price)·x over them, shape (d, d) and (d,).
        mean_usd: mean of these bills, which counts for at least `BELIEVED` bills; bills: the
            number of bills that A and b count for.
        tokens: input tokens of a bill that are priced apart.
    """
    prior, left = model.prior, 0.0
    model.bills, model.ratio = max(bills, BELIEVED), mean_usd / model.list_price
    if tokens:
        left = model.log_left(tokens)
        b = b + left * A[-1]
    ridges = prior.ridges
    model.regression.start(A + np.diag(ridges), b + ridges * prior.mean)
    theta = model.regression.theta
    # The last feature is 1: the last row of A is Σx, and its corner counts the bills.
    means = A[-1] / A[-1, -1]
    spread = float(theta @ (A / A[-1, -1] - np.outer(means, means)) @ theta)
    # The mean of a lognormal is above the exponential of its logarithm's mean, by half the
    # variance between prompts.
    half = 0.5 * (max(spread, 0.0) + model.level)
    # The calibration is chosen so that the shrunk `factor` gives the declared mean.
    factor = model.ratio * exp_of(left - bounded(float(theta @ means) + half))
    shrunk = (factor - lognormal_mean(prior.noise)) * LOGNORMAL_BILLS / model.bills
    model.calibration = min(max(factor + shrunk, LEAST_CALIBRATION), MOST_TAUGHT)
