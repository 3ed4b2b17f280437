"""Plan the calls of a request, once the model with the best draw is known.

Let b be that model. There are three choices: call b alone; call another model first, and b if the
first answer does not pass; call b first, and the next best model if b's answer does not pass.
Expectations, not draws, choose among the three, so a plan's propensity is that of b, which is
exact. A plan is made only where it is better even if verdicts tell as little as they may.
"""

from __future__ import annotations

from msgspec import structs
from numpy.random import Generator

from router_state.arms import Arms
from router_state.attempts.verdict_tables import Tables
from router_state.attempts.verifier import Declared
from router_state.choice import Choice
from router_state.kernel import LEAST_PROPENSITY, Chance, Planning, expected_of
from router_state.plan import NOTHING, Plan, Step

TRIED = 0.02
"""Share of requests that try a plan which may be worth making, and share that let a verifier look
which seems worthless. "Never worse" holds but for this share.
"""
LOOKED = 0.02
"""Share of the budget that may be spent on looks at answers that only serve to learn what verdicts
mean.
"""


def plan(
    tables: Tables,
    declared: Declared,
    arms: Arms,
    choice: Choice,
    chance: Chance | Generator,
    budget_usd: float | None,
) -> None:
    """Plan what follows the call of the model whose draw is best."""
    shut = tables.shut(choice.request.said_of("attempts"))
    if len(shut) == len(tables.looks):
        return
    plans = Planning(
        choice.seen,
        arms.costs,
        shut,
        per_dollar=choice.price,
        left_usd=choice.left_usd,
        most_usd=choice.most_usd,
    )
    drawn, number = choice.k, min(n for n in range(len(tables.looks)) if n not in shut)
    found, sure, looks = None, False, True
    if declared.max_attempts > 1:
        found = plans.best(drawn, tables.sure)
        sure = found is not None
        if found is None:
            found = plans.best(drawn, tables.hopeful)
            if found is None:
                # Once in a while all the same: a verifier may have become better.
                looks = float(chance.random()) < TRIED
            elif float(chance.random()) >= TRIED:
                number, found = found[1], None
    if found is not None:
        number = found[1]
    verifier = tables.looks[number].verifier
    looks = looks and _affords(tables.verifiers[verifier].usd, chance, budget_usd)
    if found is not None:
        _take(tables, arms, choice, found, looks=looks)
    elif looks:
        _observe(tables, arms, choice, verifier)
    if declared.max_attempts > 1:
        each = tables.sure, tables.hopeful, TRIED
        alone, made, tried = plans.chances(drawn, choice.k, *each)
        chosen = alone if found is None else made if sure else tried
        choice.propensity = min(max(chosen, LEAST_PROPENSITY), 1.0)
        if choice.plan is not None:
            first = max(plans.chance_of_first(choice.k, *each), choice.propensity)
            choice.plan = structs.replace(choice.plan, first_propensity=first)


def _affords(usd: float, chance: Chance | Generator, budget_usd: float | None) -> bool:
    """Tell whether the budget allows a look at an answer that has no consequence for the
    request.
    """
    if budget_usd is None or usd <= LOOKED * budget_usd:
        return True
    return float(chance.random()) < LOOKED * budget_usd / usd


def _take(
    tables: Tables, arms: Arms, choice: Choice, found: tuple[int, int, int, float], *, looks: bool
) -> None:
    """Give a request its plan; `looks`: the verifier looks at the last answer, too."""
    first, number, second, _ = found
    verifier, edge = tables.looks[number]
    one, seen = tables.verifiers[verifier], choice.seen
    reward, goes_on, gap = expected_of(seen, tables.likely, first, number, second)
    accept_at = edge / one.bins
    a, b = arms.all[first], arms.all[second]
    steps = (
        Step(a.name, seen.cost_usd(first), a.price, verifier, accept_at, one.usd),
        Step(b.name, seen.cost_usd(second), b.price, verifier, None, one.usd)
        if looks
        else Step(b.name, seen.cost_usd(second), b.price),
    )
    made = Plan(steps, (NOTHING, NOTHING), goes_on, gap)
    choice.k, choice.plan, choice.planned = first, made, (reward, made.awaited_usd)
    b.costs.awaited += 1
    b.costs.regression.changed()


def _observe(tables: Tables, arms: Arms, choice: Choice, verifier: str) -> None:
    """Have the answer of a request's only call verified, whatever the verdict is."""
    seen, usd, arm = choice.seen, tables.verifiers[verifier].usd, arms.all[choice.k]
    step = Step(arm.name, seen.cost_usd(choice.k), arm.price, verifier, None, usd)
    choice.plan = Plan((step,), (NOTHING,))
    choice.planned = seen.reward(choice.k), choice.plan.awaited_usd
