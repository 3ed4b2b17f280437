"""Close the holes through which Faust 0.15.3 loses events after a table recovery.

Stock Faust resumes its source partitions before it seeks them to the committed offsets: events
fetched from the old position are dropped behind the seek. It also hands the fetcher a live set,
which the end of recovery empties and aiokafka then takes for "all partitions". Both leave silent
holes of delivered, but never seen, offsets.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress

from faust.tables.manager import TableManager as FaustTableManager
from faust.tables.recovery import RebalanceAgain, ServiceStopped
from faust.tables.recovery import Recovery as FaustRecovery
from faust.types import TP

from ground.messages import Record

MOST_LOOKS = 5
"""Looks at the ends of the changelogs before a recovery is abandoned that is overtaken each
time.
"""


class Recovery(FaustRecovery):  # type: ignore[misc]
    """The recovery: restore tables, then seek the sources, then let events flow, in this order."""

    def restore(self, tp: TP, records: Sequence[Record]) -> None:
        """Apply fetched records of a changelog as a whole. Faust would make an event of each
        record and queue it, which takes ten times as long.
        """
        if tp not in self.active_tps:
            return
        self.tp_to_table[tp].restore(records)
        self.active_offsets[tp] = max(self.active_offsets[tp], records[-1].offset)
        self._active_events_received_at[tp] = self._last_flush_at = time.monotonic()
        if self.in_recovery and not self.need_recovery():
            self.signal_recovery_end.set()

    def _set_recovery_started(self) -> None:
        self.signal_recovery_end.clear()  # it may still be set by the recovery before
        super()._set_recovery_started()

    async def on_recovery_completed(self, generation_id: int = 0) -> None:
        """Finish a recovery, unless the worker stops or the group rebalances meanwhile. Faust waits
        for both as well, and then does not look at how this has ended.
        """
        with suppress(ServiceStopped, RebalanceAgain):
            await self._finish(generation_id)

    async def _finish(self, generation_id: int) -> None:
        """Take over; source partitions are resumed last, when their positions are final."""
        app, consumer = self.app, self.app.consumer
        # A rebalance in the middle of a recovery makes Faust forget what was still to be read, and
        # take it for finished.
        if self.signal_recovery_start.is_set() or app.consumer_generation_id != generation_id:
            self.log.info("Rebalancing again during recovery")
            return
        # The next step takes some time, and the group may rebalance meanwhile: therefore the
        # generation is checked again after it.
        await app.on_rebalance_complete.send()
        await self._read_on()
        self._set_recovery_ended()
        for table in list(self.tables.values()):
            # Not gathered and not shielded: a failure must end the process, not be dropped with its
            # task.
            await table.on_recovery_completed(
                self.actives_for_table[table], self.standbys_for_table[table]
            )
        if app.consumer_generation_id != generation_id:
            self.log.info("Rebalancing again during recovery")
            return
        # Seek, then resume: an event fetched from before the seek would be dropped behind it,
        # unseen.
        assigned = consumer.assignment()
        if assigned:
            await self._wait(consumer.perform_seek(), timeout=app.conf.broker_request_timeout)
        self.completed.set()
        app.flow_control.resume()
        consumer.resume_flow()
        await app._fetcher.maybe_start()
        consumer.resume_partitions({tp for tp in assigned if tp.topic != app.settings.changelog})
        consumer.fetch_calmly()
        self.tables.on_actives_ready()
        self.tables.on_standbys_ready()
        app.on_rebalance_end()
        self.log.info("Worker ready")

    async def _read_on(self) -> None:
        """Read records that landed after the ends of the changelogs were looked up: the previous
        owner's last batch. An owner that writes on after that meets this worker's fence.
        """
        consumer, timeout = self.app.consumer, self.app.conf.broker_request_timeout
        for _ in range(MOST_LOOKS):
            await self._wait(
                self._build_highwaters(consumer, self.active_tps, self.active_highwaters, "active"),
                timeout=timeout,
            )
            if not self.need_recovery():
                return
            self.log.info("The changelog has grown: reading on")
            self._set_recovery_started()
            consumer.resume_partitions(self.active_tps)
            self.app.flow_control.resume()
            consumer.resume_flow()
            await self.app._fetcher.maybe_start()
            await self._wait(self.signal_recovery_end.wait())
            consumer.pause_partitions(self.active_tps)


class TableManager(FaustTableManager):  # type: ignore[misc]
    """Faust's manager of tables, with `Recovery` as its recovery."""

    recovery_type: type[FaustRecovery] = Recovery

    async def on_start(self) -> None:
        """Start at once: Faust waits a second for tables that are declared late, here all are known
        beforehand.
        """
        await self._update_channels()
        await self.recovery.start()

    @property
    def recovery(self) -> FaustRecovery:
        """Return the recovery service, made at first use."""
        if self._recovery is None:  # type: ignore[has-type]
            self._recovery = self.recovery_type(self.app, self, beacon=self.beacon, loop=self.loop)
        return self._recovery
