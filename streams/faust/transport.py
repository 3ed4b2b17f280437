"""Faust's transport: changelog records go to the recovery, all others to the sources; producing is
idempotent.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from faust.transport.drivers import aiokafka as driver
from faust.types import TP

from ground.boundary import fatal
from ground.messages import Record
from streams.faust.fetching import (
    FETCH_BYTES,
    FETCH_HELD_FOR,
    FETCH_HELD_IN_RECOVERY,
    FETCH_WITHIN,
    LoopConsumer,
)
from streams.faust.outgoing import answers_join_the_next_request
from streams.faust.produce_wire import produce_quickly
from streams.faust.unreadable import UnreadableBatch

if TYPE_CHECKING:
    from aiokafka import AIOKafkaProducer
    from mode.types import ServiceT

PAUSED_FOR = 0.02
"""Seconds that the fetcher sleeps while every partition is paused: Faust has one, which each
restart would wait for."""
BEHIND_FOR = 0.004
"""Seconds until the next fetch is asked for while events of earlier ones wait for their lanes: a
fetch costs as much as the decisions of ten requests, whatever it brings (`benchmarks.stream`, at
half of the largest rate)."""
COMMITS = 3
"""Most commits of a stop: Faust may return a commit that was under way in place of the one asked
for.
"""


class Consumer(driver.Consumer):  # type: ignore[misc]
    """The consumer: it reads with `LoopConsumer`, delivers lists of records to `app.sources`, and
    commits what the lanes have finished.

    Faust's conductor is passed by: its streams, events, reference counts and gap sets are never
    made.
    """

    _caught_up: frozenset[TP] = frozenset()

    def __post_init__(self) -> None:
        super().__post_init__()
        self._delivered_to: dict[TP, int] = {}

    @property
    def full(self) -> frozenset[TP]:
        """Return the partitions that are not fetched because too many of their records wait."""
        return frozenset(self._buffered_partitions)

    @property
    def placed(self) -> set[TP]:
        """Return the partitions that are assigned, none before the first assignment."""
        return set(self.assignment()) if self._thread.started else set()

    def start_at(self, tp: TP) -> int | None:
        """Return the first offset of a source partition in this assignment; None while that is not
        known.
        """
        found = self._thread.start_at.get(tp)
        return None if found is None else int(found)

    @property
    def membership_error(self) -> BaseException | None:
        """Return what has ended this worker's membership, or None."""
        error: BaseException | None = self._thread.membership_error()
        return error

    async def leave_group(self) -> None:
        """Tell the group, if it has been joined, that this worker goes."""
        if self._thread.started:
            await self._thread.leave_group()

    @property
    def silence(self) -> float:
        """Return for how many seconds the leader of a partition has not answered a fetch that is
        due.
        """
        return float(self._thread.silence())

    @property
    def unreadable(self) -> list[UnreadableBatch]:
        """Return the errors that block source partitions."""
        return list(self._thread.set_aside.found.values())

    @property
    def stalled_for(self) -> float:
        """Return the seconds for which the oldest unfinished record has been here."""
        oldest = self.app.sources.oldest()
        return 0.0 if oldest is None else time.monotonic() - oldest

    def end_of(self, tp: TP) -> int | None:
        """Return the offset after a source's last event as of the last fetch, None while that is
        not known.

        If a transaction has ended or was aborted, the log's own end is behind this offset: the
        offsets between bring no events.
        """
        if tp in self._caught_up:
            return self._delivered_to.get(tp, 0)
        found = self.highwater(tp) if tp in self.assignment() else None
        return None if found is None else int(found)

    def _new_consumer_thread(self) -> LoopConsumer:
        return LoopConsumer(self, loop=self.loop, thread_loop=self.loop, beacon=self.beacon)

    async def _drain_messages(self, fetcher: ServiceT) -> None:
        while not (self.should_stop or fetcher.should_stop):
            try:
                await self._fetch_once()
            except (*self.consumer_stopped_errors, asyncio.CancelledError):
                # A stop ends the fetch that is under way, and Faust takes what is raised then for a
                # crash.
                if not self.app.should_stop:
                    raise
                return

    async def _fetch_once(self) -> None:
        if not self.flow_active:
            await self.wait(self.can_resume_flow)
        # Checked after the wait: a flow may go on before its partitions do.
        if not (active := self._get_active_partitions()):
            await self.sleep(PAUSED_FOR)
            return
        fetched = await self._thread.getmany(active, FETCH_WITHIN)
        caught_up, behind = self._thread.caught_up, self.app.sources.unfinished
        for tp, records in fetched.items():
            # A stop of the flow is followed by a seek, which reads these again; and what was
            # fetched for an assignment that has ended since is not of this one: its partitions are
            # paused.
            if records and self.flow_active and (tp in active or tp in self._buffered_partitions):
                await self._deliver(TP(*tp), records)  # aiokafka has a type of its own
        # not before all of it is delivered: `end_of` would be behind what was fetched
        self._caught_up = caught_up
        if behind:
            await asyncio.sleep(BEHIND_FOR)
        # Not in a backlog: more of it is on the log, and a fetch brings much.
        elif self.app.sources.unfinished and caught_up >= fetched.keys():
            self._thread.pace.rest(fetched)

    async def _deliver(self, tp: TP, records: list[Record]) -> None:
        if tp.topic == self.app.settings.changelog:
            self.app.tables.recovery.restore(tp, records)
            await asyncio.sleep(0)
            return
        # Records are checked before a lane sees them, as a hole must be found before its offsets
        # are committed.
        with fatal():
            await self.app.guard.check(tp, records)
        if self.flow_active:  # else the look took so long that they are read again
            self._delivered_to[tp] = records[-1].offset + 1
            self.app.monitor.track_tp_end_offset(tp, self.highwater(tp))
            self.app.sources.deliver(tp, records)

    async def perform_seek(self) -> None:
        """Seek the sources to their committed offsets; from there they are fetched in small
        pieces.
        """
        self._thread.limit_fetches(FETCH_BYTES)
        await super().perform_seek()

    def fetch_calmly(self) -> None:
        """Let brokers hold fetches that find nothing: the recovery is over."""
        self._thread.hold_fetches(FETCH_HELD_FOR)

    def stop_flow(self) -> None:
        """Stop fetching, and drop records that no lane has taken; they are read again."""
        super().stop_flow()
        self.app.sources.clear()

    async def on_partitions_revoked(self, revoked: set[TP]) -> None:
        """Finish and commit the groups that have begun, before Faust forgets what was committed;
        then forget the partitions.
        """
        self._thread.hold_fetches(FETCH_HELD_IN_RECOVERY)
        self._thread.limit_fetches(self.app.conf.consumer_max_fetch_size)
        # Groups that finish now are committed by their owner. Later they would be done twice, with
        # the same result.
        if self.assignment() and not self.should_stop:
            self.stop_flow()
            await self.wait_empty()
            # Changes of the timers must be on the log, too, before the next owner reads it.
            await self.app.states.close()
        await super().on_partitions_revoked(revoked)
        self.app.sources.forget(revoked)

    async def wait_empty(self) -> None:
        """Wait until the agents have finished the events they have begun, and commit those."""
        await self.app.sources.finished()
        for _ in range(COMMITS):
            if not self._filter_committable_offsets(()):
                break
            await self.commit_and_end_transactions()

    def _filter_tps_with_pending_acks(self, topics: Iterable[str] | None = None) -> Iterator[TP]:
        return iter(self.app.sources.done())

    def _filter_committable_offsets(self, tps: Iterable[TP]) -> dict[TP, int]:
        done = self.app.sources.done()
        return {
            tp: offset
            for tp, offset in done.items()
            if self._should_commit(tp, offset) and self._thread.exists(tp.topic)
        }


class Producer(driver.Producer):  # type: ignore[misc]
    """Produce idempotently: a retried batch is stored once, and in order."""

    def _new_producer(self, transactional_id: str | None = None) -> AIOKafkaProducer:
        answers_join_the_next_request()
        produce_quickly()
        return super()._new_producer(transactional_id)

    @property
    def client(self) -> AIOKafkaProducer:
        """Return aiokafka's producer, once started."""
        return self._ensure_producer()

    def _settings_extra(self) -> dict[str, object]:
        return {"acks": "all", "enable_idempotence": True}


class Transport(driver.Transport):  # type: ignore[misc]
    """Make the consumer and the producer of this module."""

    Consumer = Consumer
    Producer = Producer
