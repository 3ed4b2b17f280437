"""Read LiteLLM's standard logging payload, as its `generic_api` callback sends it: one object, an
array, or one a line.

A request is found by `pb_request_id` in the metadata that the caller gave, else by
`litellm_call_id`, else by `id`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import UTC, datetime

from doors.integrations.payload_items import (
    Defaults,
    Found,
    Item,
    Unconvertible,
    number,
    object_of,
    other_model,
)
from ground.json_values import Document, Json
from paretobandit_client.outcomes import retry_after_of, status_of
from schemas import Reason

OF_AN_ATTEMPT = (
    "id",
    "litellm_call_id",
    "status",
    "startTime",
    "endTime",
    "model_id",
    "response_cost",
)
"""Fields that tell the attempts of a request apart; a payload that is sent again has the same."""


def items_in(document: Document, defaults: Defaults) -> Iterator[Item]:
    """Yield the bill of one call; a failed call has the cost that LiteLLM names, mostly 0."""
    if "call_type" not in document and "response_cost" not in document:
        raise Unconvertible(
            "this is not LiteLLM's standard logging payload: it has neither call_type nor "
            "response_cost",
            Reason.MISSING_FIELD,
        )
    yield Item(lambda: document, (lambda: _bill(document, defaults),))


def _bill(document: Document, defaults: Defaults) -> Found:
    metadata = object_of(document.get("metadata"))
    own = {
        # LiteLLM keeps a caller's metadata in one of the two, depending on how the call came in.
        **object_of(metadata.get("spend_logs_metadata")),
        **object_of(metadata.get("requester_metadata")),
    }
    cached, notes = _cached(document)
    return Found(
        "costs",
        {
            "router_id": own.get("pb_router_id") or defaults.router_id,
            "request_id": own.get("pb_request_id")
            or document.get("litellm_call_id")
            or document.get("id"),
            **_money(document),
            "cached_input_tokens": cached,
            "model": own.get("pb_model"),
            "answered_by": _answered_by(document),
            "attempt": own.get("pb_attempt"),
            # A process that has forgotten an attempt that failed replaces its bill.
            "revision": int(document.get("status") != "failure"),
            **_ended(document),
        },
        attempt=tuple(str(document.get(name)) for name in OF_AN_ATTEMPT),
        notes=notes,
    )


def _answered_by(document: Document) -> str | None:
    """Return the model that answered in place of the called one, see `other_model`."""
    return other_model(
        document.get("model"),
        object_of(document.get("response")).get("model"),
        provider=document.get("custom_llm_provider"),
        host=document.get("api_base"),
    )


def _money(document: Document) -> Document:
    """Return dollars, or tokens where no price is known. Raises Unconvertible: neither is."""
    cost = document.get("response_cost")
    # LiteLLM writes 0, and the reason, if it knows no price: unknown is not free.
    if cost is not None and not (cost == 0 and document.get("response_cost_failure_debug_info")):
        return {"cost_usd": number(cost, "response_cost")}
    tokens = document.get("prompt_tokens"), document.get("completion_tokens")
    if not any(tokens) and document.get("status") == "failure":
        return {"cost_usd": 0.0}  # a call that failed mostly cost nothing, and how it failed counts
    if not any(tokens):
        raise Unconvertible(
            "response_cost: neither a price nor a usage is known, which is not the same as free",
            Reason.MISSING_FIELD,
        )
    return {"input_tokens": tokens[0], "output_tokens": tokens[1]}


def _ended(document: Document) -> Document:
    """Return how a call ended, and how long it took."""
    found: Document = {}
    if document.get("status") == "failure":
        found["status"] = _status(object_of(document.get("error_information")))
        hidden = object_of(document.get("hidden_params"))
        headers = object_of(hidden.get("additional_headers"))
        bare = {name.removeprefix("llm_provider-"): value for name, value in headers.items()}
        if found["status"] != "cancelled":
            found["retry_after_seconds"] = retry_after_of(bare, now=datetime.now(UTC))
    started, ended = document.get("startTime"), document.get("endTime")
    found["latency_ms"] = _milliseconds(started, ended)
    # Without streaming the first token comes at the end of the answer.
    if document.get("stream"):
        found["first_token_ms"] = _milliseconds(started, document.get("completionStartTime"))
    return found


def _status(error: Document) -> str:
    # LiteLLM's own limits are of the caller's key, and say nothing about the model.
    if str(error.get("error_rate_limit_category")).startswith("litellm_"):
        return "cancelled"
    return status_of(str(error.get("error_class") or ""), error.get("error_code"))


def _cached(document: Document) -> tuple[Json, tuple[str, ...]]:
    """Return how many input tokens came from the provider's cache, if the usage says so, and what
    is odd about it."""
    usage = object_of(object_of(document.get("metadata")).get("usage_object"))
    cached = object_of(usage.get("prompt_tokens_details")).get("cached_tokens")
    tokens = document.get("prompt_tokens")
    # Compared here, because a bill in dollars holds no other tokens.
    if isinstance(cached, int) and isinstance(tokens, int) and cached > tokens:
        return None, ("cached_tokens are more than prompt_tokens, and were left out",)
    return cached, ()


def _milliseconds(start: Json, end: Json) -> Json:
    if start is None or end is None:
        return None
    try:
        return round((number(end, "endTime") - number(start, "startTime")) * 1e3, 3)
    except Unconvertible:
        return math.nan  # left out and said, as every odd number beside the money is
