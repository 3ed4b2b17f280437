"""Write a plan as sentences: which calls follow each other, and when an answer is returned."""

from __future__ import annotations

from collections.abc import Sequence

from drawing.numbers import usd
from schemas import RouteDecided
from schemas.verifiers import PlanStep


def plan_lines(decision: RouteDecided) -> list[str]:
    """Return the steps of a decision's plan in order; empty: there is no plan."""
    steps = decision.plan or ()
    return [_line(number, step, steps) for number, step in enumerate(steps)]


def _line(number: int, step: PlanStep, steps: Sequence[PlanStep]) -> str:
    chance = "" if step.probability is None else f"in {step.probability:.0%} of such cases, "
    call = f"Attempt {number}: {chance}{step.model}, {usd(step.expected_cost_usd)} expected"
    if step.verify is None:
        return f"{call}."
    fee = f" for {usd(step.verdict_usd)}" if step.verdict_usd else ""
    if step.accept_at is None:
        return f"{call}; {step.verify} looks at the answer{fee}, which is returned anyway."
    return (
        f"{call}; {step.verify} looks at the answer{fee}, which is returned from a verdict of "
        f"{step.accept_at:.2g} on."
    )


def what_follows(decision: RouteDecided, *, attempt: int, verifier: str, verdict: float) -> str:
    """Return what the plan says after a verdict on the answer of an attempt."""
    steps = decision.plan or ()
    if attempt >= len(steps) or steps[attempt].verify != verifier:
        return "The plan does not ask for it: it teaches what verdicts mean."
    least = steps[attempt].accept_at
    if least is None:
        return "The answer is returned whatever the verdict."
    if verdict >= least:
        return f"It passes ({least:.2g} or more): return the answer of {steps[attempt].model}."
    if attempt + 1 == len(steps):
        return f"It does not pass ({least:.2g} or more): nothing further is planned."
    following = steps[attempt + 1].model
    return f"It does not pass ({least:.2g} or more): call {following}, attempt {attempt + 1}."
