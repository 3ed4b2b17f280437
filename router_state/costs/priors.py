"""What a model's costs are believed to be before the first bill."""

from __future__ import annotations

import math

import numpy as np

from router_state.config import CostPrior
from router_state.costs.cost_model import CostModel
from router_state.errors import InvalidConfig

MOST_BILLS = 200.0
"""Most bills that a prior counts for unless it says so: prices and habits change."""


def checked(prior: CostPrior, *, d: int) -> CostPrior:
    """Return a prior that fits a router.

    Raises:
        InvalidConfig: another dimension, not finite, not a sum of xxᵀ, or a mean cost below zero.
    """
    if prior.A.shape != (d, d) or prior.b.shape != (d,):
        raise InvalidConfig(
            f"a cost prior has shape {prior.A.shape} and {prior.b.shape}; the router has {d} "
            "dimensions"
        )
    if not (
        np.isfinite(prior.A).all() and np.isfinite(prior.b).all() and 0.0 <= prior.mean_usd < np.inf
    ):
        raise InvalidConfig("a cost prior must be finite, and its mean cost not below zero")
    if not np.allclose(prior.A, prior.A.T, rtol=1e-6, atol=1e-9):
        raise InvalidConfig("a cost prior's A must be symmetric")
    least = np.linalg.eigvalsh(prior.A)[0]
    if prior.A[-1, -1] <= 0.0 or least < -1e-6 * np.trace(prior.A):
        raise InvalidConfig("a cost prior's A must be a sum of xxᵀ over at least one bill")
    return prior


def bills_of(prior: CostPrior) -> float:
    """Return how many bills a prior counts for."""
    return min(float(prior.A[-1, -1]), MOST_BILLS) if prior.n_eff is None else prior.n_eff


def start(model: CostModel, prior: CostPrior, *, tokens: float = 0.0) -> None:
    """Start a model's costs from earlier bills: they are as good as bills of its own, and count for
    as many as the prior says. So many input tokens of each are counted apart."""
    if model.free:
        return
    bills = bills_of(prior)
    # The bias entry is 1 in every context, so its sum of squares counts the bills.
    scale = bills / prior.A[-1, -1]
    # From logarithms of dollars to those of ratios: ln(usd/price) = ln(usd) − ln(price), summed
    # over x.
    b = prior.b - math.log(model.list_price) * prior.A[-1]
    model.believe(scale * prior.A, scale * b, mean_usd=prior.mean_usd, bills=bills, tokens=tokens)
