"""Check that every decision follows from the values in its own record."""

from __future__ import annotations

import math
from collections.abc import Sequence

from router_state.pacing.dollar_dual import UNREACHABLE
from schemas.routes import Candidate, RouteDecided, RouteReason
from schemas.verifiers import PlanStep
from studies.audit.findings import Findings, Kind

TOLERANCE = 1e-9
"""Largest difference, relative or absolute: another order of sums moves the last digits only."""


def explain(route: RouteDecided, where: str, findings: Findings) -> None:
    """Check that a decision follows from the values in its own record."""

    def unexplained(why: str) -> None:
        findings.violation(Kind.UNEXPLAINED, where, f"{route.request_id}: {why}")

    candidates = route.candidates
    if candidates is None:
        return
    by_name = {candidate.model: candidate for candidate in candidates}
    called, would = by_name.get(route.model), route.would_route
    # Where the incumbent answered, the scores led to what the router would have answered.
    own, reason = (route.model, route.reason) if would is None else (would.model, would.reason)
    chosen = by_name.get(own)
    if called is None or chosen is None:
        unexplained("the model is not among the candidates")
        return
    for candidate in candidates:
        if not math.isclose(
            candidate.score,
            candidate.mean + candidate.bonus - candidate.penalty,
            rel_tol=TOLERANCE,
            abs_tol=TOLERANCE,
        ):
            unexplained(f"the score of {candidate.model} is not mean + bonus − penalty")
    # Onboarding may exceed the ceiling on purpose: a model that is never called is never learned.
    forced = reason is RouteReason.ONBOARDING and chosen.excluded == "ceiling"
    if chosen.excluded is not None and not forced:
        unexplained(f"the model is excluded ({chosen.excluded})")
    best = max(
        (candidate.score for candidate in candidates if candidate.excluded is None),
        default=math.inf,
    )
    # Onboarding and exploration ignore the scores. If no λ_t meets the budget, a model that may be
    # the cheapest is chosen.
    drawn = reason in (RouteReason.ONBOARDING, RouteReason.PROBE)
    drawn |= route.lambda_t >= UNREACHABLE
    # A record has only the first two calls of a plan that the router would have had.
    drawn |= would is not None and would.then is not None
    plan = route.plan or ()
    models = {own, *(step.model for step in plan)}
    # A plan begins with the best model, or ends with it.
    score = max(candidate.score for candidate in candidates if candidate.model in models)
    if not drawn and score < best - TOLERANCE:
        unexplained(f"an eligible model has the score {best}, the chosen one {score}")
    if plan:
        unexplained_plan = _differing(plan, route, candidates)
        if unexplained_plan is not None:
            unexplained(unexplained_plan)
        return
    same = (
        called.mean == route.expected_reward,
        called.expected_cost_usd == route.expected_cost_usd,
    )
    if not all(same):
        unexplained("expected reward or cost are not the called model's")


def _differing(
    plan: Sequence[PlanStep], route: RouteDecided, candidates: Sequence[Candidate]
) -> str | None:
    """Return what is wrong with a plan by its own record; None: nothing."""
    costs = {one.model: one.expected_cost_usd for one in candidates if one.excluded is None}
    if any(costs.get(step.model) != step.expected_cost_usd for step in plan):
        return "a call of the plan is of an excluded model, or is expected to cost something else"
    expected = math.fsum(
        (1.0 if step.probability is None else step.probability)
        * (step.expected_cost_usd + (step.verdict_usd or 0.0))
        for step in plan
    )
    if not math.isclose(expected, route.expected_cost_usd, rel_tol=TOLERANCE, abs_tol=TOLERANCE):
        return f"its calls are expected to cost {expected!r}, not {route.expected_cost_usd!r}"
    return None
