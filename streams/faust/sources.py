"""Source topics on a path of their own: lists of records as they were fetched, acknowledged by
ranges.

Faust awaits a callback for each message, and keeps an event, reference counts and a gap set of it;
that took most of a worker's time. Of Faust stay what it is good at: membership, assignment,
recovery, timers, and when offsets are committed.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence

from faust.types import TP

from ground.messages import Record

#: Records in a batch at the start, and where batches take long.
FEW = 64
#: CPU seconds of the event loop's thread while a batch was in hand, of other agents too: below the
#: one batches grow, above the other they shrink. Waiting for Kafka, or for a busy machine, is what
#: longer batches share, so it does not count (benchmarks.stream).
GROW_BELOW_SECONDS, SHRINK_ABOVE_SECONDS = 0.075, 0.2
#: What of its bytes a partition that was full must have free before it is fetched again.
DRAINED = 0.5


class Source:
    """One topic: what was fetched of it and waits for its agent, and what the agent has in hand.

    Attributes:
        idle: set while the agent has nothing in hand.
        done: the offsets after what the agent has finished, by partition.

    Args:
        guard: raises where records that exist were never delivered.
        most: records in a batch where many wait and batches are soon done.
        max_bytes: bytes that may wait of each partition before fetching it stops.
        full, drained: stop and resume fetching a partition.
    """

    def __init__(
        self,
        *,
        guard: Callable[[TP, list[Record]], Awaitable[None]],
        most: int,
        max_bytes: int,
        full: Callable[[TP], None],
        drained: Callable[[TP], None],
    ) -> None:
        self._guard = guard
        self._least, self._most = min(FEW, most), most
        self._size = self._least
        self._max_bytes = max_bytes
        self._full, self._drained = full, drained
        self._waiting: deque[tuple[TP, deque[Record]]] = deque()
        self._queues: dict[TP, deque[Record]] = {}
        self._bytes: dict[TP, int] = {}
        self._stopped: set[TP] = set()
        self._arrived = asyncio.Event()
        self._since = 0.0
        self._taken_at = 0.0
        self._in_hand: dict[TP, int] = {}
        self.idle = asyncio.Event()
        self.idle.set()
        self.done: dict[TP, int] = {}

    def put(self, tp: TP, records: Sequence[Record]) -> None:
        """Let fetched records of a partition wait, in order after those that do."""
        queue = self._queues.get(tp)
        if queue is None:
            queue = self._queues[tp] = deque()
            self._waiting.append((tp, queue))
        queue.extend(records)
        self._bytes[tp] = self._bytes.get(tp, 0) + sum(map(_weight, records))
        if self._bytes[tp] > self._max_bytes and tp not in self._stopped:
            self._stopped.add(tp)
            self._full(tp)
        # Of the oldest that waits: what comes behind it changes nothing.
        if not self._arrived.is_set():
            self._since = time.monotonic()
            self._arrived.set()

    def clear(self) -> None:
        """Drop what waits: it is read again from the last committed offset."""
        self._waiting.clear()
        self._queues.clear()
        self._bytes.clear()
        self._stopped.clear()
        self._arrived.clear()

    def forget(self, tps: set[TP]) -> None:
        """Forget what was done of partitions that are not this worker's any more."""
        for tp in tps:
            self.done.pop(tp, None)

    @property
    def oldest(self) -> float | None:
        """When the oldest unfinished record came, on the monotonic clock; None where nothing is
        unfinished.
        """
        if self._in_hand:
            return self._taken_at
        return self._since if self._arrived.is_set() else None

    def __len__(self) -> int:
        return sum(map(len, self._queues.values()))

    async def batches(self) -> AsyncIterator[list[Record]]:
        """Yield what waits, at once; a batch is done when the next one is asked for.

        Raises:
            OffsetGap: records that exist were never delivered.
        """
        while True:
            await self._arrived.wait()
            taken = self._take()
            started = time.thread_time()
            # Before the agent sees them: a hole that is found after a commit would be
            # acknowledged.
            for tp, records in taken:
                await self._guard(tp, records)
            batch = [record for _, records in taken for record in records]
            yield batch
            self._finish(len(batch), time.thread_time() - started)

    def _take(self) -> list[tuple[TP, list[Record]]]:
        """Take up to a batch's size, from the partitions in turn."""
        taken: list[tuple[TP, list[Record]]] = []
        left = self._size
        self._taken_at = self._since
        self.idle.clear()
        while self._waiting and left:
            # In turn: a partition with a backlog delays the others by one batch, not by all of it.
            tp, queue = self._waiting.popleft()
            records = [queue.popleft() for _ in range(min(len(queue), left))]
            left -= len(records)
            taken.append((tp, records))
            self._in_hand[tp] = records[-1].offset + 1
            if queue:
                self._waiting.append((tp, queue))
                self._bytes[tp] -= sum(map(_weight, records))
            else:
                del self._queues[tp], self._bytes[tp]
            if tp in self._stopped and self._bytes.get(tp, 0) < self._max_bytes * DRAINED:
                self._stopped.discard(tp)
                self._drained(tp)
        if self._waiting:
            self._since = time.monotonic()
        else:
            self._arrived.clear()
        return taken

    def _finish(self, count: int, seconds: float) -> None:
        self.done |= self._in_hand
        self._in_hand = {}
        self.idle.set()
        if seconds > SHRINK_ABOVE_SECONDS:
            self._size = max(self._size // 2, self._least)
        elif count == self._size and seconds < GROW_BELOW_SECONDS:
            self._size = min(self._size * 2, self._most)


def _weight(record: Record) -> int:
    """Return about how many bytes a record takes while it waits."""
    return 200 + len(record.key or b"") + len(record.value or b"")


class Sources:
    """All source topics of a worker, by topic name."""

    def __init__(self) -> None:
        self._sources: dict[str, Source] = {}

    def add(self, topic: str, source: Source) -> Source:
        """Take records of this topic for this source from now on, and return it."""
        self._sources[topic] = source
        return source

    def __iter__(self) -> Iterator[str]:
        return iter(self._sources)

    def deliver(self, tp: TP, records: Sequence[Record]) -> None:
        """Hand fetched records to their topic."""
        self._sources[tp.topic].put(tp, records)

    def clear(self) -> None:
        """Drop what no agent has in hand."""
        for source in self._sources.values():
            source.clear()

    def forget(self, tps: set[TP]) -> None:
        """Forget partitions that are not this worker's any more."""
        for source in self._sources.values():
            source.forget(tps)

    async def finished(self) -> None:
        """Return once no agent has a batch in hand."""
        for source in self._sources.values():
            await source.idle.wait()

    @property
    def unfinished(self) -> int:
        """How many records wait."""
        return sum(map(len, self._sources.values()))

    def oldest(self) -> float | None:
        """When the oldest unfinished record came, on the monotonic clock; None where nothing is
        unfinished.
        """
        return min(
            (at for source in self._sources.values() if (at := source.oldest) is not None),
            default=None,
        )

    def done(self) -> dict[TP, int]:
        """Return the offsets after what the agents have finished, by partition."""
        return {
            tp: offset for source in self._sources.values() for tp, offset in source.done.items()
        }
