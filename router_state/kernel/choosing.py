"""Score arms, choose one, and compute the probability of the choice."""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING

from router_state.kernel.cost_model import CostModel
from router_state.kernel.elementary import power
from router_state.kernel.linear import EPSILON, dot, room
from router_state.kernel.projection import Projection, best
from router_state.kernel.propensity import largest
from router_state.kernel.randomness import Chance
from router_state.kernel.regression import MAX_DECAY_STEPS, Regression
from router_state.kernel.sample import PosteriorSample
from router_state.kernel.shared_prior import SharedPrior
from router_state.kernel.words import Floats, Index, Real, known

if TYPE_CHECKING:
    from collections.abc import Sequence

    from router_state.arm import Arm
    from router_state.config import Vector


def optimistic(
    arms: Sequence[Arm],
    seen: Projection,
    costs: Sequence[float],
    *,
    per_log_price: Real,
    t: Index,
    alpha: Real,
    gamma: Real,
    least: Real,
) -> tuple[list[float], list[float]]:
    """Return mean, bonus α·√(v ÷ max(γ^dt, `least`)) and cost of each arm, one behind the other,
    and the penalties of their list prices (ParetoBandit Eq. 2 and 9); dt counts from an arm's last
    reward or from when it was last played."""
    K: Index = len(arms)
    means, variances = seen.means, seen.variances
    if not len(means) == len(variances) == len(costs) == K:
        raise ValueError(f"an entry for each of {K} arms is wanted")
    terms: list[float] = []
    penalties: list[float] = []
    one: Regression
    for k in range(K):
        arm = arms[k]
        one = arm.rewards
        v: Real = variances[k]
        v /= one.decay
        last: Index = arm.last_played
        steps: Index = t - max(one.last_update, last)
        if steps > 0 and gamma < 1.0:
            v /= max(power(gamma, min(steps, MAX_DECAY_STEPS)), least)
        terms.append(means[k])
        terms.append(alpha * sqrt(max(v, EPSILON)))
        terms.append(costs[k])
        price: Real = arm.log_price
        penalties.append(per_log_price * price)
    return terms, penalties


def draw(
    sample: PosteriorSample,
    x: Vector,
    seen: Projection,
    costs: Sequence[float],
    *,
    per_dollar: Real,
    regressions: Sequence[Regression],
    rewards: SharedPrior,
    models: Sequence[CostModel],
    bills: SharedPrior,
    chance: Chance,
) -> tuple[list[float], list[float], list[float], list[float]]:
    """Draw for a decision. Return mean, draw and cost of each arm in one list; the penalties of
    their costs; the variances of the draws; and doubts.

    These are what is shared of a reward, then of each arm the variance of its expected reward,
    that of a bill's logarithm, and the probability that a call costs anything.

    Args:
        costs: in dollars.
        rewards, bills: what the regressions of rewards, and of the models' bills, share.
    """
    d, K = rewards.d, sample.K
    means, variances = seen.means, seen.variances
    if not len(means) == len(variances) == len(costs) == len(regressions) == len(models) == K:
        raise ValueError(f"an entry for each of {K} arms is wanted")
    terms: list[float] = []
    penalties: list[float] = []
    spreads: list[float] = []
    unsure: list[float] = [dot(known(x, d), 0, known(rewards.mean, d), 0, d)]
    arm: Regression
    model: CostModel
    space: Floats = room(K)
    chance.normals(space, 0, K)
    for k in range(K):
        arm, model = regressions[k], models[k]
        own: Regression = model.regression
        cost: Real = costs[k]
        variance: Real = variances[k]
        spread: Real = sample.spread(k, variance, rewards.noise, arm.decay)
        terms.append(means[k])
        terms.append(sqrt(spread) * space[k])
        terms.append(cost)
        penalties.append(per_dollar * cost)
        spreads.append(spread)
        unsure.append(rewards.noise * variance / arm.decay)
        unsure.append(bills.noise * (1.0 + own.values[own.at - 1] / own.decay))
        unsure.append(model.paid)
    return terms, penalties, spreads, unsure


def choose(
    terms: list[float],
    penalties: list[float],
    spreads: list[float],
    excluded: list[str | None],
) -> tuple[int, float]:
    """Return the eligible arm with the best score, the cheaper one of a tie, and the probability of
    that choice over posterior samples; −1 and 0 where costs are equal as well.

    Args:
        terms, penalties, spreads: see `draw`.

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
        terms, penalties, spreads: see `draw`.
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
