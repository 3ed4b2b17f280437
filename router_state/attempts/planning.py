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
from router_state.kernel import Chance, Planning, expected_of, further
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
ONE = NOTHINGS[1]
Stop = tuple[str | None, float | None, float]
"""The verifier of an answer, the least verdict that passes, and the dollars of a verdict."""
UNSEEN: Stop = None, None, 0.0
"""The stop of an answer that no verifier looks at."""
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
        tables.sure,
        tables.hopeful,
        choice.price,
        choice.left_usd,
        choice.most_usd,
        shut,
    )
    k, look, second, looks, choice.propensity, first = plans.choose(choice.k, TRIED, chance)
    if second < 0:
        if looks and _affords(tables, choice, ((k, look),), chance, budget_usd):
            _observe(tables, arms, choice, look, first)
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
    if _affords(tables, choice, ((choice.k, number),), chance, budget_usd):
        _observe(tables, arms, choice, number, 1.0)


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
    stops, models, last = tables.stops, arms.all, len(calls) - 1
    reward, usd, each = expected_of(choice.seen, tables.likely, calls, stops, looks)
    (k, look, _, _, cost_usd), *more = each
    arm = models[k]
    steps = [Step(arm.name, cost_usd, arm.price, *stops[look])]
    for number, (later, look, probability, gap, cost_usd) in enumerate(more, 1):
        verify, accept_at, fee_usd = stops[look] if looks or number < last else UNSEEN
        arm = models[later]
        arm.costs.wait()
        last_at = None if number == last else accept_at
        steps.append(
            Step(arm.name, cost_usd, arm.price, verify, last_at, fee_usd, probability, gap)
        )
    choice.k, choice.plan = k, Plan(tuple(steps), NOTHINGS[last + 1], first)
    choice.planned = reward, usd


def _observe(tables: Tables, arms: Arms, choice: Choice, look: int, first: float) -> None:
    """Have the answer of a request's only call verified, whatever the verdict is."""
    arm, (verifier, _, usd) = arms.all[choice.k], tables.stops[look]
    reward, cost_usd = choice.seen.expected(choice.k)
    step = Step(arm.name, cost_usd, arm.price, verifier, None, usd)
    choice.plan, choice.planned = Plan((step,), ONE, first), (reward, cost_usd + usd)
