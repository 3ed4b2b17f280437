"""Write a plan as sentences: which calls follow each other, when an answer is returned, what the
plan is worth compared with one call, and what is known of its verifiers.
"""

from __future__ import annotations

from collections.abc import Sequence

from drawing.numbers import usd
from schemas import LambdaUpdated, RouteDecided
from schemas.label_sources import Estimate
from schemas.routes import Chain
from schemas.verifiers import PlanStep, VerifierMeasured


def plan_lines(decision: RouteDecided) -> list[str]:
    """Return sentences about a decision: the request that it follows, the verifiers that the
    request names but the router does not declare, and the steps of the plan in order.
    """
    steps = decision.plan or ()
    lines = [] if decision.chain is None else [_chain(decision.chain)]
    lines += [
        f"The router declares no verifier {name!r}, so it looks at nothing."
        for name in decision.unknown_verifiers or ()
    ]
    lines += [_line(number, step, steps) for number, step in enumerate(steps)]
    return lines + _compared(decision)


def _chain(chain: Chain) -> str:
    if chain.known is False:
        return f"It follows {chain.follows}, which the router does not remember."
    tried = f"; tried before: {', '.join(chain.tried)}" if chain.tried else ""
    return f"It follows {chain.follows} as request {chain.number} of its chain{tried}."


def _compared(decision: RouteDecided) -> list[str]:
    """Return what a plan of several calls is expected to come to beside the best single call."""
    left = [one for one in decision.candidates or () if one.excluded is None]
    if len(decision.plan or ()) < 2 or not left:
        return []
    best = max(left, key=lambda one: one.mean - one.penalty)
    return [
        f"All calls together: reward {decision.expected_reward:.3f} for "
        f"{usd(decision.expected_cost_usd)} expected; the best single call, {best.model}: "
        f"{best.mean:.3f} for {usd(best.expected_cost_usd)}."
    ]


def verifier_lines(decision: RouteDecided, state: LambdaUpdated) -> list[str]:
    """Return a sentence for each step of a decision's plan whose verifier has known error rates for
    the model of the step.
    """
    known = {
        (one.verifier, model.model): model for one in state.verifiers or () for model in one.models
    }
    steps = [known.get((step.verify or "", step.model)) for step in decision.plan or ()]
    return [
        f"{step.verify} passes {_share(one.passes_right)} of {step.model}'s right answers and "
        f"stops {_share(one.stops_wrong)} of its wrong ones, by {one.labels} labels"
        f"{_of_family(one)}"
        for step, one in zip(decision.plan or (), steps, strict=True)
        if one is not None
    ]


def _of_family(one: VerifierMeasured) -> str:
    """Return what of a verifier's table came from the router's family."""
    if not (one.family_labels or one.family_verdicts):
        return ""
    return (
        f" of its own and by what other routers of its family know, which counts for "
        f"{one.family_labels or 0} labels and {one.family_verdicts or 0} verdicts"
    )


def _share(one: Estimate) -> str:
    return f"{one.value:.0%} ({one.low:.0%} to {one.high:.0%})"


def _line(number: int, step: PlanStep, steps: Sequence[PlanStep]) -> str:
    chance = "" if step.probability is None else f"in {step.probability:.0%} of such cases, "
    further = steps[number + 1].probability if number + 1 < len(steps) else None
    passes = 1.0 - (further or 0.0) / (step.probability or 1.0)
    call = f"Attempt {number}: {chance}{step.model}, {usd(step.expected_cost_usd)} expected"
    if step.verify is None:
        return f"{call}."
    fee = f" for {usd(step.verdict_usd)}" if step.verdict_usd else ""
    if step.accept_at is None:
        return f"{call}; {step.verify} looks at the answer{fee}, which is returned anyway."
    return (
        f"{call}; {step.verify} looks at the answer{fee}, which is returned from a verdict of "
        f"{step.accept_at:.2g} on: in {passes:.0%} of cases."
    )


def what_follows(decision: RouteDecided, *, attempt: int, verifier: str, verdict: float) -> str:
    """Return the next step of the plan, in a sentence, after a verdict on the answer of an
    attempt."""
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
