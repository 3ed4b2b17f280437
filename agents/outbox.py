"""Deliver the answers of a group: decisions, dead letters, repeated declarations, and records
between pools and members.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass

from agents.dead_letters import DeadLetters
from agents.group import Answers
from ground.boundary import Produce
from ground.messages import Message, headers_of
from schemas.event import encode
from schemas.families import FamilyEstimated
from schemas.headers import EPOCH, FORWARDED
from schemas.kin import KinNoted
from schemas.leases import LeaseNoted

FAMILIES = "families"
"""Topic on which a family that is gone leaves a tombstone."""
TOPIC_OF = {LeaseNoted: "leases", KinNoted: "kin", FamilyEstimated: FAMILIES}
"""Topics of the records between pools or families and their members."""


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


def _forwarded(message: Message) -> list[tuple[str, bytes]]:
    """Return the headers of a stray event that is forwarded."""
    return [*headers_of(message), (FORWARDED, b"1")]
