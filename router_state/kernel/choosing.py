"""Choose an arm by score, and compute the probability of the choice."""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING

from router_state.kernel.cost_model import CostModel
from router_state.kernel.costs import require_each
from router_state.kernel.elementary import power
from router_state.kernel.gaussian import taken
from router_state.kernel.linear import EPSILON, dot, room
from router_state.kernel.projection import best
from router_state.kernel.propensity import largest
from router_state.kernel.regression import MAX_DECAY_STEPS, Regression
from router_state.kernel.shared_prior import SharedPrior
from router_state.kernel.words import Floats, Index, Real, known

if TYPE_CHECKING:
    from collections.abc import Sequence

    from router_state.config import Vector


def optimistic(
    means: Sequence[float],
    variances: Sequence[float],
    costs: Sequence[float],
    *,
    rewards: Sequence[Regression],
    played: Sequence[int],
    t: Index,
    alpha: Real,
    gamma: Real,
    least: Real,
) -> list[float]:
    """Return mean, bonus α·√(v ÷ max(γ^dt, `least`)) and cost of each arm, one behind the other
    (ParetoBandit Eq. 2 and 9); dt counts from its last reward or from when it was last `played`."""
    K: Index = len(rewards)
    if not len(means) == len(variances) == len(costs) == len(played) == K:
        raise ValueError(f"an entry for each of {K} arms is wanted")
    terms: list[float] = []
    one: Regression
    for k in range(K):
        one = rewards[k]
        v: Real = variances[k]
        v /= one.decay
        last: Index = played[k]
        steps: Index = t - max(one.last_update, last)
        if steps > 0 and gamma < 1.0:
            v /= max(power(gamma, min(steps, MAX_DECAY_STEPS)), least)
        terms.append(means[k])
        terms.append(alpha * sqrt(max(v, EPSILON)))
        terms.append(costs[k])
    return terms


def choose(
    terms: list[float],
    penalties: list[float],
    spreads: list[float],
    excluded: list[str | None],
) -> tuple[int, float]:
    """Return the eligible arm with the best score, the cheaper one of a tie, and the probability of
    that choice over posterior samples; −1 and 0 where costs are equal as well.

    Args:
        terms, penalties, spreads: see `PosteriorSample.score`.

    Raises:
        NonFiniteInput: a score is not finite.
    """
    tied: list[int] = best(terms, penalties, excluded)
    k: Index = tied[0]
    if len(tied) > 1:
        # Equal scores at different costs occur at λ_t = 0; then the cheaper arm is chosen.
        lowest = min([terms[3 * j + 2] for j in tied])
        tied = [j for j in tied if terms[3 * j + 2] == lowest]
        if len(tied) > 1:
            return -1, 0.0
        k = tied[0]
    return k, chance_of(k, terms, penalties, spreads, excluded)


def chance_of(
    k: Index,
    terms: list[float],
    penalties: list[float],
    spreads: list[float],
    excluded: list[str | None],
) -> float:
    """Return the probability that the k-th arm has the best score, over posterior samples.

    Args:
        terms, penalties, spreads: see `PosteriorSample.score`.
    """
    K: Index = len(penalties)
    if not (len(terms) == 3 * K and len(spreads) == len(excluded) == K and 0 <= k < K):
        raise ValueError(f"an entry for each of {K} arms is wanted")
    scores: Floats = room(4 * K)
    own, count = 0, 0
    for j in range(K):
        if j == k or excluded[j] is None:
            if j == k:
                own = count
            mean: Real = terms[3 * j]
            penalty: Real = penalties[j]
            scores[2 * count] = mean - penalty
            scores[2 * count + 1] = spreads[j]
            count += 1
    return largest(own, scores, count)


def doubts(
    x: Vector,
    rewards: SharedPrior,
    noise_of_bills: Real,
    variances: Sequence[float],
    models: Sequence[CostModel],
    regressions: Sequence[Regression],
) -> list[float]:
    """Return what is shared of a reward, then of each arm the variance of its expected reward, that
    of a bill's logarithm, and the probability that a call costs anything."""
    d: Index = rewards.d
    space: Floats = taken(x, d)
    mean: Floats = known(rewards.mean, d)
    found: list[float] = [dot(space, 0, mean, 0, d)]
    arm: Regression
    model: CostModel
    bills: Regression
    if len(regressions) != len(models):
        raise ValueError(f"{len(regressions)} regressions are not of {len(models)} models")
    for k in range(require_each(models, variances)):
        arm, model = regressions[k], models[k]
        bills = model.regression
        spread: Real = variances[k]
        level: Real = bills.values[bills.at - 1] / bills.decay
        found.append(rewards.noise * spread / arm.decay)
        found.append(noise_of_bills * (1.0 + level))
        found.append(model.paid)
    return found
