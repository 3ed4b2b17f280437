"""Check that every decision follows from the values in its own record."""

from __future__ import annotations

import math

from router_state.pacing.dollar_dual import UNREACHABLE
from schemas.routes import RouteDecided, RouteReason
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
    if not drawn and chosen.score < best - TOLERANCE:
        unexplained(f"an eligible model has the score {best}, the chosen one {chosen.score}")
    same = (
        called.mean == route.expected_reward,
        called.expected_cost_usd == route.expected_cost_usd,
    )
    if not all(same):
        unexplained("expected reward or cost are not the called model's")
