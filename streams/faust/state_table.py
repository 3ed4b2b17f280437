"""The durable table as Faust sees it: recovery fills it from its changelog."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Protocol

import faust
from faust.stores.memory import Store
from faust.types import TP, AppT

from ground.boundary import fatal
from ground.messages import Record

log = logging.getLogger(__name__)


class Partitions(Protocol):
    """The partitions of this worker, which Faust does not know; `States` implements them."""

    @property
    def owned(self) -> frozenset[int]:
        """Return the partitions that this worker has."""

    def recovers_from(self, number: int) -> int:
        """Return the last offset that a partition contains, -1 for a new one."""

    async def assign(self, numbers: Iterable[int]) -> None:
        """Take over a new assignment."""

    def restore(self, records: Iterable[Record]) -> None:
        """Apply records of the changelog."""

    async def recovered(self, ends: Mapping[int, int]) -> None:
        """Take over the partitions once they were read to these ends."""

    async def close(self) -> None:
        """Return when all batches have landed, and let no more groups be applied."""


class StateTable(faust.Table):  # type: ignore[misc]
    """A table that holds no records: it handles the recovery, and its partitions hold the
    records.
    """

    def __init__(self, app: AppT, partitions: Partitions, *, name: str, count: int) -> None:
        super().__init__(app, name=name, partitions=count, key_type=bytes, value_type=bytes)
        self._held = partitions

    @cached_property
    def data(self) -> Store:
        """Return Faust's own store, which stays empty. Finding it by its URL would search the
        metadata of all packages.
        """
        return Store(self.app.conf.store, self.app, self, loop=self.loop)

    def persisted_offset(self, tp: TP) -> int:
        """Return the last offset contained; recovery reads what follows, all of it for a new
        partition.
        """
        return self._held.recovers_from(tp.partition)

    async def on_rebalance(
        self,
        assigned: set[TP],
        revoked: set[TP],
        newly_assigned: set[TP],
        generation_id: int = 0,
    ) -> None:
        """Drop the partitions that were assigned to other workers."""
        await super().on_rebalance(assigned, revoked, newly_assigned, generation_id)
        self.app.session.join()
        partitions = sorted(
            tp.partition for tp in assigned if tp.topic == self.changelog_topic_name
        )
        log.info("assigned partitions=%s", partitions)
        await self._held.assign(partitions)

    def restore(self, records: Iterable[Record]) -> None:
        """Apply recovered records."""
        # Faust logs an error that is raised while it fetches, and fetches on.
        with fatal():
            self._held.restore(records)

    async def on_recovery_completed(self, active_tps: set[TP], standby_tps: set[TP]) -> None:
        """Fence the recovered partitions and tell the agents, before the first event flows."""
        await super().on_recovery_completed(active_tps, standby_tps)
        highwaters = self.app.tables.recovery.active_highwaters
        await self._held.recovered({tp.partition: highwaters[tp] + 1 for tp in active_tps})
