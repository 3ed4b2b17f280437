"""Fetch in the event loop of the lanes, so that no fetch crosses a seek and nothing before an
unreadable batch is lost.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from faust.transport.drivers import aiokafka as driver
from faust.types import TP

from ground.messages import Record
from streams.faust.fetch_pace import FetchPace
from streams.faust.fetch_wire import fetch_quickly
from streams.faust.membership import (
    accept_longer_session,
    end_where_replaced,
    membership_error,
    renew_session,
)
from streams.faust.positions import fetch_only, positions, rewind, silence
from streams.faust.set_aside import SetAside
from streams.faust.unreadable import UnreadableBatch, place_what_is_unreadable

if TYPE_CHECKING:
    from aiokafka import AIOKafkaConsumer

Fetched = dict[TP, list[Record]]

FETCH_HELD_FOR = 0.2
"""Seconds that a broker holds a fetch that finds nothing; partitions that are resumed meanwhile
wait for its end. Faust has 1.5 s and no setting."""
FETCH_HELD_IN_RECOVERY = 0.02
"""Seconds that a broker holds an empty fetch from a rebalance until the worker is ready: each step
of a recovery seeks, and the next fetch waits for the one before the seek.
"""
FETCH_WITHIN = 0.2
"""Seconds that a fetch may wait for records: a seek waits for the fetch's end, and so does a
partition that the fetch does not ask for.
"""
FETCH_BYTES = 64 * 1024
"""Most bytes of a partition in one fetch once the worker has recovered: a request next to a
backlog waits until the fetch before its own is read (`benchmarks.stream`, the row with a backlog
of bills).
"""
FETCHED_TOGETHER = ("costs", "rewards", "leases", "kin")
"""Topics whose events may wait for each other: nobody waits for an answer to them."""
LOOK_FOR_TOPICS_EVERY = 1.0
"""Seconds between two looks at whether the topics of a commit are still there."""


class Task:
    """A task in place of the thread that Faust starts for a consumer.

    A thread beside the one of the lanes would wait for the interpreter's lock up to 5 ms each
    time, and take the lock from the lanes: once for each answer of the broker.
    """

    def __init__(self, service: LoopConsumer) -> None:
        self._service = service

    def start(self) -> None:
        """Start the service, which ends by itself when it is stopped."""
        self._serving = asyncio.create_task(self._service._serve())

    def stop(self) -> None:
        """Do nothing: the service has ended."""


class LoopConsumer(driver.AIOKafkaConsumerThread):  # type: ignore[misc]
    """Faust's consumer thread, in the event loop of the lanes. No fetch crosses a seek: records
    drained before a seek are dropped and read again after it.

    Attributes:
        start_at: where each source partition of the current assignment starts: committed, or the
            log's start.
        set_aside: the source partitions that wait, as a batch of theirs can't be read.
        pace: when the next fetch may leave.
        caught_up: partitions of which the last fetch left nothing that was committed by then.
    """

    Worker = Task
    start_at: dict[TP, int]
    caught_up: frozenset[TP]

    def __post_init__(self) -> None:
        super().__post_init__()
        self.start_at, self.caught_up = {}, frozenset()
        self.set_aside = SetAside(self.app.settings)
        self.pace = FetchPace({self.app.settings.topic(name) for name in FETCHED_TOGETHER})
        self._gate = asyncio.Lock()
        self._seeking = 0  # seeks that are asked for and not done yet

    async def call_thread(
        self, fun: Callable[..., object], *args: object, **kwargs: object
    ) -> object:
        """Call a function that Faust hands over to its thread."""
        outcome = fun(*args, **kwargs)
        return await outcome if inspect.isawaitable(outcome) else outcome

    async def _gather_remaining_tasks(self) -> None:
        """Do nothing: the loop's other tasks do not belong to this consumer."""

    async def on_start(self) -> None:
        """Start the consumer, and let its heartbeats renew the worker's session."""
        await super().on_start()
        self.pace.of(self._consumer._fetcher)
        coordinator, app = self._consumer._coordinator, self.app
        accept_longer_session(coordinator, app.session.extend)
        end_where_replaced(coordinator, app.settings.instance_id)
        renew_session(coordinator, app.session, app.observe_heartbeat)

    def membership_error(self) -> BaseException | None:
        """Return what has ended this worker's membership, or None."""
        coordinator = None if self._consumer is None else self._consumer._coordinator
        return None if coordinator is None else membership_error(coordinator)

    async def leave_group(self) -> None:
        """Tell the group that this worker leaves, so that others take over its partitions now and
        not after a session.
        """
        coordinator = self._ensure_consumer()._coordinator
        # aiokafka lets a member with an instance id go silently, so that it may come back within
        # its session.
        coordinator._group_instance_id = None
        await coordinator.close()

    def _create_worker_consumer(self, transport: driver.Transport) -> AIOKafkaConsumer:
        place_what_is_unreadable()
        fetch_quickly()
        consumer = super()._create_worker_consumer(transport)
        # Both settings are read at the start. Faust would read aborted records, unless it writes
        # in transactions itself.
        consumer._fetch_max_wait_ms = int(FETCH_HELD_IN_RECOVERY * 1000)
        consumer._isolation_level = "read_committed"
        return consumer

    def hold_fetches(self, seconds: float) -> None:
        """Set how long a broker holds fetches that find nothing."""
        self._ensure_consumer()._fetcher._fetch_max_wait_ms = int(seconds * 1000)

    def limit_fetches(self, most: int) -> None:
        """Set the most bytes of a partition in a fetch."""
        self._ensure_consumer()._fetcher._max_partition_fetch_bytes = most

    async def getmany(self, active_partitions: Iterable[TP] | None, timeout: float) -> Fetched:  # noqa: ASYNC109
        """Take the fetched records of the active partitions; an empty set means none, not all."""
        consumer = self._ensure_consumer()
        wanted = self.set_aside.without(active_partitions or ())
        full = self.set_aside.without(self.consumer.full)
        if not wanted:
            await asyncio.sleep(timeout)
            return {}
        async with self._gate:
            records = await self._fetch(consumer, wanted, full - wanted, timeout)
        # These records come from positions that are no longer read.
        if self._seeking:
            self.caught_up = frozenset()
            return {}
        return records

    async def _fetch(
        self,
        consumer: AIOKafkaConsumer,
        wanted: frozenset[TP],
        full: frozenset[TP],
        timeout: float,  # noqa: ASYNC109
    ) -> Fetched:
        known, most = positions(consumer), self.app.conf.broker_max_poll_records
        # Records that were fetched of full partitions before are handed over.
        fetch_only(consumer, known, wanted, taken=full)
        # aiokafka moves positions while it drains, also of partitions whose records it then loses.
        before = {tp: state.position for tp, state in known}
        try:
            records: Fetched = await self._fetch_records(
                consumer, wanted | full, timeout=timeout, max_records=most
            )
        except UnreadableBatch as error:
            rewind(consumer, before, failed=error.tp)
            self.set_aside.add(error)
            return {}
        after = positions(consumer)
        self.caught_up = frozenset(
            tp for tp, state in after if state.lso is not None and state.position >= state.lso
        )
        if self.set_aside.found:
            self.set_aside.look({tp: state.position for tp, state in after})
        return records

    def silence(self) -> float:
        """Return the longest time, in seconds, for which the leader of a partition has not
        answered a fetch that is due.
        """
        return silence(self._consumer)

    def exists(self, topic: str) -> bool:
        """Tell whether a topic was there when the client last looked."""
        return bool(self._ensure_consumer().partitions_for_topic(topic))

    async def commit(self, offsets: dict[TP, int]) -> bool:
        """Commit all offsets except those of a topic that is gone. aiokafka would retry such an
        offset until the topic is back, and commit no other offset meanwhile.
        """
        while there := {tp: offset for tp, offset in offsets.items() if self.exists(tp.topic)}:
            committing = asyncio.create_task(super().commit(there))
            try:
                while not committing.done() and all(self.exists(tp.topic) for tp in there):
                    await asyncio.wait({committing}, timeout=LOOK_FOR_TOPICS_EVERY)
            finally:
                committing.cancel()
            if committing.done() and not committing.cancelled():
                return bool(committing.result())
        return False

    async def seek_to_committed(self) -> dict[TP, int | None]:
        """Seek every partition to its committed offset, and sources without one to their start."""
        with self._seek():
            return dict(await self._seek_to_committed(self._ensure_consumer()))

    async def _seek_to_committed(self, consumer: AIOKafkaConsumer) -> dict[TP, int | None]:
        async with self._gate:
            # All partitions are asked for at once; aiokafka's own method asks for one after the
            # other.
            assigned = consumer.assignment()
            found = await consumer._coordinator.fetch_committed_offsets(list(assigned))
            # aiokafka leaves out what was never committed; a committed 0 is the log's start as
            # well.
            started = {tp: one.offset for tp, one in found.items() if one.offset}
            for tp, offset in started.items():
                consumer.seek(tp, offset)
            # aiokafka leaves partitions without a committed offset where they are, which may be
            # anywhere.
            changelog = self.app.settings.changelog
            fresh = [tp for tp in assigned if tp not in started and tp.topic != changelog]
            if fresh:
                await consumer.seek_to_beginning(*fresh)
            self.start_at = started | {tp: await consumer.position(tp) for tp in fresh}
            return {tp: started.get(tp) for tp in assigned}

    async def seek_wait(self, partitions: dict[TP, int]) -> None:
        """Seek changelog partitions to the offsets at which their recovery starts."""
        with self._seek():
            await super().seek_wait(partitions)

    @contextmanager
    def _seek(self) -> Iterator[None]:
        self._seeking += 1
        try:
            yield
        finally:
            self._seeking -= 1

    async def _seek_wait(self, consumer: AIOKafkaConsumer, partitions: dict[TP, int]) -> None:
        async with self._gate:
            await super()._seek_wait(consumer, partitions)
