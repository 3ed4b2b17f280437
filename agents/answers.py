"""What a batch has to say once its changes are durable, and to whom."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from agents.dead_letters import DeadLetters
from agents.intake import forwarded
from agents.parked import Parked
from ground.boundary import Outbox
from ground.messages import Record
from ground.traces import Headers


@dataclass(slots=True)
class Answers:
    """What a batch has to deliver after its changes are durable.

    Attributes:
        routes: (router_id, value, the request's trace) for `pb.routes`.
        strays: (message, router_id): events of other partitions, to be sent on.
        refused: (message, error): refusals that will be the same whenever the event is read.
        refused_later: (parked event, error): refusals that are kept until they are delivered.
        answered_later: parked requests that have their decision, kept until it is delivered.
        declared_meanwhile: partition and router_id of requests that wait only for their prompts to
            be encoded.
    """

    routes: list[tuple[str, bytes, Headers]] = field(default_factory=list)
    strays: list[tuple[Record, str]] = field(default_factory=list)
    refused: list[tuple[Record, Exception]] = field(default_factory=list)
    refused_later: list[tuple[Parked, Exception]] = field(default_factory=list)
    answered_later: list[Parked] = field(default_factory=list)
    declared_meanwhile: list[tuple[int, str]] = field(default_factory=list)

    @property
    def delivered(self) -> list[Parked]:
        """Return what was kept until its answer is delivered, to be forgotten with the next
        commit."""
        return [parked for parked, _ in self.refused_later] + self.answered_later

    async def deliver(
        self, outbox: Outbox, *, topic: Mapping[str, str], dead_letters: Mapping[str, DeadLetters]
    ) -> None:
        """Send all of it, and return when Kafka has it.

        Args:
            topic: full topic names by their short ones.
            dead_letters: the dead letter writer of each source topic, by short name.
        """
        writer = {full: dead_letters[name] for name, full in topic.items() if name in dead_letters}
        # All are handed over, then waited for once: a round trip a batch, not one a record.
        for message, router_id in self.strays:
            await outbox.send(
                message.topic,
                key=router_id.encode(),
                value=message.value,
                headers=forwarded(message),
            )
        for router_id, value, trace in self.routes:
            await outbox.send(topic["routes"], key=router_id.encode(), value=value, headers=trace)
        for message, error in self.refused:
            await writer[message.topic].send(outbox, message, error)
        for parked, error in self.refused_later:
            await writer[parked.topic].send(outbox, parked, error)
        await outbox.delivered()
