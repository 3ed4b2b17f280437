"""Deliver the answers of a group: decisions, dead letters, repeated declarations, and records
between pools and members.

A dead letter holds the bytes of the refused event and the reason; clients are told the reason
alone, on `pb.refusals`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from pydantic import ValidationError
from pydantic_core import from_json

from agents.group import Answers
from ground.boundary import Produce
from ground.messages import Message, Raw, headers_of, key_text, trace_of_message
from schemas import dlq, refusals
from schemas.dlq import DeadLetter
from schemas.event import encode
from schemas.families import FamilyEstimated
from schemas.headers import EPOCH, FORWARDED
from schemas.kin import KinNoted
from schemas.leases import LeaseNoted
from schemas.refusals import EventRefused

FAMILIES = "families"
"""Topic on which a family that is gone leaves a tombstone."""
TOPIC_OF = {LeaseNoted: "leases", KinNoted: "kin", FamilyEstimated: FAMILIES}
"""Topics of the records between pools or families and their members."""
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
            topic = self._prefix + refusals.TOPIC
            deliveries.append(await produce(topic, encode(refusal), key, headers=trace))
        self._count(letter.reason)
        return deliveries


@dataclass(frozen=True, slots=True)
class Outbox:
    """The sender of all messages of a worker's agents.

    Attributes:
        topic: full topic names by short names.
        produce: function that hands one record over to be sent.
        dead_letters: the dead letter writer of each source topic, by short name.
    """

    topic: Mapping[str, str]
    produce: Produce
    dead_letters: Mapping[str, DeadLetters]

    async def deliver(self, answers: Answers, *, epoch: int = -1) -> None:
        """Send all messages, and return when Kafka has them; `epoch` is the number of the
        partition's owner.
        """
        produce, topic = self.produce, self.topic
        # All messages are handed over first and then awaited together: one round trip per group.
        deliveries = [
            await produce(topic["routes"], value, router_id.encode(), headers=trace)
            for router_id, value, trace in answers.routes
        ]
        for message, router_id in answers.strays:
            again = _forwarded(message)
            deliveries.append(
                await produce(message.topic, message.value, router_id.encode(), headers=again)
            )
        for router_id, document, headers in answers.repeated:
            deliveries.append(
                await produce(topic["routers"], document, router_id.encode(), headers=headers)
            )
        for recipient, note in answers.notes:
            deliveries.append(
                await produce(
                    topic[FAMILIES if note is None else TOPIC_OF[type(note)]],
                    None if note is None else encode(note),
                    recipient.encode(),
                    headers=((EPOCH, b"%d" % epoch),),
                )
            )
        deliveries += await self._refuse(answers)
        await asyncio.gather(*deliveries)

    async def _refuse(self, answers: Answers) -> list[Awaitable[object]]:
        deliveries: list[Awaitable[object]] = []
        if answers.refused or answers.refused_later:
            writer = {self.topic[name]: letters for name, letters in self.dead_letters.items()}
            for message, error in (*answers.refused, *answers.refused_later):
                deliveries += await writer[message.topic].send(self.produce, message, error)
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
        key_text(message),
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


def _forwarded(message: Message) -> list[tuple[str, bytes]]:
    """Return the headers of a stray event that is forwarded."""
    return [*headers_of(message), (FORWARDED, b"1")]
