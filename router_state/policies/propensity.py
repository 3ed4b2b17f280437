"""The probability with which a model was chosen, for whoever evaluates other policies later."""

from __future__ import annotations

from collections.abc import Mapping

from router_state.arms import Arms
from router_state.kernel import Projection, chance_of, wins
from router_state.pacing.window import PRICE_SPREAD
from router_state.record import Candidates

PRICE_VARIANCE = PRICE_SPREAD**2 / 3.0
"""Variance of a request's own price of a dollar, in squares of λ_t."""


def best(arms: Arms, seen: Projection, candidates: Candidates, k: int) -> float:
    """Return the probability that the k-th arm has the best score, over posterior samples and
    prices of a dollar; scores are taken to be normal and independent."""
    return chance_of(
        k,
        seen.means,
        seen.variances,
        candidates.penalty,
        candidates.excluded,
        rewards=arms.regressions,
        sample=arms.sample,
        noise=arms.rewards.noise,
        price_variance=PRICE_VARIANCE,
    )


def cheapest(log_costs: Mapping[int, tuple[float, float]], k: int) -> float:
    """Return the probability that the k-th arm is cheapest by a draw of the logarithms of costs,
    given with expectation and variance by arm."""
    logs, variances = zip(*log_costs.values(), strict=True)
    return wins(list(log_costs).index(k), [-log for log in logs], list(variances))
