"""Trying what the posterior sample alone would not: ties, onboarding pulls, probes, cheaper models.

All of them follow one rule, inverse-gap weighting (Abe and Long 1999): an arm is drawn with
probability loss ÷ gap, so what trying costs per request is bounded, and dear arms are drawn as
rarely as that asks.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from router_state.arms import Arms
from router_state.pacing.pacer import Allowance
from router_state.record import Candidates

LOSS = 0.02
"""Reward that trying one arm may cost per request, dollars counted by their price (docs/lab); where
no price meets the budget, budgets."""
AT_MOST = 0.25
"""Largest probability of a probe."""
PULL_AT_MOST = 0.5
"""Largest probability of an onboarding pull."""
LOOK_SHARE = 0.5
"""Share of what the cheapest arm costs beyond the budget that looking for a cheaper one may
cost."""
RETURNING = 10.0
"""Multiple of the loss for a suspect that looks as before: some more probes tell."""


class Option(NamedTuple):
    """An arm that may be tried: its gap to the best, and what trying it may cost per request."""

    k: int
    gap: float
    loss: float
    reason: str = "probe"
    at_most: float = AT_MOST


class Tried(NamedTuple):
    """The arm that was drawn (−1: none), why, the probability of each, and that of none."""

    k: int
    reason: str
    chances: dict[int, float]
    passed: float


def draw(options: Iterable[Option], rng: np.random.Generator) -> Tried:
    """Draw one of the options, each with probability loss ÷ gap, or none."""
    drawn, why, passed = -1, "ucb", 1.0
    chances: dict[int, float] = {}
    for option in options:
        gap, loss = option.gap, option.loss
        chance = option.at_most if gap * option.at_most <= loss else loss / gap
        chances[option.k] = passed * chance
        passed *= 1.0 - chance
        if drawn < 0 and rng.random() < chance:
            drawn, why = option.k, option.reason
    return Tried(drawn, why, chances, passed)


def pulls_and_probes(
    arms: Arms, candidates: Candidates, eligible: list[int], k: int, allowance: Allowance
) -> list[Option]:
    """Return suspects to be probed and a newcomer to be pulled, beside the best arm k.

    The gap takes quality and dollars together. A newcomer counts as good as the best.
    """
    mean, penalty = candidates.mean, candidates.penalty
    costs = candidates.expected_cost_usd
    best = max(map(candidates.score, eligible))
    hopeful = max(mean[j] for j in eligible)
    pulls = arms[k].pulls_left == 0
    found = []
    for j in eligible:
        if j == k:
            continue
        suspicion = arms[j].suspicion
        if suspicion is not None:
            if costs[j] <= allowance.probe:
                loss = LOSS * RETURNING if suspicion.evidence > 0.0 else LOSS
                found.append(Option(j, best - (mean[j] - penalty[j]), loss))
        elif pulls and arms[j].pulls_left > 0 and costs[j] <= allowance.pull:
            pulls = False  # one at a time
            gap = best - (hopeful - penalty[j])
            found.append(Option(j, gap, LOSS, "onboarding", PULL_AT_MOST))
    return found


def cheaper(
    arms: Arms, candidates: Candidates, eligible: list[int], k: int, budget_usd: float
) -> list[Option]:
    """Return the arms that may cost less than arm k, where no price of a dollar meets the budget.

    What is thought dear is then never called, and never known better. The gap is dollars. Any arm
    may have become cheaper unseen; beyond that, half of what arm k costs above the budget goes to
    arms by the probability that they cost less.
    """
    costs = candidates.expected_cost_usd
    others = [j for j in eligible if j != k]
    chances = [arms.costs[j].predictive(costs[j]).chance_below(costs[k]) for j in others]
    share = LOOK_SHARE * max(costs[k] - budget_usd, 0.0) / max(sum(chances), 1.0)
    each = LOSS * budget_usd / len(others)
    return [
        Option(j, costs[j] - costs[k], each + share * chance)
        for j, chance in zip(others, chances, strict=True)
    ]
