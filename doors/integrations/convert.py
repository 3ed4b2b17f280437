"""Convert the bytes of a foreign payload to checked events, whichever form it has."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import orjson

from doors.integrations import cloudevents, langfuse, litellm_log, otel
from doors.integrations.found import Defaults, Found, Unconvertible
from ground.json_values import Json
from schemas import CostReported, MalformedEvent, Reason, RewardObserved, decode
from schemas.event import Event

SCHEMAS: dict[str, type[CostReported] | type[RewardObserved]] = {
    "costs": CostReported,
    "rewards": RewardObserved,
}
"""Event that a payload becomes, by topic."""
Finder = Callable[[Json, Mapping[str, str]], list[Found]]


def finder_of(form: str, defaults: Defaults) -> Finder:
    """Return what finds events in the documents of a known form."""
    if form == "cloudevents":
        return lambda document, headers: cloudevents.found_in(document, defaults, headers)
    found_in = {
        "otel": otel.found_in,
        "litellm": litellm_log.found_in,
        "langfuse": langfuse.found_in,
    }[form]
    return lambda document, headers: found_in(document, defaults)


def convert(
    raw: bytes | None, finder: Finder, *, headers: Mapping[str, str] | None = None
) -> list[tuple[str, Event]]:
    """Return the events of a payload, (topic without prefix, event); none where it says nothing of
    costs or rewards.

    A payload is taken as a whole or not at all: one JSON document, an array of them, or a line
    each.

    Raises:
        Unconvertible: some part of it cannot be mapped.
        MalformedEvent: some part of it makes no valid event.
    """
    events: list[tuple[str, Event]] = []
    for document in _documents(raw):
        try:
            found = finder(document, headers or {})
        # A finder takes a document apart as it should be. Its error names the kind alone: the text
        # may quote a prompt.
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise Unconvertible(f"the document has another form ({type(error).__name__})") from None
        for one in found:
            fields = {name: value for name, value in one.fields.items() if value is not None}
            events.append((one.topic, decode(SCHEMAS[one.topic], _dumps(fields))))
    return events


def _dumps(fields: dict[str, object]) -> bytes:
    try:
        return orjson.dumps(fields)
    except orjson.JSONEncodeError:
        raise Unconvertible("a field is no JSON") from None


def _documents(raw: bytes | None) -> list[Json]:
    try:
        found = orjson.loads(raw or b"")
        documents = found if isinstance(found, list) else [found]
    except orjson.JSONDecodeError as error:
        lines = [line for line in (raw or b"").splitlines() if line.strip()]
        try:
            # One line that is no JSON is no list of lines: the first error tells more about it.
            documents = [orjson.loads(line) for line in lines] if len(lines) > 1 else []
        except orjson.JSONDecodeError:
            documents = []
        if not documents:
            raise MalformedEvent(
                Reason.MALFORMED_JSON, f"neither JSON nor a line of JSON each: {error}"
            ) from None
    if not all(isinstance(document, dict) for document in documents):
        raise MalformedEvent(
            Reason.MALFORMED_EVENT, "not an object, nor an array or lines of objects"
        )
    return documents
