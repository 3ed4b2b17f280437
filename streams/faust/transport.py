"""Reach Kafka: the changelog's records go to the recovery, all others to the streams; what is produced is stored once."""

import asyncio
import gc
from typing import Any

from faust.transport.drivers import aiokafka as driver

from streams.faust.fetching import ConsumerThread
from streams.log.consumer import UnreadableBatch

#: How long the fetcher sleeps while every partition is paused, and a stop between two looks at what is unfinished, seconds.
#: Faust has a second for both, which each restart would wait for.
PAUSED_FOR = 0.02
LOOK_EVERY = 0.05
#: Looks between two collections of garbage while a stop waits for what is unfinished.
COLLECT_EVERY = 10


class Consumer(driver.Consumer):  # type: ignore[misc]
    """Consume with the thread above; the changelog's records go to the recovery, all others to the streams."""

    _caught_up: frozenset[Any] = frozenset()

    def __post_init__(self) -> None:
        super().__post_init__()
        self._delivered_to: dict[Any, int] = {}

    @property
    def silence(self) -> float:
        """Return for how many seconds the leader of a partition has not answered a fetch that is due."""
        return float(self._thread.silence())

    @property
    def unreadable(self) -> list[UnreadableBatch]:
        """Return what keeps source partitions from going on."""
        return list(self._thread.unreadable.values())

    def end_of(self, tp: Any) -> int | None:
        """Return the offset after a source's last event as of the last fetch, None while that is not known.

        The log's own end is behind it where a transaction has ended, or was aborted: nothing comes of these offsets.
        """
        if tp in self._caught_up:
            return self._delivered_to.get(tp, 0)
        found = self.highwater(tp) if tp in self.assignment() else None
        return None if found is None else int(found)

    def _new_consumer_thread(self) -> ConsumerThread:
        return ConsumerThread(self, loop=self.loop, beacon=self.beacon)

    async def _wait_next_records(self, timeout: float) -> tuple[dict[Any, Any], set[Any]]:  # noqa: ASYNC109
        if self.flow_active and not self._get_active_partitions():
            await self.sleep(PAUSED_FOR)
            return {}, set()
        fetched, active = await super()._wait_next_records(timeout)
        self._caught_up = self._thread.caught_up
        recovery = self.app.tables.recovery
        records: dict[Any, Any] = {}
        for tp, batch in (fetched or {}).items():
            if not recovery._is_changelog_tp(tp):
                records[tp] = batch
                self._delivered_to[tp] = batch[-1].offset + 1
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
