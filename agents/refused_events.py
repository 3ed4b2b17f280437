"""Find the router and request of a refused event."""

from __future__ import annotations

from pydantic import ValidationError
from pydantic_core import from_json

from ground.messages import Raw
from schemas.dlq import DeadLetter
from schemas.refusals import EventRefused


def refusal_of(message: Raw, letter: DeadLetter, *, topic: str) -> EventRefused | None:
    """Return the refusal that clients may see; None if the event's router can't be read.

    Args:
        message: the source's message; a parked one knows its ids, also where its value is gone.
        topic: the source topic's name without the prefix.
    """
    named = _named(message.value)
    routers: tuple[object, ...] = (
        named.get("router_id"),
        getattr(message, "router_id", None),
        _text(message.key),
    )
    for router_id in routers:
        for request_id in (named.get("request_id"), getattr(message, "request_id", None), None):
            try:
                return EventRefused.model_validate(
                    {
                        "router_id": router_id,
                        "request_id": request_id,
                        "topic": topic,
                        "partition": letter.partition,
                        "offset": letter.offset,
                        "reason": letter.reason,
                        "message": letter.message,
                    }
                )
            except ValidationError:
                continue
    return None


def _named(value: bytes | None) -> dict[str, object]:
    try:
        found = from_json(value or b"")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _text(key: bytes | None) -> str:
    return (key or b"").decode(errors="replace")
