"""Plan the calls of a request, once the model with the best draw is known.

Let b be that model. There are three choices: call b alone; call another model first, and b if the
first answer does not pass; call b first, and the next best model if b's answer does not pass.
Expectations, not draws, choose among the three, so a plan's propensity is that of b, which is
exact. A plan is made only where it is better even if verdicts tell as little as they may.

A third call follows from expectations alone, so it changes no propensity: where the first answer
does not pass, another model may answer before the second one, or after it.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from router_state.arms import Arms
from router_state.attempts.verdict_tables import Tables
from router_state.attempts.verifier import MOST_ATTEMPTS, Declared
from router_state.choice import Choice
from router_state.kernel import Chance, Planning, begin_plan, further
from router_state.plan import NOTHING, Plan, Step

TRIED = 0.02
"""Share of requests that try a plan whose worth is uncertain, and share of requests whose answer a
verifier checks although it seems worthless. "Never worse" holds for all other requests.
"""
LOOKED = 0.02
"""Share of the budget that may be spent on looks at answers that only serve to learn what verdicts
mean.
"""

NOTHINGS = tuple((NOTHING,) * count for count in range(MOST_ATTEMPTS + 1))
"""Empty knowledge of a plan, by its number of calls."""
EVERY_LOOK: frozenset[int] = frozenset()
"""Numbers of looks that are closed to a request which has all verifiers: none."""


def plan(
    tables: Tables,
    declared: Declared,
    arms: Arms,
    choice: Choice,
    chance: Chance,
    budget_usd: float | None,
) -> None:
    """Plan what follows the call of the model whose draw is best."""
    shut, fields = EVERY_LOOK, choice.request.fields
    if fields is not None:
        shut = tables.shut(fields.get("attempts"))
    if len(shut) == len(tables.looks):
        if choice.propensity <= 0.0:
            choice.propensity = choice.seen.chance_of(choice.k)
        return
    if declared.max_attempts < 2:
        # Nothing is planned, but what verdicts mean is learned.
        _look(tables, arms, choice, chance, budget_usd, shut)
        return
    plans = Planning(
        choice.seen,
        arms.costs,
        tables.views.sure,
        tables.views.hopeful,
        choice.price,
        choice.left_usd,
        choice.most_usd,
        shut,
    )
    k, look, second, looks, choice.propensity, first = plans.choose(choice.k, TRIED, chance)
    if second < 0:
        # The only answer is verified whatever the verdict is.
        alone = [(k, look)]
        if looks and _affords(tables, choice, alone, chance, budget_usd):
            _take(tables, arms, choice, alone, first, looks=True)
        return
    calls = [(k, look), (second, look)]
    # The duals are solved for plans of two calls; what a third one costs more, their debts make up
    # for. A third call that begins late is slow whatever its own time, so that the price of a slow
    # call says nothing of it.
    thrice = declared.max_attempts > 2 and (arms.beside is None or arms.beside.adds_up)
    if thrice and (more := further(plans, k, look, second)) is not None:
        calls[1:] = more[:2], (more[2], look)
    looks = looks and _affords(tables, choice, calls, chance, budget_usd)
    _take(tables, arms, choice, calls, first, looks=looks)


def _look(
    tables: Tables,
    arms: Arms,
    choice: Choice,
    chance: Chance,
    budget_usd: float | None,
    shut: frozenset[int],
) -> None:
    number = next(n for n in range(len(tables.looks)) if n not in shut)
    alone = [(choice.k, number)]
    if _affords(tables, choice, alone, chance, budget_usd):
        _take(tables, arms, choice, alone, 1.0, looks=True)


def _affords(
    tables: Tables,
    choice: Choice,
    calls: Sequence[tuple[int, int]],
    chance: Chance,
    budget_usd: float | None,
) -> bool:
    """Tell whether there is money for a look at the last answer, which has no consequence for the
    request.
    """
    usd = tables.stops[calls[-1][1]][2]
    if usd <= 0.0:
        return True
    if choice.left_usd < inf:
        spent = sum(choice.seen.cost_usd(k) + tables.stops[look][2] for k, look in calls)
        if spent > choice.left_usd:
            return False
    if budget_usd is None or usd <= LOOKED * budget_usd:
        return True
    return chance.random() < LOOKED * budget_usd / usd


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
    stops, likely = tables.stops, tables.views.likely
    reward, usd, steps = begin_plan(choice.seen, likely, arms.all, calls, stops, looks)
    choice.k, choice.planned = calls[0][0], (reward, usd)
    choice.plan = Plan(tuple([Step(*one) for one in steps]), NOTHINGS[len(steps)], first)
