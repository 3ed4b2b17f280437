"""The eight steps of a partition's groups, from fetched records to answers: only here changes
become durable and answers leave. Declarations pass beside the groups.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager

from agents.group import Answers, Batch, Group
from agents.partition.poison import alone, blamed, try_alone
from agents.partition.under_way import UnderWay, Voided
from agents.ports import Inbox, Ports
from agents.refusal_kinds import InternalError
from agents.table.parking import Parked
from agents.table.recovered import Recovered
from agents.taking.next_group import Decode, NextGroup
from agents.taking.turns import Turns
from ground.boundary import BoundaryError
from ground.messages import Record

SECONDS_AT_ONCE = 0.01
"""Seconds of the event loop that work by the clock takes for one group; then other tasks go on."""

Declare = Callable[[list[Record]], Awaitable[None]]
"""Function that puts declarations in force. Raises InternalError."""
Refuse = Callable[[Record, InternalError, Sequence[Batch]], Awaitable[None]]
"""Function that refuses an event on which the worker fails; with it, batches of events are done."""


class Declarations(Batch):
    """A batch of declarations."""

    __slots__ = ()
    name = "routers"


class Awaited(BoundaryError):
    """Code awaited something while a group was being applied, so other tasks may have seen half of
    the group.
    """

    reason = "awaited"


class Lane:
    """The only writer of one partition. A group passes eight steps:

    1. `take`: waiting events are taken, and each agent makes a batch of its topic's events.
    2. `applying`: the agents apply the batches, and nothing is awaited meanwhile. An event on which
       the worker fails rolls the group back.
    3. `contain`: the state notes the offsets of the batches as contained.
    4. `pack`: the changes become one record batch: pieces, records and offsets.
    5. `send`: the record batch is handed on, and the next group may be applied.
    6. `land`: the record batch is written once that of the group before is on the log. It is
       durable when Kafka has it at the offset where this owner's next one belongs.
    7. `answer`: decisions and dead letters are sent, and Kafka confirms them.
    8. `finish`: the source offsets may be committed, once those of all groups before may.

    Up to step 4 a group can be undone, as nobody has seen it. From step 5 on it can't: if writing
    fails, only the log knows whether it has the record batch. So a failure there ends the process,
    and with it all later groups; the partition is recovered from the log.

    `pass_groups` and `pass_declarations` go on until the partition is lost. An event on which the
    worker fails is tried alone, and refused if it fails again.

    Attributes:
        coming: events that wait for their group.
        under_way: groups that are applied and not finished.
        delivered: parked events whose answer is delivered, to be forgotten with the next group.
    """

    def __init__(
        self, partition: Recovered, coming: NextGroup, *, inbox: Inbox, turns: Turns, ports: Ports
    ) -> None:
        self._partition, self.coming, self._inbox = partition, coming, inbox
        self._turns, self._ports = turns, ports
        self.under_way = UnderWay(partition.table)
        self.delivered: list[Parked] = []
        self._tasks: set[asyncio.Task[None]] = set()

    async def pass_groups(self, decode: Decode, refuse: Refuse) -> None:
        """Pass the events of the agents' topics, group by group."""
        while True:
            if batches := await self.take(decode):
                try:
                    self.apply(batches)
                except InternalError as error:
                    for batch in batches:
                        await self._pass_each(batch, error, decode, refuse)

    async def _pass_each(
        self, batch: Batch, error: InternalError, decode: Decode, refuse: Refuse
    ) -> None:
        async def step(messages: list[Record]) -> None:
            one = decode(batch.name, messages)
            await self.under_way.room()
            while (preparation := one.preparation()) is not None:
                await preparation
                await self.under_way.room()
            self.apply([one])

        async def give_up(message: Record, error: InternalError) -> None:
            await refuse(message, error, [decode(batch.name, [message])])

        for message in batch.messages:
            await alone(message, step, give_up, error)

    async def pass_declarations(
        self, declare: Declare, refuse: Callable[[Record, InternalError], Awaitable[None]]
    ) -> None:
        """Pass declarations, which come seldom and take several record batches."""
        most = self._ports.limits.batch_size
        while True:
            await self._inbox.declared.wait()
            self._inbox.declared.clear()
            while records := self.coming.records("routers", most)[0]:
                await try_alone(records, declare, refuse)
                self._inbox.finish("routers", records[-1].offset + 1)
                self._ports.finished(Group([Declarations(records)], passed=[]))

    async def take(self, decode: Decode) -> list[Batch]:
        """Wait for this partition's turn, and take the batches of a group; none if the waiting
        batches are still being prepared.
        """
        await self._inbox.arrived.wait()
        if not self.coming:
            self._inbox.arrived.clear()
            return []
        await self.under_way.room(whole=self.coming.is_whole)
        await self._turns.take(self.coming.has_requests, since=self.coming.waits.since())
        return self.coming.take(decode, self.spawn)

    def apply(self, batches: Sequence[Batch]) -> None:
        """Apply batches together, and send the group. Raises InternalError, after which nothing
        has changed.
        """
        began = time.monotonic()
        with self.applying(batches) as group:
            for batch in batches:
                batch.apply(group.answers)
                group.answers.at = None
                self.contain(batch)
        answered = self.send(group)
        if any(batch.name == "requests" for batch in batches):
            self._turns.watch(answered)
        events = sum(len(batch.messages) for batch in batches)
        self.coming.size.applied(events, time.monotonic() - began)

    @asynccontextmanager
    async def group(self, batches: Sequence[Batch] = ()) -> AsyncIterator[Answers]:
        """Apply changes that come from no agent; at the end they are durable and their answers
        delivered. Nothing may be awaited inside.

        Args:
            batches: events that are done with this group.

        Raises:
            Gone: the partition was lost; nothing was changed.
        """
        await self.under_way.room()
        with self.applying(batches) as group:
            yield group.answers
        try:
            await asyncio.shield(self.send(group))
        except asyncio.CancelledError:
            self.under_way.require_sound()  # waiting tasks end with an error, too
            raise

    @contextmanager
    def applying(self, batches: Sequence[Batch] = ()) -> Iterator[Group]:
        """Change the partition; at the end the group of these batches holds the changes to be
        written. After an InternalError nothing has changed.
        """
        group = Group(list(batches))
        # The answers of these parked events are delivered, so the events are forgotten with this
        # group. A crash before that repeats the answers and loses none.
        delivered, self.delivered = self.delivered, []
        others: list[bool] = []
        look = asyncio.get_running_loop().call_soon(others.append, True)
        packing: str | None = None
        try:
            with self._partition.table.writing():
                for parked in delivered:
                    self._partition.parking.unpark(parked)
                yield group
                # From here on no single event is to blame: a group that can't be packed is undone,
                # and each of its events is tried alone.
                group.answers.at, packing = None, self._name(group)
                if others:
                    raise Awaited("the event loop went on while a group was being applied")
                self.pack(group)
        except BaseException as error:  # let pass: it is half applied, or rolled back
            failed = blamed(error, group.answers.at or packing)
            if failed is None:
                self.under_way.break_off(error)
                raise
            self.delivered = delivered
            self._roll_back()
            if failed is error:
                raise
            raise failed from error
        finally:
            look.cancel()

    def _name(self, group: Group) -> str:
        """Return the group's content in words, for an error."""
        starts = [f"{one.messages[0].topic}@{one.messages[0].offset}" for one in group.batches]
        number = self._partition.number
        return f"a record batch of partition {number}, from {', '.join(starts)} on"

    def _roll_back(self) -> None:
        """Return to the state after the previous groups: a failed event may have changed
        anything."""
        self._partition.roll_back()
        # The table does not know which parked events already have their answer.
        unanswered = (parked for group in self.under_way for parked in group.answers.delivered)
        for parked in (*self.delivered, *unanswered):
            self._partition.parking.answer(parked)

    def contain(self, batch: Batch) -> None:
        """Note that the state contains the events of a batch, and all events before them."""
        self._partition.contain(batch.messages)

    def pack(self, group: Group) -> None:
        """Make one record batch of the group's changes."""
        group.contexts = self._partition.write()
        group.changes = self._partition.table.take()

    def send(self, group: Group) -> asyncio.Task[None]:
        """Send a group, behind all groups before it."""
        return self.spawn(self._travel(group, self.under_way.add(group)))

    async def _travel(self, group: Group, before: Group | None) -> None:
        try:
            await self.land(group, before)
        except BaseException as error:  # let pass: waiting tasks get it
            self.under_way.failed(group, error)
            raise
        self.under_way.landed(group)
        await self.answer(group)
        self.finish(group)

    async def land(self, group: Group, before: Group | None) -> None:
        """Write the record batch behind that of the group before, and return when it is durable."""
        # Contexts are written before the record batch, so that every durable decision has its
        # context. A context without its decision only expires.
        if self._ports.contexts is not None and group.contexts:
            await self._ports.contexts.put(group.contexts)
        if before is not None and not await before.durable:
            raise Voided("the group before this one is not on the log")
        group.step("commit")
        if group.changes:
            await self._partition.table.write(group.changes)

    async def answer(self, group: Group) -> None:
        """Deliver all answers of a durable group."""
        group.step("publish")
        if group.answers:
            await self._ports.outbox.deliver(group.answers, epoch=self._partition.table.epoch)
        self.delivered += group.answers.delivered

    def finish(self, group: Group) -> None:
        """Let the group's source offsets be committed, once all earlier groups are finished too."""
        group.finished = True
        for first in self.under_way.take_finished():
            for batch in first.batches:
                self._inbox.finish(batch.name, batch.messages[-1].offset + 1)
            self._ports.finished(first)

    def spawn(self, work: Coroutine[object, object, None]) -> asyncio.Task[None]:
        """Start a task that lives until the lane stops; an exception in it ends the process."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        # The first callback runs before any code that awaits the task goes on.
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._ports.leave(error)

    def stop(self) -> None:
        """Stop: no further group passes."""
        self.under_way.stop()
        for task in self._tasks:
            task.cancel()
        # Without this a circle of references would keep the routers in memory, see
        # `streams.service.collecting`.
        del self._partition
