"""Read topics for as long as a process runs: first the recent past, then new records."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Collection, Sequence
from contextlib import suppress
from typing import Protocol

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaConnectionError, KafkaError

from doors.console.bus import partitions_of_topics
from doors.console.failures import Failure
from ground.messages import Record
from paretobandit_client.outage import CURRENT, Outage, quieten
from streams.faust.unreadable import UnreadableBatch
from streams.log.consumer import log_consumer
from streams.log.login_refusal import refusal
from streams.log.rights_check import MissingRights
from streams.settings import Settings

log = logging.getLogger(__name__)
WHOLE = ("routers", "pools", "lambda")
"""Compacted topics, which are read from the beginning."""
PAST = 20_000
"""Newest records of every other partition that are read at the start: some seconds of work."""
AGAIN_AFTER = 1.0
"""Seconds between a failure and the next attempt."""
LOOK_EVERY = 2.0
"""Seconds between two checks whether Kafka still answers."""
ANSWER_WITHIN = 10.0
"""Seconds without an answer after which Kafka is reported to be away."""
FETCHED_AT_ONCE = 500
"""Records handled at a time; a visitor's question waits until they are handled."""


class Take(Protocol):
    """The function that a record is handed to.

    Args:
        name: its topic, without the prefix.
        now: when it was read, in seconds since the epoch.
    """

    def __call__(self, name: str, record: Record, *, now: float) -> None: ...


class TopicReader:
    """A reader of topics, outside any consumer group, that survives outages of Kafka and skips
    damaged batches.

    Args:
        phases: groups of topics, without the prefix. The past of a phase is read before that of the
            next one.

    Attributes:
        trouble: a sentence about what is wrong; None while all is well.
        since: when it began.
        complete: whether the past has been read.
    """

    def __init__(self, settings: Settings, phases: Sequence[Collection[str]], take: Take) -> None:
        self._settings = settings
        self._phases = phases
        self._take_one = take
        self._task: asyncio.Task[None] | None = None
        self._read_to: dict[TopicPartition, int] = {}
        self.trouble: str | None = "connecting to Kafka"
        self.since = time.time()
        self.complete = False

    def start(self) -> None:
        """Begin to read, in the background; it goes on for as long as it takes."""
        self._task = asyncio.create_task(self._follow())

    async def stop(self) -> None:
        """Stop reading."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def _follow(self) -> None:
        # The trouble is logged below, once; the Kafka client logs it a thousand times in an outage.
        CURRENT.set(Outage(f"Kafka at {self._settings.bootstrap}"))
        quieten("aiokafka")
        while True:
            consumer = log_consumer(
                self._settings, fetch_max_wait_ms=200, max_partition_fetch_bytes=2**20
            )
            try:
                await consumer.start()
                await self._read(consumer)
            except KafkaConnectionError:
                why = await refusal(self._settings)
                self._fails(why or f"no Kafka answers at {self._settings.bootstrap}")
            except Failure as failure:
                self._fails(failure.message.rstrip("."))
            except (KafkaError, MissingRights, OSError, TimeoutError) as error:
                what = str(error) or "it does not answer in time"
                self._fails(f"Kafka at {self._settings.bootstrap}: {what}")
            except Exception:  # a defect must not leave a page that looks alive
                log.exception("the topics are read anew after a defect")
                self._fails("the reader of the topics failed: a defect, its log says more")
            finally:
                await consumer.stop()
            await asyncio.sleep(AGAIN_AFTER)

    async def _read(self, consumer: AIOKafkaConsumer) -> None:
        """Read until Kafka fails; nothing is read twice after a failure."""
        names = await self._places()
        ends = await consumer.end_offsets(list(names))
        await self._seek(consumer, names, ends)
        waiting = set(names)
        consumer.pause(*waiting)
        watch = asyncio.create_task(self._watch(consumer, next(iter(names))))
        try:
            for phase in self._phases:
                due = {place for place in waiting if names[place] in phase}
                waiting -= due
                consumer.resume(*due)
                await self._read_past(consumer, names, ends, watch, without=waiting)
            self.complete = not watch.done()
            while not watch.done():
                self._take(names, await self._records(consumer))
        finally:
            watch.cancel()
        watch.result()

    async def _read_past(
        self,
        consumer: AIOKafkaConsumer,
        names: dict[TopicPartition, str],
        ends: dict[TopicPartition, int],
        watch: asyncio.Task[None],
        *,
        without: Collection[TopicPartition],
    ) -> None:
        """Read up to where the topics ended when reading began."""
        waited_for = [place for place in names if place not in without]
        while not watch.done() and any(
            [await consumer.position(place) < ends[place] for place in waited_for]
        ):
            self._take(names, await self._records(consumer))

    async def _records(self, consumer: AIOKafkaConsumer) -> dict[TopicPartition, list[Record]]:
        try:
            found = await consumer.getmany(timeout_ms=200, max_records=FETCHED_AT_ONCE)
            await asyncio.sleep(0)  # what is fetched already is handed over without a pause
        except UnreadableBatch as batch:
            log.warning("left out: %s", batch)
            # A page can do without a damaged batch. Workers, whose state is at stake, stop at one.
            consumer.seek(batch.tp, batch.end)
            return {}
        return dict(found)

    def _take(
        self, names: dict[TopicPartition, str], found: dict[TopicPartition, list[Record]]
    ) -> None:
        """Hand records over in the order of their timestamps, so that a label follows its
        decision."""
        records = [(names[place], record) for place, many in found.items() for record in many]
        for place, many in found.items():
            self._read_to[place] = many[-1].offset + 1
        records.sort(key=lambda one: one[1].timestamp)
        now = time.time()
        for name, record in records:
            self._take_one(name, record, now=now)

    async def _places(self) -> dict[TopicPartition, str]:
        counts = await partitions_of_topics(
            self._settings, [name for phase in self._phases for name in phase]
        )
        return {
            TopicPartition(self._settings.topic(name), number): name
            for name, partitions in counts.items()
            for number in range(partitions)
        }

    async def _seek(
        self,
        consumer: AIOKafkaConsumer,
        names: dict[TopicPartition, str],
        ends: dict[TopicPartition, int],
    ) -> None:
        """Go on where the last reading ended; begin with all routers and the recent past."""
        consumer.assign(list(names))
        begins = await consumer.beginning_offsets(list(names))
        for place, name in names.items():
            past = begins[place] if name in WHOLE else ends[place] - PAST
            # The end may be before what was read: a topic that was deleted and made again begins at
            # 0.
            was = min(self._read_to.get(place, 0), ends[place])
            consumer.seek(place, max(begins[place], past, was))
        self._works()

    async def _watch(self, consumer: AIOKafkaConsumer, place: TopicPartition) -> None:
        """Ask Kafka for an answer regularly: a consumer alone waits for ever for a broker that is
        away.
        """
        while True:
            await asyncio.sleep(LOOK_EVERY)
            async with asyncio.timeout(ANSWER_WITHIN):
                await consumer.end_offsets([place])
            self._works()

    def _fails(self, what: str) -> None:
        if self.trouble is None:
            self.since = time.time()
        # Once for each trouble: it is tried again every second, for as long as it lasts.
        if self.trouble != what:
            log.warning("%s", what)
        self.trouble = what

    def _works(self) -> None:
        if self.trouble is not None:
            self.trouble, self.since = None, time.time()
