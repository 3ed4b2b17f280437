"""Langfuse scores, as its API takes them and as versions 2 and 3 of it return them: numeric ones in
[0, 1] and boolean ones; others need a mapping file.

A request is found by `metadata.pb_request_id`, else by the trace: give the trace the request's id.
"""

from __future__ import annotations

from doors.integrations.found import Defaults, Found, Unconvertible, number, rfc3339
from ground.json_values import Document
from schemas import Reason

SOURCES = {"ANNOTATION": "human", "EVAL": "judge"}
"""Source of a label, by Langfuse's `source`; for what came over its API the defaults name it."""


def found_in(document: Document, defaults: Defaults) -> list[Found]:
    """Return the reward that a score is, or those of a page of scores (`data`)."""
    scores = document["data"] if isinstance(document.get("data"), list) else [document]
    return [_reward(score, defaults) for score in scores]


def _reward(score: Document, defaults: Defaults) -> Found:
    if "value" not in score:
        raise Unconvertible("value: is missing; this is no score", Reason.MISSING_FIELD)
    if score.get("dataType", "NUMERIC") not in ("NUMERIC", "BOOLEAN"):
        raise Unconvertible(
            "dataType: only NUMERIC and BOOLEAN are rewards by themselves; map others with a "
            "mapping file"
        )
    value = score["value"]
    if score.get("dataType") == "BOOLEAN" and isinstance(value, bool):
        value = float(value)  # version 3; before it they were 0 and 1
    metadata = score.get("metadata") or {}
    at = score.get("timestamp")
    fields = {
        "router_id": metadata.get("pb_router_id", defaults.router_id),
        "request_id": metadata.get("pb_request_id") or _trace(score),
        "reward": number(value, "value"),
        "source": SOURCES.get(str(score.get("source")), defaults.source),
        "observed_at": rfc3339(at, "timestamp") if at else None,
    }
    return Found("rewards", fields)


def _trace(score: Document) -> object:
    """Return the trace that a score is of; version 3 names what it is of as its `subject`."""
    subject = score.get("subject") or {}
    if subject.get("kind") == "trace":
        return subject.get("id")
    return subject.get("traceId") or score.get("traceId")
