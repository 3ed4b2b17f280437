"""Pass a partition's events on: groups through its lane, declarations beside them. An event on
which the worker fails is tried alone, and refused if it fails again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from agents.group import Batch, Group
from agents.lane.poison import alone, try_alone
from agents.parked import Parked
from agents.partition.partition import Partition
from agents.refusal_kinds import InternalError
from agents.taking.next_group import router_of
from ground.messages import Record

Declare = Callable[[Partition, list[Record]], Awaitable[None]]
"""Function that puts declarations in force. Raises InternalError."""


class Declarations(Batch):
    """A batch of declarations, which are put in force beside the groups."""

    __slots__ = ()
    name = "routers"


async def pass_groups(partition: Partition) -> None:
    """Pass the events of the agents' topics, group by group, until the partition is lost."""
    agents = partition.worker.agents

    def decode(name: str, records: list[Record]) -> Batch:
        return agents[name](partition, records)

    while True:
        if batches := await partition.lane.take(decode):
            try:
                partition.lane.apply(batches)
            except InternalError as error:
                for batch in batches:
                    await _each_alone(partition, batch, error)


async def _each_alone(partition: Partition, batch: Batch, error: InternalError) -> None:
    agent, lane = partition.worker.agents[batch.name], partition.lane

    async def step(messages: list[Record]) -> None:
        one = agent(partition, messages)
        await lane.under_way.room()
        while (preparation := one.preparation()) is not None:
            await preparation
            await lane.under_way.room()
        lane.apply([one])

    async def refuse(message: Record, error: InternalError) -> None:
        await _refuse(partition, message, error, [agent(partition, [message])])

    for message in batch.messages:
        await alone(message, step, refuse, error)


async def pass_declarations(partition: Partition, declare: Declare) -> None:
    """Pass declarations beside the groups: declarations come seldom, and take several record
    batches.
    """
    inbox, ports = partition.inbox, partition.ports

    async def step(records: list[Record]) -> None:
        await declare(partition, records)

    async def refuse(message: Record, error: InternalError) -> None:
        await _refuse(partition, message, error)

    while True:
        await inbox.declared.wait()
        inbox.declared.clear()
        while records := partition.lane.coming.records("routers", ports.limits.batch_size)[0]:
            await try_alone(records, step, refuse)
            inbox.finish("routers", records[-1].offset + 1)
            ports.meter.finished(Group([Declarations(records)], passed=[]))


async def _refuse(
    partition: Partition, message: Record, error: InternalError, batches: Sequence[Batch] = ()
) -> None:
    """Refuse a message on which this worker fails."""
    private = message.topic == partition.ports.outbox.topic["requests"]
    parked = Parked.of(message, error, router_id=router_of(message), private=private)
    await partition.give_up(parked, error, batches)
