"""The partitions of one worker, as they come and go."""

from __future__ import annotations

import logging

from agents.partition.partition import Agents, Partition, Worker
from agents.partition.passing import Declare, pass_declarations, pass_groups
from agents.ports import Ports
from router_state.changes import Alert

log = logging.getLogger(__name__)


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
        partition.lane.spawn(pass_groups(partition))
        partition.lane.spawn(pass_declarations(partition, self._declare))

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
