"""Take what is there of one partition, and pass it on in groups: what can be booked first, and no
more at a time than lets the others have their turn."""

from __future__ import annotations

import time
from collections.abc import Coroutine, Sequence
from functools import partial
from typing import Final

from agents.group import Agents, Batch, Declare, Group
from agents.lane.lane import Lane
from agents.lane.poison import LIVES, try_alone
from agents.parked import Parked
from agents.refusal_kinds import InternalError
from agents.taking.turns import Turns
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


class Declarations(Batch):
    """Declarations, which are put in force beside the groups."""

    __slots__ = ()
    name = "routers"


class Serving:
    """Take what comes of one partition, and pass it to its lane.

    Args:
        agents: how events are decoded and applied, in the order in which those of a group are.
    """

    def __init__(self, lane: Lane, agents: Agents, *, turns: Turns) -> None:
        self._lane, self._agents, self._turns = lane, agents, turns
        self._ports, self._shard, self._inbox = lane.ports, lane.shard, lane.inbox
        self._size = GroupSize(lane.ports.limits.batch_size)
        self._prepared: dict[str, Batch] = {}
        self._preparing: set[str] = set()

    def start(self, declare: Declare) -> None:
        """Begin."""
        self._lane.spawn(self._serve())
        self._lane.spawn(self._declare(declare))

    async def _serve(self) -> None:
        """Pass what comes of the agents' topics, in groups."""
        while True:
            await self._inbox.arrived.wait()
            self._inbox.arrived.clear()
            while any(map(self._has_work, self._agents)):
                waiting = sum(len(self._inbox.queues[name]) for name in self._agents)
                await self._lane.room(whole=waiting >= self._size.events)
                since = self._lane.waits.since()
                await self._turns.take(partial(self._has_work, "requests"), since=since)
                if batches := self.take():
                    await self._pass(batches)

    async def _declare(self, declare: Declare) -> None:
        """Pass declarations beside all else: they come seldom, and take several record batches."""
        while True:
            await self._inbox.declared.wait()
            self._inbox.declared.clear()
            while records := self._records("routers", self._ports.limits.batch_size)[0]:
                batch = Declarations(records)
                await try_alone(records, declare, self._give_up)
                self._inbox.finish(batch.name, records[-1].offset + 1)
                self._ports.finished(Group([batch], passed=[]))

    def _has_work(self, name: str) -> bool:
        return name in self._prepared or (
            name not in self._preparing and bool(self._inbox.queues[name])
        )

    def take(self) -> list[Batch]:
        """Take what is there, a batch a topic: as many events as a group has time for, and as its
        record batch has bytes for."""
        found: list[Batch] = []
        left = self._ports.limits.changelog_batch_bytes // 2
        most = self._events(left)
        requests = self._lane.waits.requests(most)
        for name, agent in self._agents.items():
            batch = self._prepared.pop(name, None)
            if batch is None and name not in self._preparing:
                here = requests if name == "requests" else self._share(name, most)
                records, left = self._records(name, here, left)
                batch = agent(records) if records else None
            if batch is None:
                continue
            if (preparation := batch.preparation()) is not None:
                self._preparing.add(name)
                self._lane.spawn(self._prepare(batch, preparation))
                continue
            found.append(batch)
            most = max(most - len(batch.messages), 0)
        return found

    def _events(self, left: int) -> int:
        """Return how many events a group has time for, and bytes, were all of them as heavy as the
        heaviest that comes first: requests then leave bytes for feedback."""
        heads = [queue[0] for name in self._agents if (queue := self._inbox.queues[name])]
        # Those that are packed are not unpacked for this.
        known = (head for head in heads if not self._shard.is_packed(_router_of(head)))
        heaviest = max(map(self._weight, known), default=0)
        return max(min(self._size.events, left // max(heaviest, 1)), 1)

    def _share(self, name: str, most: int) -> int:
        """Return how many of a topic's events a group takes that has room for so many of this one
        and those behind it: a backlog of bills leaves room for rewards."""
        names = list(self._agents)
        waiting = [len(self._inbox.queues[one]) for one in names[names.index(name) :]]
        return -(-most * waiting[0] // max(sum(waiting), 1))

    def _weight(self, record: Record) -> int:
        """Return how many bytes an event may add to a record batch."""
        return len(record.value or b"") + self._shard.weight(_router_of(record))

    def _records(self, name: str, most: int, left: int = 2**31) -> tuple[list[Record], int]:
        """Take records of a topic, for so many bytes; what is left of them is returned."""
        queue = self._inbox.queues[name]
        found: list[Record] = []
        while queue and len(found) < most and left > 0:
            head = queue[0]
            # What comes first does not wait until it is unpacked: after a start a group unpacks
            # one router.
            if found and self._shard.is_packed(_router_of(head)):
                break
            weight = self._weight(head)
            if weight > left and found:
                break
            left -= weight
            found.append(queue.popleft())
        if found:
            self._inbox.took(name, found)
        return found, left

    async def _prepare(self, batch: Batch, preparation: Coroutine[object, object, None]) -> None:
        """Prepare a batch aside, as something has to be waited for."""
        batch.step("encode")
        await preparation
        batch.step("decode")
        self._preparing.discard(batch.name)
        self._prepared[batch.name] = batch
        self._inbox.arrived.set()

    async def _pass(self, batches: list[Batch]) -> None:
        """Apply batches together, or each of their events alone where that fails for one."""
        count = sum(len(batch.messages) for batch in batches)
        began = time.monotonic()
        try:
            self._apply(batches)
        except InternalError as error:
            for batch in batches:
                for message in batch.messages:
                    await self._alone(batch.name, message, error)
            return
        self._size.applied(count, time.monotonic() - began)

    def _apply(self, batches: list[Batch]) -> None:
        with self._lane.applying(batches) as group:
            for batch in batches:
                batch.apply(group.answers)
                group.answers.at = None
                self._lane.contain(batch.messages)
        answer = self._lane.send(group)
        if any(batch.name == "requests" for batch in batches):
            self._turns.watch(answer)

    async def _alone(self, name: str, message: Record, error: InternalError) -> None:
        """Give an event as many lives as it has, then refuse it."""
        for _ in range(LIVES):
            batch = self._agents[name]([message])
            await self._lane.room()
            while (preparation := batch.preparation()) is not None:
                await preparation
                await self._lane.room()
            try:
                self._apply([batch])
            except InternalError as again:
                error = again
            else:
                return
        await self._give_up(message, error, [batch])

    async def _give_up(
        self, message: Record, error: InternalError, batches: Sequence[Batch] = ()
    ) -> None:
        """Refuse a message on which this worker fails."""
        router_id = _router_of(message)
        private = message.topic == self._ports.topic["requests"]
        parked = Parked.of(message, error, router_id=router_id, private=private)
        await self._lane.give_up(parked, error, batches)


def _router_of(record: Record) -> str:
    return (record.key or b"").decode(errors="replace")
