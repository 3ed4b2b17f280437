"""Explain a decision: every term of every candidate, and the reason for the choice."""

from __future__ import annotations

import json

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from doors.console.output import table
from doors.console.plan_lines import plan_lines
from drawing.numbers import dual, dual_in_words, number, seconds, usd
from schemas import Candidate, RouteDecided

BECAUSE = {
    "ucb": (
        "it has the highest score of the models that could be chosen (score = expected reward + "
        "exploration − penalty)"
    ),
    "onboarding": "it is new, and gets its first requests whatever its score",
    "probe": "its quality is in doubt after a drift, and some requests test it",
    "ceiling_relaxed": "no model was under the price ceiling, so the ceiling was lifted",
    "capped": "a cap in dollars is used up, and it is the cheapest model",
    "session_budget": (
        "it has the highest score of the models that what is left of the session's budget can "
        "pay for, or is the cheapest where there is none"
    ),
    "incumbent": "the incumbent answers this share of the requests, and the router did not choose",
}
"""Explanation of a choice, by the reason of the decision."""
DRAWN = (
    "; exploration is drawn at random for each request, as wide as the uncertainty: another draw "
    "may have chosen another model"
)
"""Further words on the score of a profile that draws."""
SHORT = {
    "ucb": "highest score",
    "onboarding": "new",
    "probe": "in doubt after a drift",
    "ceiling_relaxed": "ceiling lifted",
    "capped": "cap used up",
    "session_budget": "session's budget",
    "incumbent": "left to the incumbent",
}
"""Short explanation of a choice for a line of a list, by the reason of the decision."""
EXCLUDED = {
    "retired": "retired from the portfolio",
    "not_allowed": "not among the allowed models",
    "over_max_price": "above the request's maximum price",
    "ceiling": "above the price ceiling that λ_t sets",
    "out_of_reach": "one in ten of its bills would be more than a hundred requests may cost",
    "session_budget": "expected to cost more than is left of the session's budget",
    "down": "it does not answer, and is tried now and then",
    "rate_limited": "it has reached its limit of calls",
    "gone": "its provider has it no more",
    "retires_soon": "it retires within a week, so nothing is tried on it",
    "past_its_end": "its provider has retired it",
    "no_vision": "reads no images",
    "no_audio": "hears no sound",
    "no_tools": "calls no tools",
    "no_json_output": "does not answer in JSON",
    "window_too_small": "has no room for the request's tokens",
    "output_too_short": "can't give so long an answer",
    "not_in_region": "does not run in the region that the request asks for",
    "retains_prompts": "its provider may keep prompts for longer than the request allows",
    "cost_unknown": "too few bills say what it costs, and its unbilled calls may cost too much",
}
"""Explanation of why a candidate was ruled out, by `excluded`, where that does not say it."""

TERMS = (
    "model",
    "expected reward",
    "exploration",
    "penalty",
    "score",
    "expected cost",
    "why excluded",
)
"""Columns of the terms; the first three numbers add up to the score."""
TIMED = ("expected time", "chance of being late")
"""Further columns for a router with a target of latency, whose penalty includes waiting."""
DOUBT = (
    "model",
    "uncertainty",
    "common to all models",
    "the model's own",
    "8 of 10 bills",
    "chance of a bill of $0",
)
"""Columns of the table of uncertainty."""
HOW_SURE = "How sure it was: expected reward = part common to all models + the model's own part"
"""Title of the table of uncertainty."""


def why_excluded(code: str | None) -> str:
    """Return why a candidate was ruled out; "" if it was not. A code without an explanation is
    returned as it is.
    """
    return "" if code is None else EXCLUDED.get(code, code.replace("_", " "))


def explain_decision(decision: RouteDecided) -> RenderableType:
    """Return a decision as text for people: a sentence, a table of candidates, the state at the
    time.
    """
    because = because_of(decision)
    if decision.propensity < 1.0:
        because += f"; chosen with probability {decision.propensity:.3g}"
    head = Text.assemble("→ ", (decision.model, "bold green"), f": {because}.")
    state = Text(
        f"Request {decision.request_id}, decision {decision.seq} of router {decision.router_id}, "
        f"λ_t {dual(decision.lambda_t)}, expected reward {decision.expected_reward:.3f}, "
        f"expected cost {usd(decision.expected_cost_usd)}, configuration {decision.config_offset}, "
        f"{decision.decided_at:%Y-%m-%d %H:%M:%S} "
        f"UTC{_session(decision)}"
        f"{', answered again' if decision.repeat else ''}.",
        style="dim",
    )
    # A record drops its candidates some time after the decision, so a repeat may have none.
    if decision.candidates is None:
        return Group(head, Text("The terms of this repeated answer are with the first one."), state)
    parts: list[RenderableType] = [head, _terms(decision, decision.candidates)]
    if any(candidate.deviation is not None for candidate in decision.candidates):
        parts.append(_doubt(decision.candidates))
    if decision.family is not None:
        count = number(decision.family.requests)
        parts.append(
            Text(
                f"What other routers of its family know of {decision.model} counts for {count} "
                "requests in its expected reward."
            )
        )
    if why := dual_in_words(decision.lambda_t):
        parts.append(Text(why, style="yellow"))
    if (how := _called(decision)) is not None:
        parts.append(Text(how))
    parts += [Text(line) for line in plan_lines(decision)]
    if decision.fallbacks:
        parts.append(Text(f"Should it not answer: {', then '.join(decision.fallbacks)}."))
    return Group(*parts, state)


def _called(decision: RouteDecided) -> str | None:
    """Return how the model is called where it is a variant; None: by its name alone."""
    if decision.params is None:
        return None
    params = json.dumps(decision.params, ensure_ascii=False)
    return f"To be called as {decision.variant_of or decision.model} with {params}."


def _session(decision: RouteDecided) -> str:
    left = decision.session_left_usd
    if decision.session_id is None:
        return ""
    budget = "" if left is None else f" ({usd(left)} left of its budget)"
    return f", session {decision.session_id}{budget}"


def because_of(decision: RouteDecided) -> str:
    """Return why the model was chosen, and whether its score was drawn."""
    reason = decision.reason.value
    drawn = any(candidate.deviation is not None for candidate in decision.candidates or ())
    because = BECAUSE.get(reason, reason)
    drawn &= decision.propensity < 1.0
    return f"{because[:-1]}{DRAWN})" if drawn and reason == "ucb" else because


def _terms(decision: RouteDecided, candidates: tuple[Candidate, ...]) -> Table:
    timed = any(candidate.expected_latency_ms is not None for candidate in candidates)
    shown = table(*TERMS, *(TIMED if timed else ()))
    for candidate in sorted(candidates, key=lambda one: (one.excluded is not None, -one.score)):
        chosen = candidate.model == decision.model
        shown.add_row(
            f"{'→ ' if chosen else '  '}{candidate.model}",
            number(candidate.mean, 4),
            number(candidate.bonus, 4, signed=True),
            number(-candidate.penalty, 4),
            number(candidate.score, 4),
            usd(candidate.expected_cost_usd),
            why_excluded(candidate.excluded),
            *(_times(candidate) if timed else ()),
            style="bold" if chosen else "dim" if candidate.excluded else "",
        )
    return shown


def _times(candidate: Candidate) -> tuple[str, str]:
    expected, slow = candidate.expected_latency_ms, candidate.slow
    return "" if expected is None else seconds(expected), "" if slow is None else f"{slow:.1%}"


def _doubt(candidates: tuple[Candidate, ...]) -> Table:
    shown = table(*DOUBT, title=HOW_SURE)
    for one in sorted(candidates, key=lambda one: (one.excluded is not None, -one.score)):
        if one.deviation is None or one.shared is None:
            continue
        shown.add_row(
            f"  {one.model}",
            f"± {number(one.deviation)}",
            number(one.shared),
            number(one.mean - one.shared, signed=True),
            f"{usd(one.cost_low_usd or 0.0)} to {usd(one.cost_high_usd or 0.0)}",
            f"{one.unpaid or 0.0:.1%}",
        )
    return shown
