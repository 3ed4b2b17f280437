"""Choose the events of a partition's next group: what can be booked first, and no more at a time
than lets the others have their turn."""

from __future__ import annotations

from collections.abc import Callable, Collection, Coroutine
from typing import Final

from agents.group import Batch
from agents.ports import Inbox, Limits
from agents.table.own_routers import Routers
from agents.table.pool_records import Pools
from agents.taking.waits import Waits
from ground.messages import Record

FEW: Final = 64
"""Events in a group at the start."""
FEWEST: Final = 16
"""Events below which groups are not made smaller."""
GROW_BELOW_SECONDS, SHRINK_ABOVE_SECONDS = 0.002, 0.005
"""Seconds of a group below which full ones grow, and above which they shrink: so long a request of
another partition may have to wait (`benchmarks.stream`, its row with a backlog of bills)."""
SLOW_IN_A_ROW: Final = 4
"""Groups that take too long one after the other before they are made smaller: one of them may have
lost the processor to another program. The thread's own clock, which does not count that, is a call
of the system, which takes 100 µs in some containers."""

Decode = Callable[[str, list[Record]], Batch]
"""Makes a batch of a topic's events, by the topic's name without the prefix."""
Spawn = Callable[[Coroutine[object, object, None]], object]
"""Starts work that lives no longer than the partition."""


class GroupSize:
    """The number of events of a group that is applied in a few milliseconds.

    Args:
        most: the largest size.
    """

    def __init__(self, most: int) -> None:
        self.events, self._most = min(FEW, most), most
        self._slow = 0

    def applied(self, events: int, seconds: float) -> None:
        """Note how long a group of so many events took."""
        self._slow = self._slow + 1 if seconds > SHRINK_ABOVE_SECONDS else 0
        if self._slow == SLOW_IN_A_ROW:
            self.events, self._slow = max(self.events // 2, min(FEWEST, self._most)), 0
        elif events >= self.events and seconds < GROW_BELOW_SECONDS:
            self.events = min(self.events * 2, self._most)


class NextGroup:
    """Choose from a partition's inbox what the next group has, a batch a topic.

    Args:
        topics: names without the prefix, in the order in which the batches of a group are applied.

    Attributes:
        size: how many events a group has time for.
        waits: how long bills and rewards have waited to be taken.
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
        """Tell whether anything waits to be taken."""
        return any(map(self.has, self._topics))

    def has(self, name: str) -> bool:
        """Tell whether anything waits of a topic."""
        return name in self._prepared or (
            name not in self._preparing and bool(self._inbox.queues[name])
        )

    def has_requests(self) -> bool:
        """Tell whether requests wait."""
        return self.has("requests")

    @property
    def is_whole(self) -> bool:
        """Tell whether as much waits as a group takes."""
        waiting = sum(len(self._inbox.queues[name]) for name in self._topics)
        return waiting >= self.size.events

    def take(self, decode: Decode, spawn: Spawn) -> list[Batch]:
        """Take what is there, a batch a topic: as many events as a group has time for, and as its
        record batch has bytes for. A batch for which something has to be awaited is prepared aside,
        and taken later."""
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
        """Return how many events a group has time for, and bytes, were all of them as heavy as the
        heaviest that comes first: requests then leave bytes for feedback."""
        heads = [queue[0] for name in self._topics if (queue := self._inbox.queues[name])]
        # Those that are packed are not unpacked for this.
        heaviest = max((self._weight(head) or 0 for head in heads), default=0)
        return max(min(self.size.events, left // max(heaviest, 1)), 1)

    def _share(self, name: str, most: int) -> int:
        """Return how many of a topic's events a group takes that has room for so many of this one
        and those behind it: a backlog of bills leaves room for rewards."""
        names = self._topics[self._topics.index(name) :]
        waiting = [len(self._inbox.queues[one]) for one in names]
        return -(-most * waiting[0] // max(sum(waiting), 1))

    def _weight(self, record: Record) -> int | None:
        """Return how many bytes an event may add to a record batch; None where its router is not
        unpacked yet."""
        router_id = router_of(record)
        weight = self._routers.weight(router_id)
        if weight is None:
            return None
        return len(record.value or b"") + weight + self._pools.weight(router_id)

    def records(self, name: str, most: int, left: int = 2**31) -> tuple[list[Record], int]:
        """Take records of a topic, for so many bytes; what is left of them is returned."""
        queue = self._inbox.queues[name]
        found: list[Record] = []
        while queue and len(found) < most and left > 0:
            weight = self._weight(queue[0])
            if weight is None:
                # What comes first does not wait until it is unpacked: after a start a group unpacks
                # one router.
                if found:
                    break
                self._routers.engine(router_of(queue[0]))
                weight = self._weight(queue[0]) or 0
            if weight > left and found:
                break
            left -= weight
            found.append(queue.popleft())
        if found:
            self._inbox.took(name, found)
        return found, left


def router_of(record: Record) -> str:
    """Return the key of a record as text."""
    return (record.key or b"").decode(errors="replace")
