"""Choose where the best score alone does not decide: ties, onboarding, probes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from router_state.arms import Arms
from router_state.config import Knobs
from router_state.errors import NonFiniteInput
from router_state.learning.sample import CONTENDS, FEATURES, probability
from router_state.pacing.pacer import UNLIMITED, Allowance
from router_state.pacing.window import PRICE_SPREAD
from router_state.policies.scoring import TIE, Projection
from router_state.record import Candidates

PROBE_LOSS, PROBE_AT_MOST = 0.015, 0.25
"""Reward, and dollars by their price, that probes of a suspect may cost per request, and their
largest probability (docs/algorithm.md)."""
PRICE_VARIANCE = PRICE_SPREAD**2 / 3.0
"""Of a request's own price of a dollar, in squares of λ_t."""
LARGE = 1e100
"""Penalties from here on are divided by the largest one: their squares may be no floating-point
number (a budget of 1e-260 dollars)."""
RETURNING = 10.0
"""Times as much for a suspect that looks as before."""
PULL_LOSS, PULL_AT_MOST = 0.02, 0.5
"""The same of onboarding pulls."""
LOOK_LOSS, LOOK_AT_MOST = 0.02, 0.25
"""Budgets that looking for a cheaper model may cost per request while none is within the budget,
and its largest probability."""
LOOK_SHARE = 0.5
"""Of what the cheapest model costs beyond the budget, the same where its bills leave no doubt of
it: world 5108 of benchmarks.elsewhere then costs 1.06 B and not 1.22."""


class Choice(NamedTuple):
    """The arm to call and why.

    Several ways lead to an arm; its propensity is the sum over them, whichever it came by: `aside`
    by pulls, probes and epsilon; `by_score` is the probability that the score decided, `share` that
    it decided for this arm.
    """

    k: int
    reason: str
    aside: float = 0.0
    by_score: float = 1.0
    share: float = 1.0

    @property
    def propensity(self) -> float:
        """The probability with which this arm was to be called."""
        return min(self.aside + self.by_score * self.share, 1.0)


class Explored(NamedTuple):
    """The arm that a pull or a probe drew (−1: none), why, with what probability each was drawn,
    and none."""

    k: int
    reason: str
    chances: Mapping[int, float]
    passed: float


UNEXPLORED = Explored(-1, "ucb", {}, 1.0)
"""Where nothing was to be explored."""


def choose(
    arms: Arms,
    candidates: Candidates,
    *,
    knobs: Knobs,
    rng: np.random.Generator,
    allowance: Allowance = UNLIMITED,
    short_of: float = 0.0,
) -> Choice:
    """Choose an arm; ties go to the lower cost where dollars pace, else they are broken at random;
    pulls and probes are made as the knobs say.

    Args:
        allowance: what pulls and probes may cost.
        short_of: the budget, in dollars per request, where even the cheapest arms cost more than
            is to be spent; 0 else.

    Raises:
        NonFiniteInput: a score is not finite.
    """
    if arms.onboarding and not knobs.paced_onboarding:
        for k, arm in enumerate(arms):
            if arm.pulls_left > 0 and candidates.excluded[k] in (None, "ceiling"):
                return Choice(k, "onboarding")
    eligible = [k for k, why in enumerate(candidates.excluded) if why is None]
    scores = [candidates.score(k) for k in eligible]
    best = max(scores)
    if not math.isfinite(best):
        raise NonFiniteInput("a score is not finite")
    tied = [k for k, score in zip(eligible, scores, strict=True) if best - score < TIE]
    # Equal scores at different costs come where λ_t is 0: then a dollar is worth nothing, but not
    # less.
    if knobs.dollar_dual and len(tied) > 1:
        cheapest = min(candidates.expected_cost_usd[k] for k in tied)
        tied = [k for k in tied if candidates.expected_cost_usd[k] == cheapest]
    k = tied[0] if len(tied) == 1 else tied[int(rng.integers(len(tied)))]
    if len(eligible) > 1 and (arms.suspect or (arms.onboarding and arms[k].pulls_left == 0)):
        explored = _explore(arms, candidates, eligible=eligible, k=k, rng=rng, allowance=allowance)
    elif len(eligible) > 1 and short_of > 0.0:
        explored = _look(arms, candidates, eligible=eligible, k=k, rng=rng, budget=short_of)
    else:
        explored = UNEXPLORED
    epsilon, reason = knobs.epsilon, explored.reason
    if explored.k >= 0:
        k = explored.k
    elif epsilon > 0.0 and rng.random() < epsilon:
        k, reason = eligible[int(rng.integers(len(eligible)))], "probe"
    elif epsilon <= 0.0 and arms[k].pulls_left > 0:
        reason = "onboarding"
    aside = explored.chances.get(k, 0.0) + explored.passed * epsilon / len(eligible)
    share = 1.0 / len(tied) if k in tied else 0.0
    return Choice(k, reason, aside, explored.passed * (1.0 - epsilon), share)


def drawn(arms: Arms, seen: Projection, candidates: Candidates, k: int) -> float:
    """Return with what probability the k-th arm had the best score, over draws of the rewards'
    coefficients and of the price.

    Scores are taken to be normal and independent; the smallest is `doubt.LEAST_PROPENSITY`.
    """
    noise = FEATURES * FEATURES * arms.rewards.noise
    largest = max(candidates.penalty)
    # Dollars alone decide then: what is drawn for quality is nothing beside them.
    scale = largest if largest > LARGE else 1.0
    own, variance, others = 0.0, 0.0, []
    j = -1
    for why, (mean, _), doubt, belief, level, penalty in zip(
        candidates.excluded,
        seen[0],
        seen[1],
        arms.beliefs,
        arms.doubt.levels,
        candidates.penalty,
        strict=True,
    ):
        j += 1
        if why is not None and j != k:
            continue
        if scale != 1.0:
            mean, penalty, level, doubt = mean / scale, penalty / scale, 0.0, 0.0
        spread = noise * abs(doubt) / belief.decay + level + PRICE_VARIANCE * penalty * penalty
        if j == k:
            own, variance = mean - penalty, spread
        else:
            others.append((mean - penalty, spread))
    rivals = []
    for value, spread in others:
        gap = own - value
        # The others have no chance that would show, and each rival costs an integral.
        if gap < 0.0 or gap * gap < CONTENDS * (variance + spread):
            rivals.append((gap, spread))
    return probability(variance, rivals) if rivals else 1.0


def _look(
    arms: Arms,
    candidates: Candidates,
    *,
    eligible: list[int],
    k: int,
    rng: np.random.Generator,
    budget: float,
) -> Explored:
    """Draw a probe of a model that may be cheaper than the cheapest one is known to be.

    Where the cost alone decides, what is thought dear is never called, and never known better.
    Inverse-gap weighting, as in `_explore`, the gap being dollars. It adds `LOOK_LOSS` budgets a
    request, all models alike: any may have become cheaper, though nobody said so. Where bills leave
    no doubt that the cheapest one costs more than the budget, it adds a share of that for those of
    which few bills have come, by how probable it is that they cost less.
    """
    costs, drawn, passed = candidates.expected_cost_usd, -1, 1.0
    chances: dict[int, float] = {}
    others = [j for j in eligible if j != k]
    losses = dict.fromkeys(others, LOOK_LOSS * budget / len(others))
    known, scatter = arms.costs[k], arms.bills.relative_deviation
    if known.surely_above(budget, scatter):
        likely = {j: arms.costs[j].chance_below(costs[k], costs[j], scatter) for j in others}
        share = LOOK_SHARE * (known.mean_usd - budget) / max(sum(likely.values(), 0.0), 1.0)
        losses = {j: loss + share * likely[j] for j, loss in losses.items()}
    for j, loss in losses.items():
        gap = costs[j] - costs[k]
        chance = LOOK_AT_MOST if gap * LOOK_AT_MOST <= loss else loss / gap
        chances[j] = passed * chance
        passed *= 1.0 - chance
        if drawn < 0 and rng.random() < chance:
            drawn = j
    return Explored(drawn, "probe" if drawn >= 0 else "ucb", chances, passed)


def _explore(
    arms: Arms,
    candidates: Candidates,
    *,
    eligible: list[int],
    k: int,
    rng: np.random.Generator,
    allowance: Allowance,
) -> Explored:
    """Draw a pull or a probe.

    Probability loss/gap (inverse-gap weighting, Abe and Long 1999): what one draw costs on average,
    quality and dollars taken together, is the same for every arm, so dear ones are drawn as rarely
    as the budget asks. A newcomer counts as good as the best.
    """
    mean = candidates.mean
    best, passed, hopeful = (
        max(map(candidates.score, eligible)),
        1.0,
        max(mean[j] for j in eligible),
    )
    newcomers, drawn, why = arms[k].pulls_left == 0, -1, "ucb"
    chances: dict[int, float] = {}
    for j in eligible:
        if j == k:
            continue
        arm, cost = arms[j], candidates.expected_cost_usd[j]
        suspicion = arm.suspicion
        if suspicion is not None:
            if cost > allowance.probe:
                continue
            reason, loss, most, score = (
                "probe",
                PROBE_LOSS,
                PROBE_AT_MOST,
                mean[j] - candidates.penalty[j],
            )
            if suspicion.evidence > 0.0:  # as before, perhaps: some more probes tell
                loss *= RETURNING
        elif newcomers and arm.pulls_left > 0 and cost <= allowance.pull:
            newcomers = False  # one at a time
            reason, loss, most, score = (
                "onboarding",
                PULL_LOSS,
                PULL_AT_MOST,
                hopeful - candidates.penalty[j],
            )
        else:
            continue
        gap = best - score
        chance = most if gap * most <= loss else loss / gap
        chances[j] = passed * chance
        passed *= 1.0 - chance
        if drawn < 0 and rng.random() < chance:
            drawn, why = j, reason
    return Explored(drawn, why, chances, passed)
