"""Read OpenTelemetry (OTLP as JSON): usage of GenAI inference spans, and evaluation results as span
events or log records.

Semantic conventions for generative AI: attributes `gen_ai.usage.*`, event
`gen_ai.evaluation.result` with `gen_ai.evaluation.score.value`. A request is found by the attribute
`pb.request_id`, which the application sets, else by `gen_ai.response.id`. Spans of other operations
make no bills: an agent's repeats the tokens of the calls inside it.
"""

from __future__ import annotations

from collections.abc import Iterator

from doors.integrations.found import (
    Defaults,
    Found,
    Unconvertible,
    number,
    rfc3339,
    status_of,
)
from ground.json_values import Document, Json
from schemas import Reason

EVALUATED = "gen_ai.evaluation.result"
"""The event of OpenTelemetry's semantic conventions for generative AI."""
USAGE = ("gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens")
"""Attributes for the tokens of a call, by OpenTelemetry's semantic conventions for generative
AI."""
CACHED = "gen_ai.usage.cache_read.input_tokens"
"""Attribute for input tokens from a provider's cache, by the same conventions."""
FIRST_TOKEN = "gen_ai.response.time_to_first_chunk"
"""Attribute for the seconds to the first chunk, by the same conventions."""
NO_CALLS = frozenset(
    {
        "create_agent",
        "create_memory",
        "create_memory_store",
        "delete_memory",
        "delete_memory_store",
        "embeddings",
        "execute_tool",
        "invoke_agent",
        "invoke_workflow",
        "plan",
        "retrieval",
        "search_memory",
        "update_memory",
        "upsert_memory",
    }
)
"""Well-known values of `gen_ai.operation.name` that are not inference."""
KINDS = (("stringValue", str), ("intValue", int), ("doubleValue", float), ("boolValue", bool))
"""Fields of OTLP's `AnyValue` in JSON, and what they hold; 64-bit integers stand as text there."""


def found_in(document: Document, defaults: Defaults) -> list[Found]:
    """Return the bills and rewards of an export request of traces or of logs."""
    found = []
    for span in _records(document, "resourceSpans", "scopeSpans", "spans"):
        attributes = _attributes(span)
        # Only known non-inference is skipped, so that a future kind of call is billed.
        called = attributes.get("gen_ai.operation.name") not in NO_CALLS
        if called and any(name in attributes for name in USAGE):
            found.append(_bill(attributes, span, defaults))
        for event in span.get("events", []):
            evaluation = _attributes(event)
            if event.get("name") == EVALUATED and not _failed(evaluation):
                at = event.get("timeUnixNano")
                # An evaluation may omit its request: it belongs to the span that it is attached to.
                found.append(_reward({**attributes, **evaluation}, at, defaults))
    for record in _records(document, "resourceLogs", "scopeLogs", "logRecords"):
        attributes = _attributes(record)
        named = EVALUATED in (record.get("eventName"), attributes.get("event.name"))
        if named and not _failed(attributes):
            found.append(_reward(attributes, record.get("timeUnixNano"), defaults))
    return found


def _records(document: Document, outer: str, middle: str, inner: str) -> Iterator[Document]:
    for resource in document.get(outer, []):
        for scope in resource.get(middle, []):
            yield from scope.get(inner, [])


def _attributes(record: Document) -> Document:
    found = {}
    for attribute in record.get("attributes", []):
        value = attribute.get("value", {})
        for name, kind in KINDS:
            if name in value:
                found[attribute["key"]] = kind(value[name])
    return found


def _bill(attributes: Document, span: Document, defaults: Defaults) -> Found:
    error = attributes.get("error.type")
    # A failed call may report only its input tokens.
    unsaid = None if error is None else 0
    tokens = {name.rpartition(".")[2]: attributes.get(name, unsaid) for name in USAGE}
    started, ended = span.get("startTimeUnixNano"), span.get("endTimeUnixNano")
    lasted = None if not (started and ended) else (int(ended) - int(started)) / 1e6
    first = attributes.get(FIRST_TOKEN)
    return Found(
        "costs",
        {
            **_ids(attributes, defaults),
            **tokens,
            "model": attributes.get("pb.model"),
            "cached_input_tokens": attributes.get(CACHED),
            # An attempt that is answered replaces the bill of one that failed before it.
            "revision": int(error is None),
            "status": None if error is None else status_of(error),
            "latency_ms": lasted if lasted is None or lasted >= 0.0 else None,
            "first_token_ms": None if first is None else number(first, FIRST_TOKEN) * 1e3,
        },
    )


def _failed(evaluation: Document) -> bool:
    """Tell whether the evaluation itself failed; then it says nothing about the answer."""
    return "error.type" in evaluation and "gen_ai.evaluation.score.value" not in evaluation


def _reward(attributes: Document, at: Json, defaults: Defaults) -> Found:
    score = attributes.get("gen_ai.evaluation.score.value")
    if score is None:
        raise Unconvertible("gen_ai.evaluation.score.value: is missing", Reason.MISSING_FIELD)
    return Found(
        "rewards",
        {
            **_ids(attributes, defaults),
            "reward": number(score, "gen_ai.evaluation.score.value"),
            "source": attributes.get("pb.source", defaults.source),
            "model": attributes.get("pb.model"),
            "observed_at": rfc3339(at, "timeUnixNano") if at else None,
        },
    )


def _ids(attributes: Document, defaults: Defaults) -> Document:
    request_id = attributes.get("pb.request_id") or attributes.get("gen_ai.response.id")
    return {
        "router_id": attributes.get("pb.router_id", defaults.router_id),
        "request_id": request_id,
    }
