"""Read LiteLLM's standard logging payload, as its `generic_api` callback sends it: one object, an
array, or one a line.

A request is found by `pb_request_id` in the metadata that the caller gave, else by
`litellm_call_id`, else by `id`.
"""

from __future__ import annotations

from doors.integrations.found import Defaults, Found, Unconvertible, number, status_of
from ground.json_values import Document, Json
from schemas import Reason


def _ended(document: Document) -> Document:
    """Return how a call ended, and how long it took."""
    status = None
    if document.get("status") == "failure":
        error = document.get("error_information") or {}
        status = status_of(str(error.get("error_class") or error.get("error_code") or ""))
    started, ended = document.get("startTime"), document.get("endTime")
    found: Document = {"status": status}
    if started is not None and ended is not None:
        found["latency_ms"] = _milliseconds(started, ended)
        first = document.get("completionStartTime")
        # Without streaming this is the end of the answer.
        if first is not None and document.get("stream"):
            found["first_token_ms"] = _milliseconds(started, first)
    return found


def _cached(document: Document) -> Document:
    """Return how many input tokens came from the provider's cache, if the usage says so."""
    usage = (document.get("metadata") or {}).get("usage_object") or {}
    details = usage.get("prompt_tokens_details") or {}
    cached, tokens = details.get("cached_tokens"), document.get("prompt_tokens")
    if not isinstance(cached, int) or not isinstance(tokens, int) or not 0 <= cached <= tokens:
        return {}
    return {"cached_input_tokens": cached}


def _milliseconds(start: Json, end: Json) -> float | None:
    lasted = (number(end, "endTime") - number(start, "startTime")) * 1e3
    return round(lasted, 3) if lasted >= 0.0 else None


def found_in(document: Document, defaults: Defaults) -> list[Found]:
    """Return the bill of one call; a failed call costs what LiteLLM says, mostly nothing."""
    if "call_type" not in document and "response_cost" not in document:
        raise Unconvertible(
            "response_cost: is missing; this is not a standard logging payload",
            Reason.MISSING_FIELD,
        )
    metadata = document.get("metadata") or {}
    own = {
        # LiteLLM keeps a caller's metadata in one of the two, depending on how the call came in.
        **(metadata.get("spend_logs_metadata") or {}),
        **(metadata.get("requester_metadata") or {}),
    }
    cost = document.get("response_cost")
    bill: Document
    # LiteLLM writes 0, and the reason, if it knows no price: unknown is not free.
    if cost is None or (cost == 0 and document.get("response_cost_failure_debug_info")):
        bill = {
            "input_tokens": document.get("prompt_tokens"),
            "output_tokens": document.get("completion_tokens"),
        }
    else:
        bill = {"cost_usd": number(cost, "response_cost")}
    request_id = own.get("pb_request_id") or document.get("litellm_call_id") or document.get("id")
    router_id = own.get("pb_router_id") or defaults.router_id
    # An attempt that succeeds replaces the bill of one that failed before it.
    revision = int(document.get("status") != "failure")
    return [
        Found(
            "costs",
            {
                "router_id": router_id,
                "request_id": request_id,
                **bill,
                "model": own.get("pb_model"),
                "revision": revision,
                **_ended(document),
                **_cached(document),
            },
        )
    ]
