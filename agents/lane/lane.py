"""The pipeline of one partition from fetched records to answers: only here changes become durable
and answers leave."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Final

from agents.group import Answers, Batch, Group
from agents.lane.poison import blamed
from agents.lane.validating import validate
from agents.parked import Parked
from agents.partition.news import Bulletin
from agents.ports import Ports
from agents.refusal_kinds import InternalError
from agents.table.own_routers import Shard
from agents.taking.waits import Waits
from ground.boundary import BoundaryError
from ground.messages import Record

UNDER_WAY: Final = 2
"""Most groups of a partition that are applied and not durable yet: one's record batch travels, the
next one's is packed. More would only make them smaller (`benchmarks.stream`)."""
UNANSWERED: Final = 8
"""Groups of a partition that are not finished, those whose answers are on their way included."""


class Voided(BoundaryError):
    """A group can't become durable, because an earlier one did not."""

    reason = "voided"


class Awaited(BoundaryError):
    """Something was awaited while a group was being applied: others may have seen half of it."""

    reason = "awaited"


class Lane:
    """The only writer of one partition. A group, once taken (`agents.taking`), passes seven steps:

    1. `applying`: the agents apply it, and nothing is awaited meanwhile. An event on which the
       worker fails rolls the group back.
    2. `contain`: the state now contains these offsets of its sources.
    3. `pack`: what changed becomes one record batch: pieces, records and offsets.
    4. `send`: it goes its way, and the next group may be applied.
    5. `land`: once the one before it is on the log it is written, and it is there when Kafka has
       it, at the offset where this owner's next batch belongs.
    6. `answer`: decisions and dead letters leave, and Kafka has them.
    7. `finish`: its source offsets may be committed, as all before them.

    Up to 3 a group can be undone, as nobody has seen it. From 4 on it can't: whether a batch that
    failed is on the log only the log knows. So a failure there ends the process, with all groups
    behind it, and the partition is recovered from the log.

    Attributes:
        waits: how long bills and rewards have waited to be taken.
        delivered: what was kept until its answer is delivered, to be forgotten with the next group.
        undelivered: refusals whose dead letters are to be sent again.
        interrupted: whether something may be left to be finished, see `publish.resume`.
    """

    def __init__(
        self,
        ports: Ports,
        shard: Shard,
        *,
        bulletin: Bulletin,
        refuse: Callable[[Parked, Exception, Answers], None],
    ) -> None:
        self.ports, self.shard, self.inbox = ports, shard, ports.inbox(shard.number)
        self.waits = Waits(shard, self.inbox.queues)
        self._bulletin, self._refuse = bulletin, refuse
        self.delivered: list[Parked] = []
        self.undelivered = [parked for parked in shard.parking if parked.refused]
        self.interrupted = True
        self._groups: deque[Group] = deque()
        self._under_way = 0
        self._room = asyncio.Event()
        self._broken: BaseException | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    def stop(self) -> None:
        """Stop: no further group passes."""
        for task in self._tasks:
            task.cancel()

    def reopen(self) -> None:
        """Open the lane again after a recovery."""
        self._room.set()

    async def settled(self) -> None:
        """Return when everything that has been applied by now is durable."""
        if self._groups and not self._groups[-1].durable.done():
            await asyncio.wait([self._groups[-1].durable])
        self._require_sound()

    async def give_up(
        self, parked: Parked, error: InternalError, batches: Sequence[Batch] = ()
    ) -> None:
        """Refuse an event on which this worker fails; its offset is contained from then on."""
        await self.room()
        with self.applying(batches) as group:
            self._refuse(parked, error, group.answers)
            # The offset of an event that had waited is contained already; then this changes
            # nothing.
            self.shard.watermarks.advance(parked.topic, parked.offset)
        self.ports.count("internal_error")
        await asyncio.shield(self.send(group))

    @asynccontextmanager
    async def batch(self) -> AsyncIterator[Answers]:
        """Apply changes that come from no source event; at the end they are durable and their
        answers delivered. Nothing may be awaited inside."""
        await self.room()
        with self.applying() as group:
            yield group.answers
        await asyncio.shield(self.send(group))

    async def room(self, *, whole: bool = True) -> None:
        """Wait until another group may be applied. The number on the way is bounded, and groups
        grow meanwhile.

        Args:
            whole: as much is there as a group takes. What is less waits until the batch that
                travels has landed: each group costs as much as the decisions of several requests.
        """
        while (
            self._under_way >= (UNDER_WAY if whole else 1)
            or len(self._groups) >= UNANSWERED
            or not self.shard.table.open
        ) and self._broken is None:
            self._room.clear()
            await self._room.wait()
        self._require_sound()

    def _break(self, error: BaseException) -> None:
        """Close the lane: it is not known whether this group is on the log."""
        self._broken = error
        self._room.set()

    def _require_sound(self) -> None:
        if self._broken is not None:
            raise Voided("a group before this one is not on the log") from self._broken

    @contextmanager
    def applying(self, batches: Sequence[Batch] = ()) -> Iterator[Group]:
        """Change the partition; at the end the group of these batches holds what is to be written.
        An InternalError leaves everything as it was."""
        group = Group(list(batches))
        # Their answers are delivered, so they are forgotten with this group. A crash before that
        # repeats the answers and loses none.
        delivered, self.delivered = self.delivered, []
        others: list[bool] = []
        look = asyncio.get_running_loop().call_soon(others.append, True)
        packing: str | None = None
        try:
            with self.shard.table.writing():
                for parked in delivered:
                    self.shard.unpark(parked)
                yield group
                # From here on no event is to blame: a group that can't be packed is undone, and
                # each of its events tried alone.
                group.answers.at, packing = None, self._name(group)
                if others:
                    raise Awaited("the event loop went on while a group was being applied")
                self.pack(group)
        except BaseException as error:  # let pass: it is half applied, or rolled back
            failed = blamed(error, group.answers.at or packing)
            if failed is None:
                self._break(error)
                raise
            self.delivered = delivered
            self._roll_back()
            if failed is error:
                raise
            raise failed from error
        finally:
            look.cancel()

    def _name(self, group: Group) -> str:
        """Return what is packed, in words."""
        starts = [f"{one.messages[0].topic}@{one.messages[0].offset}" for one in group.batches]
        return f"a record batch of partition {self.shard.number}, from {', '.join(starts)} on"

    def contain(self, messages: Sequence[Record]) -> None:
        """Note that the state contains these events of one topic, and all before them."""
        last = messages[-1]
        self.shard.watermarks.advance(last.topic, last.offset)
        if last.topic == self.ports.topic["requests"]:
            self.shard.requests_seen_at = (last.timestamp or 0) / 1000.0

    def pack(self, group: Group) -> None:
        """Make one record batch of what has changed."""
        changed, group.contexts = self.shard.write()
        if self.ports.limits.validate_state:
            validate(self.shard, changed)
        group.changes = self.shard.table.take()
        for router_id, changes in changed.items():
            self._bulletin.changed((self.shard.number, router_id), changes.alerts)

    def _roll_back(self) -> None:
        """Return to the state after the previous groups: a failed event may have changed
        anything."""
        self.shard.roll_back()
        # The table does not know which parked events already have their answer.
        for parked in (*self.delivered, *(p for g in self._groups for p in g.answers.delivered)):
            self.shard.parking.answer(parked)
        self.interrupted = True

    def send(self, group: Group) -> asyncio.Task[None]:
        """Send a group on its way, behind all before it."""
        before = self._groups[-1] if self._groups else None
        self._groups.append(group)
        self._under_way += 1
        return self.spawn(self._travel(group, before))

    async def _travel(self, group: Group, before: Group | None) -> None:
        try:
            await self.land(group, before)
        except BaseException as error:  # let pass: who waits for it is told
            self._break(error)
            if not group.durable.done():
                group.durable.set_result(False)
            raise
        group.durable.set_result(True)
        self._under_way -= 1
        self._room.set()
        await self.answer(group)
        self.finish(group)

    async def land(self, group: Group, before: Group | None) -> None:
        """Write the record batch behind that of the group before, and return when it is durable."""
        # Contexts are written before the record batch, so that every durable decision has its
        # context. A context without its decision only expires.
        if self.ports.contexts is not None and group.contexts:
            await self.ports.contexts.put(group.contexts)
        if before is not None and not await before.durable:
            raise Voided("the group before this one is not on the log")
        group.step("commit")
        if group.changes:
            await self.shard.table.write(group.changes)

    async def answer(self, group: Group) -> None:
        """Deliver all answers of a durable group."""
        group.step("publish")
        if group.answers:
            await group.answers.deliver(self.ports, epoch=self.shard.table.epoch)
        self.delivered += group.answers.delivered

    def finish(self, group: Group) -> None:
        """Let its source offsets be committed, once those of all groups before it may."""
        group.finished = True
        while self._groups and self._groups[0].finished:
            first = self._groups.popleft()
            for batch in first.batches:
                self.inbox.finish(batch.name, batch.messages[-1].offset + 1)
            self.ports.finished(first)
        self._room.set()

    def spawn(self, work: Coroutine[object, object, None]) -> asyncio.Task[None]:
        """Start a task that lives until the lane stops; what escapes it ends the process."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        # The first callback: nobody who awaits the task goes on before it.
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self.ports.leave(error)
