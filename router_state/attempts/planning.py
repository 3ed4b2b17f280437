"""Plan the calls of a request, once the model with the best draw is known.

Let b be that model. There are three choices: call b alone; call another model first, and b if the
first answer does not pass; call b first, and the next best model if b's answer does not pass.
Expectations, not draws, choose among the three, so a plan's propensity is that of b, which is
exact. A plan is made only where it is better even if verdicts tell as little as they may.

A third call follows from expectations alone, so it changes no propensity: where the first answer
does not pass, another model may answer before the second one, or after it.
"""

from __future__ import annotations

from numpy.random import Generator

from router_state.arms import Arms
from router_state.attempts.verdict_tables import Tables
from router_state.attempts.verifier import MOST_ATTEMPTS, Declared
from router_state.choice import Choice
from router_state.kernel import LEAST_PROPENSITY, Chance, Planning, expected_of, further
from router_state.plan import NOTHING, Plan, Step

TRIED = 0.02
"""Share of requests that try a plan which may be worth making, and share that let a verifier look
which seems worthless. "Never worse" holds but for this share.
"""
LOOKED = 0.02
"""Share of the budget that may be spent on looks at answers that only serve to learn what verdicts
mean.
"""

NOTHINGS = (NOTHING,) * MOST_ATTEMPTS
EVERY_LOOK: frozenset[int] = frozenset()
"""Numbers of looks that are closed to a request which has all verifiers."""


def plan(
    tables: Tables,
    declared: Declared,
    arms: Arms,
    choice: Choice,
    chance: Chance | Generator,
    budget_usd: float | None,
) -> None:
    """Plan what follows the call of the model whose draw is best."""
    said = choice.request.said_of("attempts")
    shut = EVERY_LOOK if said is None else tables.shut(said)
    if len(shut) == len(tables.looks):
        return
    plans = Planning(
        choice.seen,
        arms.costs,
        tables.sure,
        tables.hopeful,
        shut=shut,
        per_dollar=choice.price,
        left_usd=choice.left_usd,
        most_usd=choice.most_usd,
    )
    drawn, number = choice.k, next(n for n in range(len(tables.looks)) if n not in shut)
    found, sure, looks = None, False, True
    if declared.max_attempts > 1:
        found = plans.best(drawn)
        sure = found is not None
        if found is None:
            found = plans.best(drawn, hopeful=True)
            if found is None:
                # Once in a while all the same: a verifier may have become better.
                looks = float(chance.random()) < TRIED
            elif float(chance.random()) >= TRIED:
                number, found = found[1], None
    if found is not None:
        number = found[1]
    verifier = tables.looks[number].verifier
    looks = looks and _affords(tables.verifiers[verifier].usd, chance, budget_usd)
    first = 1.0
    if declared.max_attempts > 1:
        k = drawn if found is None else found[0]
        alone, made, tried = plans.chances(drawn, k, TRIED)
        chosen = alone if found is None else made if sure else tried
        choice.propensity = min(max(chosen, LEAST_PROPENSITY), 1.0)
        if found is not None or looks:
            first = max(plans.chance_of_first(k, TRIED), choice.propensity)
    if found is not None:
        calls = [found[:2], (found[2], number)]
        if declared.max_attempts > 2 and (more := further(plans, *found[:3])) is not None:
            calls = [found[:2], more[:2], (more[2], number)]
        _take(tables, arms, choice, calls, first, looks=looks)
    elif looks:
        _observe(tables, arms, choice, verifier, first)


def _affords(usd: float, chance: Chance | Generator, budget_usd: float | None) -> bool:
    """Tell whether the budget allows a look at an answer that has no consequence for the
    request.
    """
    if budget_usd is None or usd <= LOOKED * budget_usd:
        return True
    return float(chance.random()) < LOOKED * budget_usd / usd


def _take(
    tables: Tables,
    arms: Arms,
    choice: Choice,
    calls: list[tuple[int, int]],
    first: float,
    *,
    looks: bool,
) -> None:
    """Give a request its plan.

    Args:
        calls: arm and look of each. first: probability of the first call, see `Plan`.
        looks: whether the verifier looks at the last answer, too, without consequence.
    """
    seen, last = choice.seen, len(calls) - 1
    reward, usd, each = expected_of(seen, tables.likely, calls, looks)
    steps = []
    for (k, look), (probability, gap) in zip(calls, each, strict=True):
        arm, verify, accept_at, fee_usd = arms.all[k], None, None, 0.0
        if len(steps) < last or looks:
            verify, accept_at, fee_usd = tables.stops[look]
        if len(steps) == last:
            accept_at = None
        if steps:
            arm.costs.awaited += 1
            arm.costs.regression.changed()
        cost_usd = seen.cost_usd(k)
        steps.append(
            Step(arm.name, cost_usd, arm.price, verify, accept_at, fee_usd, probability, gap)
        )
    plan = Plan(tuple(steps), NOTHINGS[: len(steps)], first)
    choice.k, choice.plan, choice.planned = calls[0][0], plan, (reward, usd)


def _observe(tables: Tables, arms: Arms, choice: Choice, verifier: str, first: float) -> None:
    """Have the answer of a request's only call verified, whatever the verdict is."""
    seen, usd, arm = choice.seen, tables.verifiers[verifier].usd, arms.all[choice.k]
    step = Step(arm.name, seen.cost_usd(choice.k), arm.price, verifier, None, usd)
    choice.plan = Plan((step,), (NOTHING,), first)
    choice.planned = seen.reward(choice.k), choice.plan.awaited_usd
