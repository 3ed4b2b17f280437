"""Publish the plan of a request with its decision."""

from __future__ import annotations

from router_state.kernel.given import Step
from router_state.plan import Plan


def plan_fields(plan: Plan) -> dict[str, object]:
    """Return the fields of `pb.routes` for a plan, see `schemas.routes.RouteDecided`."""
    steps = [_step(step) for step in plan.steps]
    for later, step in zip(steps[1:], plan.steps[1:], strict=True):
        later["probability"] = step.probability
    return {"plan": steps, "first_propensity": plan.first_propensity}


def _step(step: Step) -> dict[str, object]:
    """Return one call of a plan, see `schemas.verifiers.PlanStep`."""
    found: dict[str, object] = {"model": step.model, "expected_cost_usd": step.expected_cost_usd}
    if step.verify is not None:
        found["verify"], found["verdict_usd"] = step.verify, step.fee_usd
    if step.accept_at is not None:
        found["accept_at"] = step.accept_at
    return found
