"""Explore beyond the posterior sample: onboarding pulls and probes of suspects. If no price of a
dollar meets the budget, also probe models that may have become cheaper unseen.

All of these follow inverse-gap weighting (Abe and Long 1999): beside the best arm, another one is
drawn with probability 1/(2 + gap ÷ loss). So the cost of trying is bounded per request, and dear
arms are drawn rarely.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from router_state.arms import Arms
from router_state.kernel import LEVEL, Candidates, Chance, log_of, wins
from router_state.newcomers import LOSS
from router_state.router import RouterState

Chosen = tuple[int, str, float]
"""The chosen arm, the reason, and the propensity."""


class Option(NamedTuple):
    """An arm that may be tried, and its gap to the best arm: in reward, see `options`, or in
    budgets, see `cheaper`.
    """

    k: int
    gap: float
    reason: str = "probe"


class Tried(NamedTuple):
    """The drawn arm (−1: none), the reason, the probability of each arm, and that of none."""

    k: int
    reason: str
    chances: dict[int, float]
    passed: float


def draw(options: Sequence[Option], chance: Chance) -> Tried:
    """Draw one of the options, each with probability 1/(2 + gap ÷ loss), or none."""
    drawn, why = -1, "ucb"
    for (k, _, reason), share in zip(options, shares(options), strict=True):
        if drawn < 0 and chance.random() < share:
            drawn, why = k, reason
    return Tried(drawn, why, *chances_of(options))


def shares(options: Sequence[Option]) -> list[float]:
    """Return the probability with which each option is drawn if none before it was."""
    loss = LOSS / max(len(options), 1)
    return [loss / (2.0 * loss + max(gap, 0.0)) for _, gap, _ in options]


def chances_of(options: Sequence[Option]) -> tuple[dict[int, float], float]:
    """Return the probability of each option's arm, and that of none."""
    chances, passed = {}, 1.0
    for (k, _, _), share in zip(options, shares(options), strict=True):
        chances[k] = passed * share
        passed *= 1.0 - share
    return chances, passed


def options(
    arms: Arms, seen: Candidates, eligible: list[int], allowance_usd: float
) -> list[Option]:
    """Return suspects to be probed and a newcomer to be pulled, without the best arm.

    The gap is the difference from the best arm in expected reward less the price of expected
    dollars. A newcomer is assumed to earn the highest expected reward of all arms, and so is a
    suspect that seems to have recovered. Without this, a recovery costs a reward of 0.005 to 0.01
    (benchmarks.drift).
    """
    mean, penalty, costs = seen.mean, seen.penalty, seen.expected_cost_usd
    best = max(mean[j] - penalty[j] for j in eligible)
    hopeful = max(mean[j] for j in eligible)
    pulls = True
    found = []
    for j in eligible:
        if costs[j] > allowance_usd:
            continue
        suspicion, hoped = arms[j].suspicion, best - (hopeful - penalty[j])
        if suspicion is not None:
            returns = suspicion.evidence > 0.0
            found.append(Option(j, hoped if returns else best - (mean[j] - penalty[j])))
        elif pulls and arms[j].pulls_left > 0:
            pulls = False  # one at a time
            found.append(Option(j, hoped, "onboarding"))
    return found


def cheaper(costs: list[float], eligible: list[int], budget_usd: float) -> list[Option]:
    """Return the arms that may be cheaper by now than the arm of least expected cost. A gap is the
    difference in expected dollars ÷ the budget per request.
    """
    cheapest = min(eligible, key=costs.__getitem__)
    lowest = costs[cheapest]
    return [Option(j, (costs[j] - lowest) / budget_usd) for j in eligible if j != cheapest]


def log_costs(
    arms: Arms, costs: list[float], eligible: list[int]
) -> dict[int, tuple[float, float]]:
    """Return expectation and variance of a draw of the logarithm of each eligible arm's mean cost.
    The deviation of a level counts `LEVEL` times, as in draws of rewards.
    """
    found = {}
    for k in eligible:
        known = arms.costs[k].predictive(costs[k])
        # A free arm is the cheapest, but its cost has no logarithm.
        log = log_of(max(costs[k], sys.float_info.min))
        found[k] = log, LEVEL**2 * (known.level + known.calibration)
    return found


def cheapest(arms: Arms, costs: list[float], eligible: list[int], chance: Chance) -> int:
    """Return the cheapest arm by a sample of the posterior costs."""
    known = log_costs(arms, costs, eligible)
    drawn = chance.standard_normal(len(known))
    return min(
        zip(known.items(), drawn, strict=True),
        key=lambda one: one[0][1][0] + math.sqrt(one[0][1][1]) * one[1],
    )[0][0]


def chance_of_cheapest(log_costs: Mapping[int, tuple[float, float]], k: int) -> float:
    """Return the probability that the k-th arm is cheapest in a draw of the logarithms of costs;
    `log_costs` has expectation and variance by arm.
    """
    logs, variances = zip(*log_costs.values(), strict=True)
    return wins(list(log_costs).index(k), [-log for log in logs], list(variances))


def among_ways(state: RouterState, seen: Candidates, *, short: bool) -> Chosen:
    """Choose an arm by its score, by a pull or a probe, or by chance. The arm's propensity is the
    sum over these ways, whichever way it was chosen.

    Args:
        short: whether the cheapest arm is called instead of the best.
    """
    arms, epsilon, costs = state.arms, state.config.knobs.epsilon, seen.expected_cost_usd
    chance = state.chance
    assert isinstance(chance, Chance)  # as this policy made it
    eligible = [k for k, why in enumerate(seen.excluded) if why is None]
    k = cheapest(arms, costs, eligible, chance) if short else _best(seen, chance)
    tried = draw(_options(state, seen, eligible, short=short), chance)
    reason = tried.reason
    if tried.k >= 0:
        k = tried.k
    elif epsilon > 0.0 and chance.random() < epsilon:
        k, reason = eligible[chance.integers(len(eligible))], "probe"
    elif arms[k].pulls_left > 0:
        reason = "onboarding"
    return k, reason, _chance(state, seen, k, eligible, tried.chances, tried.passed, short=short)


def chance_of(state: RouterState, seen: Candidates, k: int, *, short: bool) -> float:
    """Return the probability with which `among_ways` chooses the k-th arm, an eligible one."""
    eligible = [j for j, why in enumerate(seen.excluded) if why is None]
    chances, passed = chances_of(_options(state, seen, eligible, short=short))
    return _chance(state, seen, k, eligible, chances, passed, short=short)


def _chance(
    state: RouterState,
    seen: Candidates,
    k: int,
    eligible: list[int],
    chances: Mapping[int, float],
    passed: float,
    *,
    short: bool,
) -> float:
    epsilon = state.config.knobs.epsilon
    if short:
        known = log_costs(state.arms, seen.expected_cost_usd, eligible)
        by_draw = chance_of_cheapest(known, k)
    else:
        by_draw = seen.chance_of(k)
    by_score = passed * (1.0 - epsilon) * by_draw
    aside = chances.get(k, 0.0) + passed * epsilon / len(eligible)
    return min(aside + by_score, 1.0)


def _best(seen: Candidates, chance: Chance) -> int:
    """Return the arm with the best score, in a tie the cheaper one."""
    tied = seen.cheapest(seen.best())
    return tied[0] if len(tied) == 1 else tied[chance.integers(len(tied))]


def _options(
    state: RouterState, seen: Candidates, eligible: list[int], *, short: bool
) -> list[Option]:
    """Return the arms that may be tried instead of the best one. They depend on no draw, so that
    propensities are exact.
    """
    arms, pacer = state.arms, state.pacer
    if arms.unproven:
        return options(arms, seen, eligible, pacer.allowance_usd)
    if short:
        costs, budget_usd = seen.expected_cost_usd, pacer.budget_usd or 1.0
        return cheaper(costs, eligible, budget_usd)
    return []
