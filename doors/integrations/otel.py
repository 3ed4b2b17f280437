"""Read OpenTelemetry (OTLP as JSON): usage of GenAI inference spans, and evaluation results as span
events or log records.

Semantic conventions for generative AI: attributes `gen_ai.usage.*`, event
`gen_ai.evaluation.result` with `gen_ai.evaluation.score.value`; `otel_names` has the older names. A
request is found by the attribute `pb.request_id`, which the application sets, else by
`gen_ai.response.id`. Spans of other operations make no bills: an agent's repeats the tokens of the
calls inside it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from itertools import chain

from doors.integrations.otel_names import (
    ANSWERED,
    CALLED,
    EVALUATED,
    FIRST_TOKEN,
    PROVIDER,
    REQUEST,
    SCORE,
    attributes_of,
    first_of,
    is_call,
)
from doors.integrations.otel_usage import usage_of
from doors.integrations.payload_items import (
    Defaults,
    Found,
    Item,
    Unconvertible,
    either,
    number,
    of_score,
    other_model,
    rfc3339,
)
from ground.json_values import Document, Json
from paretobandit_client.outcomes import retry_after_of, status_of
from schemas import Reason

LEVELS = {
    "spans": ("resourceSpans", ("scopeSpans", "instrumentationLibrarySpans"), "spans"),
    "logs": ("resourceLogs", ("scopeLogs", "instrumentationLibraryLogs"), "logRecords"),
}
"""Fields of an export request, from the outside in; the older names of a scope as well."""
RETRY_AFTER = "http.response.header."
"""Attributes of a response's headers begin with it."""
FAILED = (2, "2", "STATUS_CODE_ERROR")
"""Codes of a span's status that is an error."""


def items_in(document: Document, defaults: Defaults) -> Iterator[Item]:
    """Yield the spans and log records of an export request, of one resource, of one scope, or a
    span alone. Raises Unconvertible: it is no OTLP."""
    wholes = {kind: _whole(kind, document) for kind in LEVELS}
    if all(either(whole, LEVELS[kind][0]) is None for kind, whole in wholes.items()):
        if either(document, "resourceMetrics") is not None:
            raise Unconvertible(
                "resourceMetrics: metrics hold no bills of single calls: send traces or logs",
                Reason.MISSING_FIELD,
            )
        raise Unconvertible(
            "this is not OTLP as JSON: it has neither resourceSpans nor resourceLogs",
            Reason.MISSING_FIELD,
        )
    for kind, whole in wholes.items():
        for path, record in _records(kind, whole):
            yield Item(
                partial(_alone, kind, path, record),
                tuple(_reads_of(kind, record, defaults)),
            )


def _whole(kind: str, document: Document) -> Document:
    """Return a document as an export request: file exporters and queues also write a resource, a
    scope or a span alone."""
    outer, middles, inner = LEVELS[kind]
    if any(either(document, name) is not None for name in middles):
        return {outer: [document]}
    if either(document, inner) is not None:
        return {outer: [{middles[0]: [document]}]}
    if kind == "spans" and either(document, "spanId") and "attributes" in document:
        return {outer: [{middles[0]: [{inner: [document]}]}]}
    return document


def _records(kind: str, whole: Document) -> Iterator[tuple[tuple[Document, Document], Json]]:
    """Yield each record, after the resource and the scope that it stands in."""
    outer, middles, inner = LEVELS[kind]
    for resource in either(whole, outer) or ():
        if not isinstance(resource, dict):
            yield ({}, {}), resource  # odd, and refused by itself
            continue
        for scope in chain.from_iterable(either(resource, middle) or () for middle in middles):
            if not isinstance(scope, dict):
                yield (resource, {}), scope
                continue
            for record in either(scope, inner) or ():
                yield (resource, scope), record


def _alone(kind: str, path: tuple[Document, Document], record: Json) -> Document:
    """Return an export request with one record."""
    outer, middles, inner = LEVELS[kind]
    resource, scope = (
        {name: one for name, one in whole.items() if not isinstance(one, list)} for whole in path
    )
    return {outer: [{**resource, middles[0]: [{**scope, inner: [record]}]}]}


def _reads_of(kind: str, record: Json, defaults: Defaults) -> Iterator[Callable[[], Found | None]]:
    if kind == "logs":
        yield partial(_of_log, record, defaults)
        return
    yield partial(_bill, record, defaults)
    for event in _events(record):
        if event.get("name") == EVALUATED:
            yield partial(_of_event, event, record, defaults)


def _events(span: Json) -> list[Document]:
    events = span.get("events") if isinstance(span, dict) else None
    return [one for one in events if isinstance(one, dict)] if isinstance(events, list) else []


def _of_log(record: Json, defaults: Defaults) -> Found | None:
    attributes = attributes_of(record)
    if EVALUATED not in (either(record, "eventName"), attributes.get("event.name")):
        return None
    return _reward(attributes, either(record, "timeUnixNano"), defaults)


def _of_event(event: Document, span: Document, defaults: Defaults) -> Found | None:
    # An evaluation may omit its request: it belongs to the span that it is attached to.
    attributes = {**attributes_of(span), **attributes_of(event)}
    return _reward(attributes, either(event, "timeUnixNano"), defaults)


def _bill(span: Json, defaults: Defaults) -> Found | None:
    attributes = attributes_of(span)
    if not is_call(attributes):
        return None
    status = _status(attributes, span)
    usage = usage_of(attributes)
    # A failed call may report only its input tokens.
    if status is not None and usage["input_tokens"] is not None and usage["output_tokens"] is None:
        usage["output_tokens"] = 0
    started, ended = either(span, "startTimeUnixNano"), either(span, "endTimeUnixNano")
    first = first_of(attributes, FIRST_TOKEN)
    return Found(
        "costs",
        {
            **_ids(attributes, defaults),
            **usage,
            "model": attributes.get("pb.model"),
            "answered_by": _answered_by(attributes) if status is None else None,
            # A process that has forgotten an attempt that failed replaces its bill.
            "revision": int(status is None),
            "status": status,
            "retry_after_seconds": _rest(attributes, status),
            "latency_ms": _milliseconds(started, ended),
            "first_token_ms": None if first is None else _scaled(first, 1e3),
        },
        attempt=_attempt(span, usage, status),
    )


def _answered_by(attributes: Document) -> str | None:
    """Return the model that answered in place of the called one; None: the called one did, or
    nothing says so."""
    called, answered = first_of(attributes, CALLED), first_of(attributes, ANSWERED)
    host = attributes.get("server.address")
    return other_model(called, answered, provider=first_of(attributes, PROVIDER), host=host)


def _attempt(span: Document, usage: Document, status: str | None) -> tuple[str, ...]:
    """Return a mark by which the attempts of a request differ; a span that is sent again has the
    same mark."""
    span_id, times = either(span, "spanId"), ("startTimeUnixNano", "endTimeUnixNano")
    if span_id:
        return str(either(span, "traceId")), str(span_id), str(status)
    return (*(str(either(span, name)) for name in times), str(usage), str(status))


def _status(attributes: Document, span: Document) -> str | None:
    """Return how a failed call ended; None: it was answered. Older instrumentations leave the
    error's name to the event of an exception."""
    error = attributes.get("error.type")
    code = (span.get("status") or {}).get("code")
    if error is None and code not in FAILED:
        return None
    thrown = [
        attributes_of(event).get("exception.type")
        for event in _events(span)
        if event.get("name") == "exception"
    ]
    name = next((str(one) for one in (error, *thrown) if one is not None), "")
    return status_of(name, first_of(attributes, ("http.response.status_code", "http.status_code")))


def _rest(attributes: Document, status: str | None) -> float | None:
    if status in (None, "cancelled"):
        return None
    headers = {
        name.removeprefix(RETRY_AFTER): value
        for name, value in attributes.items()
        if name.startswith(RETRY_AFTER)
    }
    return retry_after_of(headers, now=datetime.now(UTC))


def _milliseconds(started: Json, ended: Json) -> float | None:
    if not started or not ended:
        return None
    try:
        return (int(ended) - int(started)) / 1e6
    except (TypeError, ValueError):
        return math.nan  # left out and said, as every odd number beside the money is


def _scaled(value: Json, scale: float) -> float:
    try:
        return number(value, "") * scale
    except Unconvertible:
        return math.nan


def _reward(attributes: Document, at: Json, defaults: Defaults) -> Found | None:
    value, name = attributes.get(SCORE), attributes.get("gen_ai.evaluation.name")
    # An evaluation that itself failed says nothing about the answer.
    if value is None and "error.type" in attributes:
        return None
    score = None if name is None else str(name)
    with of_score(score):
        if value is None:
            raise Unconvertible(f"{SCORE}: is missing", Reason.MISSING_FIELD)
        return Found(
            "rewards",
            {
                **_ids(attributes, defaults),
                "reward": number(value, SCORE),
                "source": attributes.get("pb.source") or defaults.source,
                "model": attributes.get("pb.model"),
                "observed_at": rfc3339(at, "timeUnixNano") if at and str(at) != "0" else None,
            },
            score=score,
        )


def _ids(attributes: Document, defaults: Defaults) -> Document:
    return {
        "router_id": attributes.get("pb.router_id") or defaults.router_id,
        "request_id": first_of(attributes, REQUEST),
    }
