"""The partitions of one worker, as they come and go. While the worker has a partition, its events
are applied: groups in the lane, and declarations apart from the groups. An event on which the
worker fails is tried alone, and refused if it fails again.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence

from agents.group import Batch, Group
from agents.lane.poison import alone, try_alone
from agents.partition.partition import Agents, Partition, Worker
from agents.ports import Ports
from agents.refusal_kinds import InternalError
from agents.table.parking import Parked
from agents.taking.next_group import router_of
from ground.messages import Record
from router_state.changes import Alert

log = logging.getLogger(__name__)

Declare = Callable[[Partition, list[Record]], Awaitable[None]]
"""Function that puts declarations in force. Raises InternalError."""


class Declarations(Batch):
    """A batch of declarations, which are put in force apart from the groups."""

    __slots__ = ()
    name = "routers"


class Partitions(Worker):
    """The partitions that this worker owns and has recovered.

    Attributes:
        held: partitions whose bills and rewards are not fetched for now.
    """

    def __init__(self, ports: Ports, agents: Agents, declare: Declare) -> None:
        super().__init__(ports, agents)
        self._declare = declare
        self.held: frozenset[int] = frozenset()
        # Alerts of partitions that were lost before the alerts were published.
        self._alerts: list[tuple[str, Alert]] = []

    async def recovered(self, numbers: frozenset[int]) -> None:
        """Index the routers of partitions that have just been recovered; call before any event
        flows."""
        new = [self._make(number) for number in numbers - self._partitions.keys()]
        for partition in new:
            await partition.read_again()
        # Partitions are shown when all are complete: until then, a request whose value is still
        # being read would be taken for one without a body.
        for partition in new:
            if partition.table.owned:  # it may have been lost meanwhile
                self._start(partition)
        for partition in self:
            partition.lane.under_way.look_again()

    def _make(self, number: int) -> Partition:
        partition = Partition(number, self)
        if partition.watermarks.unreadable:
            log.error(
                "what the state of partition %d contains can't be read (%s): events that were not "
                "acknowledged are taken in again",
                number,
                partition.watermarks.unreadable,
            )
        partition.watermarks.require_topics(self.ports.outbox.topic.values())
        return partition

    def _start(self, partition: Partition) -> None:
        self._partitions[partition.number] = partition
        partition.undelivered = [parked for parked in partition.parking if parked.refused]
        partition.news.routers.update(partition.routers)
        partition.lane.spawn(_pass_groups(partition))
        partition.lane.spawn(_pass_declarations(partition, self._declare))

    def lost(self, numbers: frozenset[int]) -> None:
        """Forget everything about partitions that no longer belong to this worker."""
        for number in numbers:
            if (partition := self._partitions.pop(number, None)) is not None:
                partition.lane.stop()
                self._alerts += partition.news.take_alerts()

    def take_alerts(self) -> list[tuple[str, Alert]]:
        """Return the alerts to be published, and forget them."""
        taken, self._alerts = self._alerts, []
        return taken + super().take_alerts()

    async def forget_delivered(self) -> None:
        """Forget the refusals whose dead letters were delivered: the next owner would repeat
        them."""
        for partition in self:
            # A partition that a rebalance has closed takes no more groups.
            if partition.lane.delivered and partition.table.open:
                async with partition.lane.group():
                    pass

    def contained(self, topic: str, number: int) -> int:
        """Return the last offset of a source that a partition's state contains; −1 before the
        first, and for a partition of another worker.
        """
        return self[number].watermarks.of(topic) if number in self else -1

    async def hold_back(self) -> None:
        """Stop fetching bills and rewards of partitions where too many wait for requests that are
        still to be answered.

        No agent waits for room: its queue would fill up and keep requests from the worker.
        """
        self.held = frozenset(one.number for one in self if self._is_crowded(one))
        self.ports.log.hold(self.held)

    def _is_crowded(self, partition: Partition) -> bool:
        # Fetching goes on at half the limit: at the limit itself every event would stop it again.
        waiting, limit = len(partition.parking), self.ports.limits.parked_events
        most = limit // 2 if partition.number in self.held else limit
        return partition.lags() and waiting >= most


async def _pass_groups(partition: Partition) -> None:
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


async def _pass_declarations(partition: Partition, declare: Declare) -> None:
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
    await partition.refuse_failed(parked, error, batches)
