"""Close the holes through which Faust 0.15.3 loses events after a table recovery.

Stock Faust resumes its source partitions before it seeks them to the committed offsets, so that events fetched from
the old position are dropped behind the seek; and it hands the fetcher a live set which the end of recovery empties,
which aiokafka takes for "all partitions". Both leave silent holes of delivered, but never seen, offsets.
"""

import asyncio
import gc
import logging
import time
from collections.abc import Callable, Iterable, Sequence
from importlib.metadata import version
from typing import Any

from aiokafka.errors import InvalidSessionTimeoutError
from faust.tables.manager import TableManager as FaustTableManager
from faust.tables.recovery import Recovery as FaustRecovery
from faust.transport.drivers import aiokafka as driver

log = logging.getLogger(__name__)

FAUST_VERSION = "0.15.3"
#: How long a broker holds a fetch that finds nothing, seconds; partitions that are resumed meanwhile wait for its end.
FETCH_HELD_FOR = 0.2
#: How long the fetcher sleeps while every partition is paused, and a stop between two looks at what is unfinished, seconds.
#: Faust has a second for both, which each restart would wait for.
PAUSED_FOR = 0.02
LOOK_EVERY = 0.05
COLLECT_EVERY = 10


#: The shortest session that a broker grants unless `group.min.session.timeout.ms` says otherwise, seconds.
USUAL_SESSION = 6.0


class UnknownFaust(Exception):
    """The recovery code here replaces methods of one Faust version, and another one is installed."""

    reason = "unknown_faust"
    retriable = False


def require_known_faust() -> None:
    """Refuse any Faust but the one whose methods are replaced here."""
    if (found := version("faust-streaming")) != FAUST_VERSION:
        raise UnknownFaust(f"faust-streaming {found} is installed, {FAUST_VERSION} is needed: run `uv sync`")


class Recovery(FaustRecovery):  # type: ignore[misc]
    """Recover tables, then seek the sources, then let events flow: in this order."""

    def restore(self, tp: Any, records: Sequence[Any]) -> None:
        """Apply fetched records of a changelog as a whole; Faust makes an event of each, and queues it, at ten times the price."""
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
        """Finish a recovery; source partitions are resumed last, when their positions are final."""
        app, consumer = self.app, self.app.consumer
        # A rebalance in the middle of a recovery makes Faust forget what was still to be read, and take it for finished.
        if self.signal_recovery_start.is_set() or app.consumer_generation_id != generation_id:
            self.log.info("Rebalancing again during recovery")
            return
        await app.on_rebalance_complete.send()
        self._set_recovery_ended()
        for table in list(self.tables.values()):
            # Not gathered and not shielded: a failure must end the process, not be dropped with its task.
            await table.on_recovery_completed(self.actives_for_table[table], self.standbys_for_table[table])
        if app.consumer_generation_id != generation_id:
            self.log.info("Rebalancing again during recovery")
            return
        assigned = consumer.assignment()
        if assigned:
            await self._wait(consumer.perform_seek(), timeout=app.conf.broker_request_timeout)
        self.completed.set()
        app.flow_control.resume()
        consumer.resume_flow()
        await app._fetcher.maybe_start()
        consumer.resume_partitions({tp for tp in assigned if not self._is_changelog_tp(tp)})
        self.tables.on_actives_ready()
        self.tables.on_standbys_ready()
        app.on_rebalance_end()
        self.log.info("Worker ready")


class TableManager(FaustTableManager):  # type: ignore[misc]
    """Manage tables with the recovery above."""

    recovery_type: type[FaustRecovery] = Recovery

    async def on_start(self) -> None:
        """Start at once: Faust waits a second for tables that are declared late, here all are known beforehand."""
        await self._update_channels()
        await self.recovery.start()

    @property
    def recovery(self) -> FaustRecovery:
        """Return the recovery service, made at first use."""
        if self._recovery is None:  # type: ignore[has-type]
            self._recovery = self.recovery_type(self.app, self, beacon=self.beacon, loop=self.loop)
        return self._recovery


class ConsumerThread(driver.AIOKafkaConsumerThread):  # type: ignore[misc]
    """Fetch so that no fetch crosses a seek: records drained before a seek are dropped and read again after it."""

    #: Where each source partition of the current assignment starts: committed, or the log's start.
    start_at: dict[Any, int]

    def __post_init__(self) -> None:
        super().__post_init__()
        self.start_at = {}
        self._gate = asyncio.Lock()  # held in the consumer's thread only
        self._seeks = 0

    async def on_start(self) -> None:
        """Start the consumer, and let its heartbeats renew the worker's lease."""
        await super().on_start()
        accept_longer_session(self._consumer._coordinator, self.app.lease.extend)
        self._renew_lease(self._consumer._coordinator)

    async def leave_group(self) -> None:
        """Tell the group that this worker goes: the others take its partitions over now, and not after a session."""
        coordinator = self._ensure_consumer()._coordinator
        # aiokafka lets a member with an instance id go silently, so that it may come back within its session.
        coordinator._group_instance_id = None
        await self.call_thread(coordinator.close)

    def _renew_lease(self, coordinator: Any) -> None:
        lease, gaps = self.app.lease, self.app.metrics.heartbeat_gaps
        beat, reset = coordinator._do_heartbeat, coordinator.reset_generation

        async def heartbeat() -> bool:
            sent = time.monotonic()
            try:
                confirmed = bool(await beat())
            except Exception:  # it ends the consumer; the watch ends the worker
                lease.lose()
                raise
            if confirmed:
                gaps.observe(lease.renew(sent))
            return confirmed

        def reset_generation() -> None:
            lease.lose()
            reset()

        coordinator._do_heartbeat, coordinator.reset_generation = heartbeat, reset_generation

    def _create_worker_consumer(self, transport: Any) -> Any:
        consumer = super()._create_worker_consumer(transport)
        consumer._fetch_max_wait_ms = int(FETCH_HELD_FOR * 1000)  # Faust has 1.5 s and no setting; read when it is started
        return consumer

    async def getmany(self, active_partitions: Iterable[Any] | None, timeout: float) -> Any:  # noqa: ASYNC109
        """Fetch from a copy of the active partitions; an empty one means none, not all."""
        partitions, seeks = set(active_partitions or ()), self._seeks
        records = await super().getmany(partitions, timeout) if partitions else {}
        return records if seeks == self._seeks else {}

    async def _fetch_records(self, *args: Any, **kwargs: Any) -> Any:
        async with self._gate:
            return await super()._fetch_records(*args, **kwargs)

    async def seek_to_committed(self) -> Any:
        """Seek every partition to its committed offset, and sources without one to their start."""
        self._seeks += 1
        return await self.call_thread(self._seek_to_committed, self._ensure_consumer())

    async def _seek_to_committed(self, consumer: Any) -> Any:
        async with self._gate:
            committed = await consumer.seek_to_committed()
            # aiokafka leaves partitions without a committed offset where they are, which may be anywhere.
            fresh = [tp for tp, offset in committed.items() if not offset and not self.consumer._is_changelog_tp(tp)]
            if fresh:
                await consumer.seek_to_beginning(*fresh)
            started = {tp: offset for tp, offset in committed.items() if offset}
            self.start_at = started | {tp: await consumer.position(tp) for tp in fresh}
            return committed

    async def seek_wait(self, partitions: Any) -> None:
        """Seek changelog partitions to where their recovery starts."""
        self._seeks += 1
        await super().seek_wait(partitions)

    async def _seek_wait(self, consumer: Any, partitions: Any) -> None:
        async with self._gate:
            await super()._seek_wait(consumer, partitions)


def accept_longer_session(coordinator: Any, extend: Callable[[float], None]) -> None:
    """Join again with the session that every broker grants, where this one refuses a shorter one.

    Args:
        extend: told the session's new length in seconds.
    """
    join = coordinator._do_rejoin_group

    async def rejoin(subscription: Any) -> bool:
        try:
            return bool(await join(subscription))
        except InvalidSessionTimeoutError:
            asked = coordinator._session_timeout_ms / 1000
            if asked >= USUAL_SESSION:
                raise
            log.warning("the broker grants no session of %g s, it is %g s now (group.min.session.timeout.ms)", asked, USUAL_SESSION)
            coordinator._session_timeout_ms = int(USUAL_SESSION * 1000)
            extend(USUAL_SESSION)
            return False

    coordinator._do_rejoin_group = rejoin


class Consumer(driver.Consumer):  # type: ignore[misc]
    """Consume with the thread above; the changelog's records go to the recovery, all others to the streams."""

    def _new_consumer_thread(self) -> ConsumerThread:
        return ConsumerThread(self, loop=self.loop, beacon=self.beacon)

    async def _wait_next_records(self, timeout: float) -> tuple[dict[Any, Any], set[Any]]:  # noqa: ASYNC109
        if self.flow_active and not self._get_active_partitions():
            await self.sleep(PAUSED_FOR)
            return {}, set()
        fetched, active = await super()._wait_next_records(timeout)
        recovery = self.app.tables.recovery
        records: dict[Any, Any] = {}
        for tp, batch in (fetched or {}).items():
            if not recovery._is_changelog_tp(tp):
                records[tp] = batch
            # What was fetched for an assignment that has ended since is not of this one: its partitions are paused.
            elif batch and self.flow_active and tp in active:
                recovery.restore(tp, batch)
                await asyncio.sleep(0)
        return records, active

    async def on_partitions_revoked(self, revoked: set[Any]) -> None:
        """Finish and commit what has begun before Faust forgets what was acked: what is not committed is answered again."""
        if self.assignment() and not self.should_stop:
            self.stop_flow()
            self.app.flow_control.suspend()
            self.app.flow_control.clear()
            await self.wait_empty()
        await super().on_partitions_revoked(revoked)

    async def wait_empty(self) -> None:
        """Wait until what has begun is finished, and commit it; unlike Faust's, without collecting garbage at each look."""
        looks = 0
        while not self.should_stop and self._unacked_messages:
            await self.commit()
            await self._wait_for_ack(LOOK_EVERY)
            self._clean_unacked_messages()
            looks += 1
            if looks % COLLECT_EVERY == 0:
                gc.collect()  # a dropped event that is part of a cycle only disappears so
        await self.commit_and_end_transactions()

    async def _wait_for_ack(self, timeout: float) -> None:  # noqa: ASYNC109
        """Return at the next ack, or soon: an event that was dropped unread is never acked, it only disappears."""
        self._waiting_for_ack = self.loop.create_future()
        await asyncio.wait([self._waiting_for_ack], timeout=LOOK_EVERY)
        self._waiting_for_ack = None


class Producer(driver.Producer):  # type: ignore[misc]
    """Produce idempotently: a retried batch is stored once, and in order."""

    def _settings_extra(self) -> dict[str, Any]:
        return {"acks": "all", "enable_idempotence": True}


class Transport(driver.Transport):  # type: ignore[misc]
    """Reach Kafka through the consumer and the producer above."""

    Consumer = Consumer
    Producer = Producer
