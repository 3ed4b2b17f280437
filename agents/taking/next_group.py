"""Choose the events of a partition's next group: feedback that can be booked comes first, and the
group is small enough that other partitions get their turn.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Coroutine
from typing import Final

from agents.group import Batch
from agents.ports import Inbox, Limits
from agents.table.own_routers import Routers
from agents.table.pool_records import Pools
from agents.taking.waits import Waits
from ground.messages import Record, key_text

FEW: Final = 64
"""Number of events in a group at the start."""
FEWEST: Final = 16
"""Least number of events that a group takes if as many wait."""
TURN: Final = 0.004
"""Seconds that a full group may take. A request of another partition may have to wait this long
(`benchmarks.stream`, the row with a backlog of bills).
"""
RECENT: Final = 8
"""Number of the last groups of which the quickest counts. A slow group may have lost the processor
to another program. The thread's own clock would not count that, but is a system call, which takes
100 µs in some containers.
"""
AT_ONCE: Final = 2
"""Turns' worth of requests that a group may have if as many requests wait. Partitions take turns,
so the one with the most requests would fall behind if it could take no more than the others; and an
event of a larger group costs less.
"""

Decode = Callable[[str, list[Record]], Batch]
"""Function that makes a batch of a topic's events, given the topic's name without the prefix."""
Spawn = Callable[[Coroutine[object, object, None]], object]
"""Function that starts work which lives no longer than the partition."""


class GroupSize:
    """The number of events that a group can apply in `TURN` seconds, as the last groups have shown.

    Partitions whose events are equally heavy have groups of the same size, whatever else runs on
    the machine. A partition with smaller groups than the others would be served less in its turns,
    and its events would wait for seconds.

    Args:
        most: the largest size.
    """

    def __init__(self, most: int) -> None:
        self.events, self._most = min(FEW, most), most
        self._each: deque[float] = deque(maxlen=RECENT)

    def applied(self, events: int, seconds: float) -> None:
        """Note the seconds that a group of `events` events took."""
        # A group of few events costs little more than an empty one, which tells nothing of a full
        # one.
        if 2 * events < self.events and seconds < TURN:
            return
        self._each.append(seconds / max(events, 1))
        if 2 * len(self._each) >= RECENT:
            fit = TURN // max(min(self._each), TURN / self._most)
            self.events = min(max(int(fit), FEWEST), self._most)

    def holding(self, requests: int) -> int:
        """Return the number of events of a group while this number of requests waits."""
        return max(self.events, min(requests, AT_ONCE * self.events, self._most))


class NextGroup:
    """The choice of the next group's events from a partition's inbox, one batch per topic.

    Args:
        topics: names without the prefix, in the order in which the batches of a group are applied.

    Attributes:
        size: number of events that a group has time for.
        waits: times for which bills and rewards have waited.
    """

    def __init__(
        self,
        topics: Collection[str],
        inbox: Inbox,
        *,
        routers: Routers,
        pools: Pools,
        limits: Limits,
    ) -> None:
        self._topics, self._inbox = tuple(topics), inbox
        self._routers, self._pools = routers, pools
        self.waits = Waits(routers.knows, inbox.queues)
        self._bytes = limits.changelog_batch_bytes // 2
        self.size = GroupSize(limits.batch_size)
        self._prepared: dict[str, Batch] = {}
        self._preparing: set[str] = set()

    def __bool__(self) -> bool:
        """Tell whether any event waits to be taken."""
        return any(map(self.has, self._topics))

    def has(self, name: str) -> bool:
        """Tell whether any event of a topic waits."""
        return name in self._prepared or (
            name not in self._preparing and bool(self._inbox.queues[name])
        )

    def has_requests(self) -> bool:
        """Tell whether requests wait."""
        return self.has("requests")

    @property
    def is_whole(self) -> bool:
        """Tell whether as many events wait as a group takes."""
        waiting = sum(len(self._inbox.queues[name]) for name in self._topics)
        return waiting >= self.size.events

    def take(self, decode: Decode, spawn: Spawn) -> list[Batch]:
        """Take the waiting events, one batch per topic, within the time and the bytes of one group.
        A batch that must await something is prepared in a task, and a later group takes it.
        """
        found: list[Batch] = []
        left = self._bytes
        most = self._events(left)
        requests = self.waits.requests(most)
        for name in self._topics:
            batch = self._prepared.pop(name, None)
            if batch is None and name not in self._preparing:
                here = requests if name == "requests" else self._share(name, most)
                records, left = self.records(name, here, left)
                batch = decode(name, records) if records else None
            if batch is None:
                continue
            if (preparation := batch.preparation()) is not None:
                self._preparing.add(name)
                spawn(self._prepare(batch, preparation))
                continue
            found.append(batch)
            most = max(most - len(batch.messages), 0)
        return found

    async def _prepare(self, batch: Batch, preparation: Coroutine[object, object, None]) -> None:
        batch.step("encode")
        await preparation
        batch.step("decode")
        self._preparing.discard(batch.name)
        self._prepared[batch.name] = batch
        self._inbox.arrived.set()

    def _events(self, left: int) -> int:
        """Return the number of events that a group has time and bytes for, if all are as heavy as
        the heaviest first event of a topic: so requests leave bytes for feedback.
        """
        heads = [queue[0] for name in self._topics if (queue := self._inbox.queues[name])]
        # Packed routers are not unpacked for this.
        heaviest = max((self._weight(head) or 0 for head in heads), default=0)
        size = self.size.holding(len(self._inbox.queues["requests"]))
        return max(min(size, left // max(heaviest, 1)), 1)

    def _share(self, name: str, most: int) -> int:
        """Return how many events of a topic a group takes if it has room for `most` events of this
        topic and the ones after it: a backlog of bills leaves room for rewards.
        """
        names = self._topics[self._topics.index(name) :]
        waiting = [len(self._inbox.queues[one]) for one in names]
        return -(-most * waiting[0] // max(sum(waiting), 1))

    def _weight(self, record: Record) -> int | None:
        """Return the bytes that an event may add to a record batch; None if its router is not
        unpacked yet.
        """
        router_id = key_text(record)
        weight = self._routers.weight(router_id)
        if weight is None:
            return None
        return len(record.value or b"") + weight + self._pools.weight(router_id)

    def records(self, name: str, most: int, left: int = 2**31) -> tuple[list[Record], int]:
        """Take records of a topic, for at most `left` bytes; return them and the bytes that are
        left.
        """
        queue = self._inbox.queues[name]
        found: list[Record] = []
        while queue and len(found) < most and left > 0:
            weight = self._weight(queue[0])
            if weight is None:
                # The first event does not wait until its router is unpacked: after a start each
                # group unpacks one router.
                if found:
                    break
                self._routers.engine(key_text(queue[0]))
                weight = self._weight(queue[0]) or 0
            if weight > left and found:
                break
            left -= weight
            found.append(queue.popleft())
        if found:
            self._inbox.took(name, found)
        return found, left
