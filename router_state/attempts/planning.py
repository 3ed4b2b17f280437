"""Plan the calls of a request, once the model with the best draw is known.

Let b be that model. There are three choices: call b alone; call another model first, and b if the
first answer does not pass; call b first, and the next best model if b's answer does not pass.
Expectations, not draws, choose among the three, so a plan's propensity is that of b, which is
exact. A plan is made only where it is better even if verdicts tell as little as they may.

A third call follows from expectations alone, so it changes no propensity: where the first answer
does not pass, another model may answer before the second one, or after it.
"""

from __future__ import annotations

from math import inf

from router_state.arms import Arms
from router_state.attempts.verdict_evidence import NAME
from router_state.attempts.verdict_tables import Tables
from router_state.attempts.verifier import MOST_ATTEMPTS, Declared
from router_state.choice import Choice
from router_state.kernel import Chance, begin_plan
from router_state.plan import NOTHING, Plan

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
ALL_OPEN: frozenset[int] = frozenset()
"""Numbers of the looks that are closed to a request with all verifiers: none."""


def plan(
    tables: Tables,
    declared: Declared,
    arms: Arms,
    choice: Choice,
    chance: Chance,
    budget_usd: float | None,
) -> Plan | None:
    """Plan what follows the call of the model whose draw is best; return the plan, if there is
    one.
    """
    shut, fields = ALL_OPEN, choice.request.fields
    if fields is not None:
        shut = tables.shut(fields.get(NAME))
        if len(shut) == len(tables.looks):
            if choice.propensity <= 0.0:
                choice.propensity = choice.seen.chance_of(choice.k)
            return None
    most_calls = declared.max_attempts
    # The duals are solved for plans of two calls; what a third one costs more, their debts make up
    # for. A third call that begins late is slow whatever its own time, so that the price of a slow
    # call says nothing of it.
    if most_calls > 2 and not (arms.beside is None or arms.beside.adds_up):
        most_calls = 2
    choice.k, choice.propensity, first, choice.planned, steps = begin_plan(
        tables.views,
        tables.stops,
        arms,
        choice.seen,
        shut,
        choice.k,
        choice.propensity,
        choice.price,
        choice.left_usd,
        choice.most_usd,
        most_calls,
        TRIED,
        inf if budget_usd is None else LOOKED * budget_usd,
        chance,
    )
    if not steps:
        return None
    choice.plan = made = Plan(steps, NOTHINGS[len(steps)], first)
    return made
