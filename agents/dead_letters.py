"""Send refused events to the dead letter topic, with their bytes and the reason, and tell clients
the reason."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from pydantic import ValidationError
from pydantic_core import from_json

from ground.boundary import Produce
from ground.messages import Message, Raw, trace_of_message
from schemas import dlq, refusals
from schemas.dlq import DeadLetter
from schemas.event import encode
from schemas.refusals import EventRefused

LARGE_BYTES = 500_000
"""Bytes of a value above which a letter is sent by itself, compressed: with its headers the letter
would fill a batch of `streams.faust.outgoing` (512 KiB).
"""


class DeadLetters:
    """The dead letter writer of one agent.

    Args:
        prefix: prefix of the service's topics.
        stage: the agent's name, or the step that failed.
        send_large: delivers one record of any size, empty ones included.
        count: called with each reason, for the metrics.
    """

    def __init__(
        self,
        prefix: str,
        *,
        stage: str,
        send_large: Callable[..., Awaitable[object]],
        count: Callable[[str], None] = lambda reason: None,
    ) -> None:
        self._prefix = prefix
        self._stage = stage
        self._send_large = send_large
        self._count = count

    async def send(
        self, produce: Produce, message: Message, error: Exception
    ) -> list[Awaitable[object]]:
        """Dead-letter a source message and tell its router's clients; return the deliveries.

        Args:
            message: the source's message, with topic, partition, offset, key and value.
            error: the refusal; its `reason` names the dead letter, and its text must not quote the
                event.
        """
        letter = DeadLetter.of(
            error,
            topic=message.topic,
            partition=message.partition,
            offset=message.offset,
            stage=self._stage,
        )
        deliveries: list[Awaitable[object]] = []
        topic, trace = self._prefix + dlq.TOPIC, trace_of_message(message)
        headers = [*letter.headers(), *trace]
        # A usual send takes neither a large nor an empty record.
        if len(message.value or b"") > LARGE_BYTES or (
            message.key is None and message.value is None
        ):
            await self._send_large(topic, key=message.key, value=message.value, headers=headers)
        else:
            deliveries.append(await produce(topic, message.value, message.key, headers=headers))
        refusal = refusal_of(message, letter, topic=message.topic.removeprefix(self._prefix))
        if refusal is not None:
            key = refusal.router_id.encode()
            told = await produce(self._prefix + refusals.TOPIC, encode(refusal), key, headers=trace)
            deliveries.append(told)
        self._count(letter.reason)
        return deliveries


def refusal_of(message: Raw, letter: DeadLetter, *, topic: str) -> EventRefused | None:
    """Return the refusal that clients may see; None if the event's router can't be read.

    Args:
        message: the source's message; a parked one knows its ids even if its value is gone.
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
