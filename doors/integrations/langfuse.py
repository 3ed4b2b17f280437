"""Read Langfuse scores, as its API takes them and as versions 2 and 3 return them. Numeric scores
in [0, 1] and boolean ones are read; others need a mapping file.

A request is found by `metadata.pb_request_id`, else by the trace, which then must have the
request's id.
"""

from __future__ import annotations

from doors.integrations.found import Defaults, Found, Unconvertible, number, rfc3339
from ground.json_values import Document
from schemas import Reason

SOURCES = {"ANNOTATION": "human", "EVAL": "judge"}
"""Source of a label, by Langfuse's `source`; scores that came over its API get the default."""


def found_in(document: Document, defaults: Defaults) -> list[Found]:
    """Return the reward of a score, or the rewards of a page of scores (`data`)."""
    scores = document["data"] if isinstance(document.get("data"), list) else [document]
    return [_reward(score, defaults) for score in scores]


def _reward(score: Document, defaults: Defaults) -> Found:
    if "value" not in score:
        raise Unconvertible("value: is missing, so this is not a score", Reason.MISSING_FIELD)
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
    """Return the trace of a score; version 3 names it as the score's `subject`."""
    subject = score.get("subject") or {}
    if subject.get("kind") == "trace":
        return subject.get("id")
    return subject.get("traceId") or score.get("traceId")
