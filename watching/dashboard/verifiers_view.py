"""Show a router's verifiers: what their verdicts mean, and what the plans with them cost and
earned.
"""

from __future__ import annotations

from dataclasses import asdict

from ground.json_values import Document
from watching.dashboard.router_view import RouterView
from watching.planned_requests import OfVerifier


def verifiers_of(router: RouterView) -> list[Document]:
    """Return each verifier that a router declares, or that was in one of its plans, for the
    page.
    """
    state, plans = router.state, router.tally.plans.by
    standing = {one.verifier: one for one in (state and state.verifiers) or ()}
    decisions = max(router.tally.decisions, 1)
    found = []
    for name in sorted({*standing, *plans}):
        of = plans.get(name, OfVerifier())
        told = standing[name].model_dump(mode="json") if name in standing else None
        found.append(
            {"verifier": name, **asdict(of), "share": of.planned / decisions, "standing": told}
        )
    return found
