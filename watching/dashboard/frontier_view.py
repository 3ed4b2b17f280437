"""Decide a router's history again under several budgets, to show what each would buy."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from studies.history.happened import Declared
from studies.history.rerun import ReadPrior
from studies.simulate.cases import Case
from studies.simulate.figures import numbers_of
from studies.simulate.scenario import Budget, Policy, Scenario
from studies.simulate.study import Study, Survey, run

STEPS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
"""Budgets that are tried, as multiples of the budget in force."""
MOST_MODELS = 11
"""Models that are also played alone."""

Cases = Callable[[str], Iterable[Case | Declared]]


def frontier(
    cases: Cases, found: Survey, *, budget_usd: float, read_prior: ReadPrior
) -> dict[str, object]:
    """Return the reward and the cost of the router under each budget, of each model alone, and of
    the recorded decisions.

    Args:
        cases: function that returns all cases; its argument names what they are read for.
    """
    points = []
    for step in STEPS:
        given = step * budget_usd
        scenario = Scenario(
            policies=(Policy(name="declared", profile="declared"),),
            events=(Budget(kind="budget", at=0, usd_per_request=given),),
        )
        # One after the other: each engine's memory is free again before the next one starts.
        done = run(cases(f"budget × {step:g}"), found, scenario, read_prior=read_prior)
        points.append({"budget_usd": given, "step": step, **_totals(done)["declared"]})
    models = sorted(found.models & found.declared)[:MOST_MODELS]
    alone = (*(Policy(name=f"= {one}", model=one) for one in models), _RECORDED)
    done = run(cases("each model alone"), found, Scenario(policies=alone), read_prior=read_prior)
    totals = _totals(done)
    return {
        "points": points,
        "models": [{"model": one, **totals[f"= {one}"]} for one in models],
        "recorded": totals["recorded"],
        "requests": found.requests,
        "budget_usd": budget_usd,
    }


_RECORDED = Policy(name="recorded", recorded=True)
"""History itself, to compare with."""


def _totals(done: Study) -> dict[str, dict[str, object]]:
    return {name: numbers_of(one.track.total) for name, one in done.runs.items()}
