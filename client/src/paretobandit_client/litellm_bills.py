"""Read bills from what LiteLLM tells of a call: dollars, tokens, times, and how it failed."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, TypeAlias

import litellm

from paretobandit_client.answering import names_itself
from paretobandit_client.outcomes import retry_after_of, status_of

log = logging.getLogger(__name__)
Theirs: TypeAlias = Any
"""Something of LiteLLM's, which has no types of its own."""
Facts = Mapping[str, Theirs]
"""Facts of a call, from LiteLLM and its callers: names with values of any type."""


def metadata_of(kwargs: Facts) -> Facts:
    """Return the metadata that LiteLLM keeps of a call; some of LiteLLM's paths have another name
    for the metadata.
    """
    parameters = kwargs.get("litellm_params") or {}
    found = (
        one.get(name) for one in (parameters, kwargs) for name in ("metadata", "litellm_metadata")
    )
    return next(
        (one for one in found if isinstance(one, Mapping) and "routing_plugin_signals" in one), {}
    )


def cost_of(kwargs: Facts, response: Theirs) -> dict[str, Theirs] | None:
    """Return a bill in dollars, or in tokens where LiteLLM knows no price; None where neither is
    known, which is not the same as free."""
    usd = _number(kwargs.get("response_cost"))
    # LiteLLM has computed costs below 0, and those that are no number: then the tokens count.
    if 0.0 < usd < math.inf or (usd == 0.0 and _is_free(kwargs)):
        return {"cost_usd": usd}
    tokens = _tokens(response)
    return None if not any(tokens) else {"input_tokens": tokens[0], "output_tokens": tokens[1]}


def _number(said: Theirs) -> float:
    try:
        return math.nan if said is None else float(said)
    except (TypeError, ValueError):
        return math.nan


def _tokens(response: object) -> list[Theirs]:
    """Return the input and output tokens of a call, by the names of chat completions or by those of
    the responses and messages APIs, which some of LiteLLM's paths hand over as they are."""
    usage = held_in(response, "usage")
    names = ("prompt_tokens", "input_tokens"), ("completion_tokens", "output_tokens")
    return [held_in(usage, chat) or held_in(usage, other) or 0 for chat, other in names]


def held_in(holder: object, name: str) -> Theirs:
    return holder.get(name) if isinstance(holder, Mapping) else getattr(holder, name, None)


def _is_free(kwargs: Facts) -> bool:
    """Tell whether a cost of 0 is one: of an answer from LiteLLM's own cache, or of a model whose
    price LiteLLM knows. A router registers models without a price as well, and they cost 0."""
    model, parameters = str(kwargs.get("model")), kwargs.get("litellm_params") or {}
    names = (
        (parameters.get("model_info") or {}).get("id"),
        metadata_of(kwargs).get("deployment"),
        model,
        f"{kwargs.get('custom_llm_provider')}/{model}",
    )
    known = [one for name in names if name for one in (litellm.model_cost.get(name) or {}).items()]
    priced = any("_cost_per_" in field and price is not None for field, price in known)
    return priced or bool(kwargs.get("cache_hit"))


def cached_of(response: object) -> dict[str, int]:
    """Return how many input tokens came from the provider's cache, if known."""
    usage = held_in(response, "usage")
    cached = held_in(held_in(usage, "prompt_tokens_details"), "cached_tokens")
    tokens = held_in(usage, "prompt_tokens")
    if not isinstance(cached, int) or not isinstance(tokens, int):
        return {}
    if not 0 <= cached <= tokens:
        log.warning("cached tokens are more than all input tokens, and were left out of the bill")
        return {}
    return {"cached_input_tokens": cached}


def answered_by_of(kwargs: Facts, response: object) -> dict[str, str]:
    """Return which model answered, if the provider says so."""
    parameters, name = kwargs.get("litellm_params") or {}, held_in(response, "model")
    provider = kwargs.get("custom_llm_provider") or parameters.get("custom_llm_provider")
    own = names_itself(provider, parameters.get("api_base"))
    return {"answered_by": name} if own and isinstance(name, str) and name else {}


def took_of(kwargs: Mapping[str, object], start: object, end: object) -> dict[str, float]:
    """Return the seconds of a call, and the seconds until its first token, from LiteLLM's times."""
    times = {"latency_ms": end, "first_token_ms": kwargs.get("completion_start_time")}
    return {
        name: (time - start).total_seconds() * 1e3
        for name, time in times.items()
        if isinstance(start, datetime) and isinstance(time, datetime)
    }


def failed_of(kwargs: Mapping[str, object]) -> dict[str, object]:
    """Return how a call failed, by the error that LiteLLM hands over."""
    error = kwargs.get("exception")
    limiter = getattr(error, "category", None)
    # LiteLLM's own limits are of the caller's key, and say nothing about the model.
    if str(getattr(limiter, "value", limiter)).startswith("litellm_"):
        return {"status": "cancelled"}
    status = status_of(type(error).__name__, getattr(error, "status_code", None))
    held = (getattr(error, "response", None), error)
    headers = [
        found
        for one in held
        for name in ("headers", "litellm_response_headers")
        if isinstance(found := getattr(one, name, None), Mapping)
    ]
    now = datetime.now(UTC)
    rests = (retry_after_of(one, now=now) for one in headers)
    rest = next((seconds for seconds in rests if seconds is not None), None)
    if rest is None or status == "cancelled":
        return {"status": status}
    return {"status": status, "retry_after_seconds": rest}
