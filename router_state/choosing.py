"""Choose where the best score alone does not decide: ties, onboarding, probes."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from router_state.arms import Arms
from router_state.config import Knobs
from router_state.errors import NonFiniteInput
from router_state.record import Candidates
from router_state.scoring import TIE

PROBE_LOSS, PROBE_AT_MOST = 0.015, 0.25
RETURNING = 10.0
PULL_LOSS, PULL_AT_MOST = 0.02, 0.5


class Spare(NamedTuple):
    """What a probe and what a pull may be expected to cost, dollars."""

    probe: float = math.inf
    pull: float = math.inf


UNLIMITED = Spare()


class Choice(NamedTuple):
    """The arm to call, why, and the probability with which it was drawn."""

    k: int
    reason: str
    propensity: float


def choose(arms: Arms, candidates: Candidates, knobs: Knobs, rng: np.random.Generator, *, spare: Spare = UNLIMITED) -> Choice:
    """Choose an arm; ties go to the lower cost where dollars pace, else they are broken at random; pulls and probes are
    made as the knobs say.

    Args:
        spare: what pulls and probes may cost.

    Raises:
        NonFiniteInput: a score is not finite.
    """
    if arms.onboarding and not knobs.paced_onboarding:
        for k, left in enumerate(arms.pulls_left):
            if left > 0 and candidates.excluded[k] in (None, "ceiling"):
                return Choice(k, "onboarding", 1.0)
    eligible = [k for k, why in enumerate(candidates.excluded) if why is None]
    scores = [candidates.score(k) for k in eligible]
    best = max(scores)
    if not math.isfinite(best):
        raise NonFiniteInput("a score is not finite")
    tied = [k for k, score in zip(eligible, scores, strict=True) if best - score < TIE]
    if knobs.dollar_dual and len(tied) > 1:
        cheapest = min(candidates.expected_cost_usd[k] for k in tied)
        tied = [k for k in tied if candidates.expected_cost_usd[k] == cheapest]
    k = tied[0] if len(tied) == 1 else tied[int(rng.integers(len(tied)))]
    if len(eligible) > 1 and (arms.suspect or (arms.onboarding and arms.pulls_left[k] == 0)):
        chosen, passed = _explore(arms, candidates, eligible, k, best, rng, spare)
        if chosen is not None:
            return chosen
    else:
        passed = 1.0
    epsilon = knobs.epsilon
    if epsilon <= 0.0:
        return Choice(k, "onboarding" if arms.pulls_left[k] > 0 else "ucb", passed / len(tied))
    reason = "ucb"
    if rng.random() < epsilon:
        k, reason = eligible[int(rng.integers(len(eligible)))], "probe"
    greedy = (1.0 - epsilon) / len(tied) if k in tied else 0.0
    return Choice(k, reason, passed * (greedy + epsilon / len(eligible)))


def _explore(
    arms: Arms, candidates: Candidates, eligible: list[int], k: int, best: float, rng: np.random.Generator, spare: Spare
) -> tuple[Choice | None, float]:
    """Draw a pull or a probe; return it, or None and the probability that there was none.

    Probability loss/gap (inverse-gap weighting, Abe and Long 1999): what one draw costs on average, quality and dollars taken
    together, is the same for every arm, so dear ones are drawn as rarely as the budget asks. A newcomer counts as good as the best.
    """
    mean = candidates.mean
    passed, hopeful = 1.0, max(mean[j] for j in eligible)
    newcomers = arms.pulls_left[k] == 0
    for j in eligible:
        if j == k:
            continue
        cost, suspicion = candidates.expected_cost_usd[j], arms.suspicion[j]
        if suspicion is not None:
            if cost > spare.probe:
                continue
            reason, loss, most, score = "probe", PROBE_LOSS, PROBE_AT_MOST, mean[j] - candidates.penalty[j]
            if suspicion.evidence > 0.0:  # as before, perhaps: some more probes tell
                loss *= RETURNING
        elif newcomers and arms.pulls_left[j] > 0 and cost <= spare.pull:
            newcomers = False  # one at a time
            reason, loss, most, score = "onboarding", PULL_LOSS, PULL_AT_MOST, hopeful - candidates.penalty[j]
        else:
            continue
        gap = best - score
        chance = most if gap * most <= loss else loss / gap
        if rng.random() < chance:
            return Choice(j, reason, passed * chance), passed
        passed *= 1.0 - chance
    return None, passed
