"""Compute for every arm what a choice needs."""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING

from router_state.kernel.cost_model import CostModel
from router_state.kernel.elementary import power
from router_state.kernel.linear import EPSILON
from router_state.kernel.propensity import wins
from router_state.kernel.regression import MAX_DECAY_STEPS, Regression, require_length, taken
from router_state.kernel.shared_prior import SharedPrior
from router_state.kernel.words import Floats, Index, Known, Real, known

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


def chance_of(
    k: Index,
    means: Sequence[float],
    penalties: Sequence[float],
    spreads: Sequence[float],
    excluded: Sequence[str | None],
) -> float:
    """Return the probability that the k-th arm has the best score, over posterior samples.

    Args:
        spreads: variances of the draws.
    """
    K: Index = len(means)
    if not (len(penalties) == len(spreads) == len(excluded) == K):
        raise ValueError(f"an entry for each of {K} arms is wanted")
    expected: list[float] = []
    open_spreads: list[float] = []
    own: Index = 0
    for j in range(K):
        if j != k and excluded[j] is not None:
            continue
        if j == k:
            own = len(expected)
        mean: Real = means[j]
        penalty: Real = penalties[j]
        expected.append(mean - penalty)
        open_spreads.append(spreads[j])
    return wins(own, expected, open_spreads)


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
    mean: Known = known(rewards.mean)
    total: Real = 0.0
    for i in range(require_length(mean, d)):
        total += space[i] * mean[i]
    found: list[float] = [total]
    arm: Regression
    model: CostModel
    bills: Regression
    for k in range(len(models)):
        arm, model = regressions[k], models[k]
        bills = model.regression
        spread: Real = variances[k]
        level: Real = bills.values[bills.at - 1] / bills.decay
        found.append(rewards.noise * spread / arm.decay)
        found.append(noise_of_bills * (1.0 + level))
        found.append(model.paid)
    return found


def within(
    models: Sequence[CostModel], costs: Sequence[float], *, credit: Real, most: Real
) -> bool:
    """Tell whether a call of any model costs at most `credit` dollars, and calls in flight with one
    more at most so many beyond their expectations, in nine of ten cases."""
    total: Real = 0.0
    next_one: Real = 0.0
    one: CostModel
    for k in range(len(models)):
        one = models[k]
        cost: Real = costs[k]
        if cost > credit:
            return False
        beyond: Real = one.more(cost)
        total += one.awaited * one.awaited * beyond * beyond
        next_one = max(next_one, (2 * one.awaited + 1) * beyond * beyond)
    return total + next_one <= most * most
