"""Hand fetched records of source topics to the lanes, bypassing Faust's streams, and acknowledge
them by ranges.

Faust awaits a callback for each message, and keeps an event, reference counts and a gap set for
it; that took most of a worker's time. Membership, assignment, recovery, timers and the time of
commits are left to Faust.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence

from faust.types import TP

from ground.messages import Record

DRAINED = 0.5
"""Share of its bytes that a full partition must have free before it is fetched again."""
RECORD_BYTES = 250
"""Approximate bytes that a waiting record takes in memory beside its value."""


class Inbox:
    """Records that were fetched of one partition, by source topic: those that wait, and how far
    the lane has taken and finished them. Topics are named without the prefix.

    Attributes:
        queues: waiting records of each topic, in order.
        arrived, declared: events that are set when records, or declarations, have come.
        idle: event that is set while the lane has nothing in hand.
        done: offsets after the finished records.

    Args:
        topics: full names by short names; records of `routers` are declarations.
        max_bytes: bytes of a topic that may wait before fetching it stops.
        stop, resume: functions that stop and resume fetching a partition. Only partitions that are
            neither full nor held are resumed.
    """

    def __init__(
        self,
        number: int,
        topics: Mapping[str, str],
        *,
        max_bytes: int,
        stop: Callable[[TP], None],
        resume: Callable[[TP], None],
    ) -> None:
        self._tps = {name: TP(topic, number) for name, topic in topics.items()}
        self._max_bytes = max_bytes
        self._stop, self._resume = stop, resume
        self.queues: dict[str, deque[Record]] = {name: deque() for name in topics}
        self._bytes = dict.fromkeys(topics, 0)
        self._full: set[str] = set()
        self._held: frozenset[str] = frozenset()
        self._taken: dict[str, int] = {}
        self._since = self._taken_at = 0.0
        self.arrived, self.declared, self.idle = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self.idle.set()
        self.done: dict[str, int] = {}

    def put(self, name: str, records: Sequence[Record]) -> None:
        """Append fetched records to the queue."""
        # The time is that of the oldest waiting record: later ones do not change it.
        if not len(self):
            self._since = time.monotonic()
        self.queues[name].extend(records)
        self._bytes[name] += _weight(records)
        if self._bytes[name] > self._max_bytes and name not in self._full:
            self._full.add(name)
            self._stop(self._tps[name])
        (self.declared if name == "routers" else self.arrived).set()

    def took(self, name: str, records: Sequence[Record]) -> None:
        """Note that these records were taken from the queue."""
        if self.idle.is_set():
            self._taken_at = self._since
            self.idle.clear()
        self._since = time.monotonic()
        self._taken[name] = records[-1].offset + 1
        self._bytes[name] = self._bytes[name] - _weight(records) if self.queues[name] else 0
        if name in self._full and self._bytes[name] < self._max_bytes * DRAINED:
            self._full.discard(name)
            if name not in self._held:
                self._resume(self._tps[name])

    def hold(self, names: frozenset[str]) -> None:
        """Stop fetching these topics, and resume the others that have room."""
        for name in names:
            self._stop(self._tps[name])
        for name in self._held - names - self._full:
            self._resume(self._tps[name])
        self._held = names

    def finish(self, name: str, offset: int) -> None:
        """Note that all records before an offset are done."""
        self.done[name] = offset
        self._taken_at = time.monotonic()
        if self._taken.get(name) == offset:
            del self._taken[name]
            if not self._taken:
                self.idle.set()

    def clear(self) -> None:
        """Drop the queue; its records are read again from the last committed offset, and a recovery
        resumes all topics."""
        for name, queue in self.queues.items():
            queue.clear()
            self._bytes[name] = 0
        self._full.clear()
        self._held = frozenset()

    def forget(self) -> None:
        """Forget the finished offsets: the partition may be another worker's by now."""
        self.done = {}

    @property
    def oldest(self) -> float | None:
        """Return the monotonic time since which the lane has finished nothing; None if nothing is
        unfinished.
        """
        if not self.idle.is_set():
            return self._taken_at
        return self._since if len(self) else None

    @property
    def offsets(self) -> dict[TP, int]:
        """The offsets after the finished records."""
        return {self._tps[name]: offset for name, offset in self.done.items()}

    def __len__(self) -> int:
        return sum(map(len, self.queues.values()))


def _weight(records: Sequence[Record]) -> int:
    """Return the approximate bytes that records take while they wait."""
    return sum([len(one.value or b"") for one in records], RECORD_BYTES * len(records))


class Sources:
    """All source topics of a worker, by partition.

    Args:
        topics: full names by short ones.
        inbox: makes the inbox of a partition.
    """

    def __init__(self, topics: Mapping[str, str], inbox: Callable[[int], Inbox]) -> None:
        self._names = {topic: name for name, topic in topics.items()}
        self._inbox = inbox
        self._inboxes: dict[int, Inbox] = {}

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def inbox(self, number: int) -> Inbox:
        """Return the inbox of a partition."""
        if (found := self._inboxes.get(number)) is None:
            found = self._inboxes[number] = self._inbox(number)
        return found

    def deliver(self, tp: TP, records: Sequence[Record]) -> None:
        """Hand fetched records to their partition's lane."""
        self.inbox(tp.partition).put(self._names[tp.topic], records)

    def hold(self, names: frozenset[str], partitions: frozenset[int]) -> None:
        """Stop fetching topics of these partitions, and resume those of all others that have room.

        Fetched records are still delivered. Pausing partitions would drop them.
        """
        for number, inbox in self._inboxes.items():
            inbox.hold(names if number in partitions else frozenset())

    def clear(self) -> None:
        """Drop the records that no lane has in hand."""
        for inbox in self._inboxes.values():
            inbox.clear()

    def forget(self, tps: set[TP]) -> None:
        """Forget partitions that are not this worker's any more."""
        for number in {tp.partition for tp in tps} & self._inboxes.keys():
            self._inboxes[number].forget()

    async def finished(self) -> None:
        """Return once no lane has anything in hand."""
        for inbox in list(self._inboxes.values()):
            await inbox.idle.wait()

    @property
    def unfinished(self) -> int:
        """Return the number of records that wait."""
        return sum(map(len, self._inboxes.values()))

    def oldest(self) -> float | None:
        """Return the earliest monotonic time since which a lane has finished none of its records;
        None if nothing is unfinished.
        """
        return min(
            (at for inbox in self._inboxes.values() if (at := inbox.oldest) is not None),
            default=None,
        )

    def done(self) -> dict[TP, int]:
        """Return the offsets after the finished records, by partition."""
        return {
            tp: offset for inbox in self._inboxes.values() for tp, offset in inbox.offsets.items()
        }
