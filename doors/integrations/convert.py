"""Convert the bytes of another system's payload, in any known form, to checked events."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from doors.integrations import cloudevents, langfuse, litellm_log, otel
from doors.integrations.found import Defaults, Found, Unconvertible
from ground.json_text import dumps, loads
from ground.json_values import Json
from schemas import CostReported, MalformedEvent, Reason, RewardObserved, decode
from schemas.event import Event

SCHEMAS: dict[str, type[CostReported] | type[RewardObserved]] = {
    "costs": CostReported,
    "rewards": RewardObserved,
}
"""Schema of the events that payloads become, by topic."""
Finder = Callable[[Json, Mapping[str, str]], list[Found]]


def finder_of(form: str, defaults: Defaults) -> Finder:
    """Return the function that finds events in documents of a form."""
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
    """Return the events of a payload as (topic without prefix, event); none if it holds no costs or
    rewards.

    The payload is one JSON document, an array of them, or one a line. It is taken as a whole or not
    at all.

    Raises:
        Unconvertible: some part of it cannot be mapped.
        MalformedEvent: some part of it makes no valid event.
    """
    events: list[tuple[str, Event]] = []
    for document in _documents(raw):
        try:
            found = finder(document, headers or {})
        # A finder expects a document of the right form. Only the error's type is reported: its text
        # may quote a prompt.
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise Unconvertible(f"the document has another form ({type(error).__name__})") from None
        for one in found:
            fields = {name: value for name, value in one.fields.items() if value is not None}
            events.append((one.topic, decode(SCHEMAS[one.topic], _dumps(fields))))
    return events


def _dumps(fields: dict[str, object]) -> bytes:
    try:
        return dumps(fields)
    except (TypeError, ValueError):
        raise Unconvertible("a field is not JSON") from None


def _documents(raw: bytes | None) -> list[Json]:
    try:
        found = loads(raw or b"")
        documents = found if isinstance(found, list) else [found]
    except ValueError as error:
        lines = [line for line in (raw or b"").splitlines() if line.strip()]
        try:
            # A single line that is not JSON is no list of lines, so the first error tells more.
            documents = [loads(line) for line in lines] if len(lines) > 1 else []
        except ValueError:
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
