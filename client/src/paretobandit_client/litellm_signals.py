"""The signal of a call: what LiteLLM carries of a decision from one attempt to the next.

A candidate is a deployment's model, with or without the provider before the slash; the portfolio
may have either form.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from paretobandit_client.decision import Decision
from paretobandit_client.litellm_bills import Facts
from paretobandit_client.litellm_plans import following_of
from paretobandit_client.sent_events import Step


def forms_of(candidate: str) -> list[str]:
    """Return a model's names with and without its provider: `openai/gpt-4o`, `gpt-4o`."""
    return [candidate, candidate.partition("/")[2]] if "/" in candidate else [candidate]


def by_form(candidates: Sequence[str], variants: Mapping[str, str]) -> dict[str, str]:
    """Return the candidate to call for each name that the portfolio may have for it; the first of
    two candidates with the same name counts.

    Args:
        variants: the candidate of each variant.
    """
    forms = {form: one for one in reversed(candidates) for form in forms_of(one)}
    return forms | {name: forms[base] for name, base in variants.items() if base in forms}


def signal_of(decision: Decision, forms: Mapping[str, str], plan: Sequence[Step]) -> Facts:
    """Return the signal of a decision.

    Args:
        forms: see `by_form`. plan: the calls that may follow each other; none: one call.
    """
    names = [model for model in (decision.model, *decision.fallbacks) if model in forms]
    called = dict.fromkeys([*names, *(step.model for step in plan)])
    return {
        "request_id": decision.request_id,
        "candidate": forms[decision.model],
        "model": decision.model,
        "fallbacks": [forms[model] for model in names[1:]],
        "failed": [],
        # Variants share a candidate: the best of them stands for it.
        "names": {forms[model]: model for model in reversed(names)},
        "params": {model: decision.call_of(model).params for model in called},
        "attempt": 0,
        "plan": [
            {
                "candidate": forms[step.model],
                "model": step.model,
                "verify": step.verify,
                "accept_at": step.accept_at,
            }
            for step in plan
        ],
    }


def next_best(signal: Facts, candidates: Sequence[str], fallback: str | None) -> Facts:
    """Return the signal of another attempt of the same call: the model that was chosen has
    failed.
    """
    following = following_of(signal)
    if following is not None and following["candidate"] in candidates:
        return following
    failed = {*signal["failed"], signal["candidate"]}
    left = [candidate for candidate in candidates if candidate not in failed] or candidates
    found = [candidate for candidate in signal["fallbacks"] if candidate in left]
    named = next((candidate for candidate in left if fallback in forms_of(candidate)), None)
    candidate = (*found, named, left[0])[0] or left[0]
    model = (signal.get("names") or {}).get(candidate, candidate)
    return {**signal, "failed": sorted(failed), "candidate": candidate, "model": model}


def named_in(signal: Facts, called: str) -> str:
    """Return the portfolio's name of a candidate, as the decision chose it."""
    own = signal.get("model") if called == signal["candidate"] else None
    name: str = own or (signal.get("names") or {}).get(called, called)
    return name
