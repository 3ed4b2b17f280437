"""Plan the calls of a request, once it is known whose draw is best.

With that model as b, three things may be done: call it alone, let another model answer first and
call b if its answer does not pass, or verify b's answer and call the next best if it does not pass.
The best of them is done, by what is expected and not by draws, so that a plan's propensity is that
of b, which is exact. Verdicts count for what they are worth at worst: a plan is made where it is
better even so.
"""

from __future__ import annotations

from msgspec import structs
from numpy.random import Generator

from router_state.arms import Arms
from router_state.attempts.tables import Tables
from router_state.attempts.verifier import Declared
from router_state.choice import Choice
from router_state.kernel import Chance, Planning, expected_of
from router_state.plan import NOTHING, Plan, Step

TRIED = 0.02
"""Share of requests for which a plan is tried that may be worth making, and a look at an answer of
a verifier that seems worthless: "never worse" is up to this share."""
LOOKED = 0.02
"""Share of the budget that looks at answers may cost, taken to learn what verdicts mean."""


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
    number = min(n for n in range(len(tables.looks)) if n not in shut)
    found, made, looks = None, False, True
    if declared.max_attempts > 1:
        found = plans.best(choice.k, tables.sure)
        made = found is not None
        if found is None:
            found = plans.best(choice.k, tables.hopeful)
            if found is None:
                # Once in a while all the same: a verifier may have become better.
                looks = float(chance.random()) < TRIED
            else:
                made = float(chance.random()) < TRIED
                choice.propensity *= TRIED if made else 1.0 - TRIED
    if found is not None:
        number = found[1]
    verifier = tables.looks[number].verifier
    looks = looks and _affords(tables.verifiers[verifier].usd, chance, budget_usd)
    if found is not None and made:
        _take(tables, arms, choice, found, looks=looks)
    elif looks:
        _observe(tables, arms, choice, verifier)
    if choice.plan is not None and declared.max_attempts > 1:
        first = plans.chance_of_first(choice.k, tables.sure, tables.hopeful, TRIED)
        first = max(first, choice.propensity)
        choice.plan = structs.replace(choice.plan, first_propensity=first)


def _affords(usd: float, chance: Chance | Generator, budget_usd: float | None) -> bool:
    """Tell whether an answer is looked at without consequence, by what a verdict costs."""
    if budget_usd is None or usd <= LOOKED * budget_usd:
        return True
    return float(chance.random()) < LOOKED * budget_usd / usd


def _take(
    tables: Tables, arms: Arms, choice: Choice, found: tuple[int, int, int, float], *, looks: bool
) -> None:
    """Let a request have a plan; `looks`: its last answer is looked at, too."""
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
    """Let the answer of a request's only call be verified without consequence."""
    seen, usd, arm = choice.seen, tables.verifiers[verifier].usd, arms.all[choice.k]
    step = Step(arm.name, seen.cost_usd(choice.k), arm.price, verifier, None, usd)
    choice.plan = Plan((step,), (NOTHING,))
    choice.planned = seen.reward(choice.k), choice.plan.awaited_usd
