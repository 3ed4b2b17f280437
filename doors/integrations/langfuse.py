"""Read Langfuse scores, as its API and its ingestion batches take them, as versions 2 and 3 return
them, and as exports spell them. Numeric scores in [0, 1] and boolean ones are read; others need a
mapping file.

A request is found by `metadata.pb_request_id`, else by the trace, which then must have the
request's id. The score of a session is one of all its requests.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from doors.integrations.payload_items import (
    Defaults,
    Found,
    Item,
    Unconvertible,
    either,
    number,
    object_of,
    of_score,
    person_of,
    rfc3339,
)
from ground.json_values import Document, Json
from schemas import Reason
from schemas.label_sources import PERSON

ANNOTATION = "ANNOTATION"
"""Langfuse's `source` of a score that a person gave."""
SOURCES = {ANNOTATION: "human", "EVAL": "judge"}
"""Source of a label, by Langfuse's `source`; scores that came over its API get the default."""
READ = (None, "NUMERIC", "BOOLEAN")
"""Data types of scores that are rewards by themselves."""


def items_in(document: Document, defaults: Defaults) -> Iterator[Item]:
    """Yield a score, the scores of a page (`data`), or those of an ingestion batch (`batch`)."""
    page, batch = document.get("data"), document.get("batch")
    if isinstance(page, list):
        for score in page:
            yield _item(score, {"data": [score]}, defaults)
    elif isinstance(batch, list):
        for event in batch:
            # The other events of a batch are traces and observations.
            if isinstance(event, dict) and event.get("type") == "score-create":
                yield _item(event.get("body"), {"batch": [event]}, defaults)
    elif "value" in document or "stringValue" in document:
        yield _item(document, document, defaults)
    else:
        raise Unconvertible(
            "this is not a Langfuse score: it has no value, and neither data nor batch",
            Reason.MISSING_FIELD,
        )


def _item(score: Json, alone: Document, defaults: Defaults) -> Item:
    return Item(lambda: alone, (lambda: _reward(score, defaults),))


def _reward(score: Json, defaults: Defaults) -> Found:
    if not isinstance(score, dict):
        raise Unconvertible("is not an object", Reason.MALFORMED_EVENT)
    name, score_id = score.get("name"), score.get("id")
    with of_score(name):
        return Found(
            "rewards",
            _fields(score, defaults),
            score=name,
            label_id=None if score_id is None else str(score_id),
        )


def _fields(score: Document, defaults: Defaults) -> Document:
    kind, value = either(score, "dataType"), score.get("value")
    if kind not in READ:
        raise Unconvertible(
            "dataType: only NUMERIC and BOOLEAN are rewards by themselves; map others with a "
            "mapping file"
        )
    if value is None:
        raise Unconvertible("value: is missing, so this is not a score", Reason.MISSING_FIELD)
    if kind != "NUMERIC" and isinstance(value, bool):
        value = float(value)  # version 3; before it they were 0 and 1
    metadata, at = object_of(score.get("metadata")), score.get("timestamp")
    request_id = traced(score)
    return {
        "router_id": metadata.get("pb_router_id") or defaults.router_id,
        "request_id": request_id,
        "session_id": None if request_id else _session(score),
        "reward": number(value, "value"),
        "source": _source(score, defaults),
        "observed_at": rfc3339(at, "timestamp") if at else None,
        "revision": _edited(score),
    }


def _source(score: Document, defaults: Defaults) -> str:
    """Return the source of a score: of an annotation it names who has annotated."""
    source = SOURCES.get(str(score.get("source")), defaults.source)
    by = person_of(either(score, "authorUserId")) if score.get("source") == ANNOTATION else None
    return source if by is None else f"{source}{PERSON}{by}"


def traced(score: Document) -> object:
    """Return the request that a score is of; None: it is one of a session."""
    return object_of(score.get("metadata")).get("pb_request_id") or _trace(score)


def _trace(score: Document) -> object:
    """Return the trace of a score; version 3 names it as the score's `subject`."""
    subject = score.get("subject") or {}
    if subject.get("kind") == "trace":
        return subject.get("id")
    return either(subject, "traceId") or either(score, "traceId")


def _session(score: Document) -> object:
    subject = score.get("subject") or {}
    if subject.get("kind") == "session":
        return subject.get("id")
    return either(score, "sessionId")


def _edited(score: Document) -> int:
    """Return how many seconds after its creation a score was changed: a later change is a higher
    revision, whoever reads it."""
    created, updated = either(score, "createdAt"), either(score, "updatedAt")
    try:
        between = datetime.fromisoformat(updated) - datetime.fromisoformat(created)
    except (TypeError, ValueError):
        return 0
    return max(int(between.total_seconds()), 0)
