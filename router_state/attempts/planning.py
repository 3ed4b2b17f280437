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
from router_state.kernel import Chance, Looks, best_plan, expected_of
from router_state.plan import NOTHING, Plan, Step

TRIED = 0.02
"""Share of requests for which a plan is tried that may be worth making: what "never worse" costs at
most is this share of what a plan costs."""
LOOKED = 0.02
"""Share of the budget that looks at single answers may cost, taken to learn what verdicts mean."""

Found = tuple[int, int, int, float]
"""First model, look, second model, and gain over the best single call."""


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
    drawn = choice.k
    sure = hopeful = None
    if declared.max_attempts > 1:
        sure = _best(tables.sure, arms, choice, drawn, shut)
        if sure is None:
            hopeful = _best(tables.hopeful, arms, choice, drawn, shut)
    if sure is not None:
        _take(tables, arms, choice, sure, chance, budget_usd)
        return
    if hopeful is None:
        # Once in a while all the same: a verifier may have become better.
        if float(chance.random()) < TRIED:
            number = min(set(range(len(tables.looks))) - shut)
            _observe(tables, arms, choice, tables.looks[number].verifier)
        return
    tried = float(chance.random()) < TRIED
    choice.propensity *= TRIED if tried else 1.0 - TRIED
    if tried:
        _take(tables, arms, choice, hopeful, chance, budget_usd)
        return
    verifier = tables.looks[hopeful[1]].verifier
    if _looks(tables.verifiers[verifier].usd, chance, budget_usd):
        _observe(tables, arms, choice, verifier)


def _looks(usd: float, chance: Chance | Generator, budget_usd: float | None) -> bool:
    """Tell whether an answer is looked at without consequence."""
    if budget_usd is None or usd <= LOOKED * budget_usd:
        return True
    return float(chance.random()) < LOOKED * budget_usd / usd


def _best(
    looks: Looks,
    arms: Arms,
    choice: Choice,
    drawn: int,
    shut: frozenset[int],
) -> Found | None:
    return best_plan(
        choice.seen,
        drawn,
        looks,
        arms.costs,
        shut=shut,
        per_dollar=choice.price,
        left_usd=choice.left_usd,
        most_usd=choice.most_usd,
    )


def _take(
    tables: Tables,
    arms: Arms,
    choice: Choice,
    found: Found,
    chance: Chance | Generator,
    budget_usd: float | None,
) -> None:
    """Let a request have a plan."""
    first, number, second, _ = found
    verifier, edge = tables.looks[number]
    one, seen = tables.verifiers[verifier], choice.seen
    reward, goes_on, gap = expected_of(seen, tables.likely, first, number, second)
    steps = (
        Step(
            arms.names[first],
            seen.cost_usd(first),
            arms.all[first].price,
            verifier,
            edge / one.bins,
            one.usd,
        ),
        Step(arms.names[second], seen.cost_usd(second), arms.all[second].price),
    )
    if _looks(one.usd, chance, budget_usd):
        steps = steps[0], structs.replace(steps[1], verify=verifier, fee_usd=one.usd)
    made = Plan(steps, (NOTHING, NOTHING), goes_on, gap, choice.propensity)
    choice.k, choice.plan, choice.planned = first, made, (reward, made.awaited_usd)
    arms.costs[second].awaited += 1


def _observe(tables: Tables, arms: Arms, choice: Choice, verifier: str) -> None:
    """Let the answer of a request's only call be verified without consequence."""
    k, seen, usd = choice.k, choice.seen, tables.verifiers[verifier].usd
    step = Step(arms.names[k], seen.cost_usd(k), arms.all[k].price, verifier, None, usd)
    made = Plan((step,), (NOTHING,), first_propensity=choice.propensity)
    choice.plan, choice.planned = made, (seen.reward(k), made.awaited_usd)
