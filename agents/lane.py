"""One partition's way from fetched records to answers: the one place where changes become durable
and answers leave."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Final

from agents.bulletin import Bulletin
from agents.group import Agents, Answers, Batch, Declare, Group
from agents.parked import Parked
from agents.poison import LIVES, try_alone
from agents.portions import arm_bytes
from agents.ports import Ports
from agents.refusals import InternalError
from agents.shard import Shard
from agents.turns import Turns
from ground.boundary import BoundaryError
from ground.messages import Message, Record

UNDER_WAY: Final = 2
"""Groups of a partition that are applied and not durable: the record batch of one travels, that of
the next is packed when it has landed. More would only make them smaller (`benchmarks.stream`)."""
UNANSWERED: Final = 8
"""Groups of a partition that are not finished, those whose answers are on their way included."""
FEW: Final = 64
"""Events in a group at the start."""
GROW_BELOW_SECONDS, SHRINK_ABOVE_SECONDS = 0.01, 0.025
"""CPU seconds of a group below which full ones grow, and above which they shrink: so long a request
of another partition may have to wait (`benchmarks.stream`, its row with a backlog of bills)."""
SHARE: Final = 4
"""Bills and rewards may each be the fourth part of a group at least, however many requests wait."""


class Voided(BoundaryError):
    """A group can't become durable, as one before it did not."""

    reason = "voided"


class Declarations(Batch):
    """Declarations, which are put in force beside the groups."""

    __slots__ = ()
    name = "routers"


class Lane:
    """The only writer of one partition. A group of events passes it in eight steps:

    1. `take`: what was fetched of the partition, of all its topics, requests first, is decoded.
       What has to wait (prompts become contexts) is prepared aside, and the others go on.
    2. `applying`: the agents apply it, and nothing is awaited meanwhile. An event on which the
       worker fails rolls the group back.
    3. `contain`: the state now contains these offsets of its sources.
    4. `pack`: what changed becomes one record batch: pieces, records and offsets.
    5. `send`: it goes its way, and the lane goes on with the next group.
    6. `land`: once the one before it is on the log it is written, and it is there when Kafka has
       it, at the offset where this owner's next batch belongs.
    7. `answer`: decisions and dead letters leave, and Kafka has them.
    8. `finish`: its source offsets may be committed, as all before them.

    Up to 4 a group can be undone, as nobody has seen it. From 5 on it can't: whether a batch that
    failed is on the log only the log knows. So a failure there ends the process, with all groups
    behind it, and the partition is recovered from the log.

    Attributes:
        delivered: what was kept until its answer is delivered, to be forgotten with the next group.
        undelivered: refusals whose dead letters are to be sent again.
        interrupted: whether something may be left to be finished, see `agents.housekeeping.resume`.
    """

    def __init__(
        self,
        ports: Ports,
        shard: Shard,
        *,
        bulletin: Bulletin,
        turns: Turns,
        refuse: Callable[[Parked, Exception, Answers], None],
    ) -> None:
        self.ports, self.shard, self.inbox = ports, shard, ports.inbox(shard.number)
        self._bulletin, self._turns, self._refuse = bulletin, turns, refuse
        self.delivered: list[Parked] = []
        self.undelivered = [parked for parked in shard.parking if parked.refused]
        self.interrupted = True
        self._size = min(FEW, ports.limits.batch_size)
        self._prepared: dict[str, Batch] = {}
        self._preparing: set[str] = set()
        self._groups: deque[Group] = deque()
        self._under_way = 0
        self._room = asyncio.Event()
        self._broken: BaseException | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._agents: Agents = {}

    def start(self, agents: Agents, declare: Declare) -> None:
        """Begin to pass what comes."""
        self._agents = agents
        self._spawn(self._serve())
        self._spawn(self._declare(declare))

    def stop(self) -> None:
        """Pass nothing any more."""
        for task in self._tasks:
            task.cancel()

    def reopen(self) -> None:
        """Go on after a recovery."""
        self._room.set()

    async def settled(self) -> None:
        """Return when everything that has been applied by now is durable."""
        if self._groups and not self._groups[-1].durable.done():
            await asyncio.wait([self._groups[-1].durable])
        self._require_sound()

    async def _serve(self) -> None:
        """Pass what comes of the agents' topics, in groups."""
        with self.ports.fatal():
            while True:
                await self.inbox.arrived.wait()
                self.inbox.arrived.clear()
                while any(map(self._has_work, self._agents)):
                    await self.room()
                    await self._turns.take(urgent=self._has_work("requests"))
                    if batches := self.take():
                        await self._pass(batches)

    async def _declare(self, declare: Declare) -> None:
        """Pass declarations beside all else: they come seldom, and take several record batches."""
        with self.ports.fatal():
            while True:
                await self.inbox.declared.wait()
                self.inbox.declared.clear()
                while records := self._records("routers", self.ports.limits.batch_size)[0]:
                    batch = Declarations(records)
                    await try_alone(records, declare, self._give_up)
                    self.inbox.finish(batch.name, records[-1].offset + 1)
                    self.ports.finished(Group([batch]))

    def _has_work(self, name: str) -> bool:
        return name in self._prepared or (
            name not in self._preparing and bool(self.inbox.queue(name))
        )

    def take(self) -> list[Batch]:
        """Take what is there, a batch a topic: as many events as a group has time for, and as its
        record batch has bytes for."""
        found: list[Batch] = []
        left, most = self.ports.limits.changelog_batch_bytes // 2, self._size
        for name, agent in self._agents.items():
            batch = self._prepared.pop(name, None)
            if batch is None and name not in self._preparing:
                records, left = self._records(name, most, left)
                batch = agent(records) if records else None
            if batch is not None and not self._has_to_wait(batch):
                found.append(batch)
                most = max(most - len(batch.messages), self._size // SHARE)
        return found

    def _records(self, name: str, most: int, left: int = 2**31) -> tuple[list[Record], int]:
        """Take records of a topic, for so many bytes; what is left of them is returned."""
        queue = self.inbox.queue(name)
        found: list[Record] = []
        while queue and len(found) < most and left > 0:
            weight = self._weight(queue[0])
            if weight > left and found:
                break
            left -= weight
            found.append(queue.popleft())
        if found:
            self.inbox.took(name, found)
        return found, left

    def _weight(self, message: Message) -> int:
        """Bound the bytes that an event may add to a record batch: itself, if it has to wait, and
        the arm that it moves."""
        engine = self.shard.engine((message.key or b"").decode(errors="replace"))
        return len(message.value or b"") + (0 if engine is None else arm_bytes(engine.state.arms.d))

    def _has_to_wait(self, batch: Batch) -> bool:
        """Prepare a batch aside where something has to be waited for."""
        preparation = batch.preparation()
        if preparation is None:
            return False
        batch.step("encode")
        self._preparing.add(batch.name)
        self._spawn(self._prepare(batch, preparation))
        return True

    async def _prepare(self, batch: Batch, preparation: Coroutine[object, object, None]) -> None:
        with self.ports.fatal():
            await preparation
            batch.step("decode")
            self._preparing.discard(batch.name)
            self._prepared[batch.name] = batch
            self.inbox.arrived.set()

    async def _pass(self, batches: list[Batch]) -> None:
        """Apply batches together, or each of their events alone where that fails for one."""
        count, began = sum(len(batch.messages) for batch in batches), time.thread_time()
        try:
            self._apply(batches)
        except InternalError as error:
            for batch in batches:
                for message in batch.messages:
                    await self._alone(batch.name, message, error)
            return
        seconds = time.thread_time() - began
        if seconds > SHRINK_ABOVE_SECONDS:
            self._size = max(self._size // 2, 1)
        elif count >= self._size and seconds < GROW_BELOW_SECONDS:
            self._size = min(self._size * 2, self.ports.limits.batch_size)

    def _apply(self, batches: list[Batch]) -> None:
        group = Group(batches)
        with self.applying(group):
            for batch in batches:
                batch.apply(group.answers)
                self.contain(batch.messages)
        self.send(group)

    async def _alone(self, name: str, message: Record, error: InternalError) -> None:
        """Give an event as many lives as it has, then refuse it."""
        for _ in range(LIVES):
            batch = self._agents[name]([message])
            await self.room()
            while (preparation := batch.preparation()) is not None:
                await preparation
                await self.room()
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
        router_id = (message.key or b"").decode(errors="replace")
        private = message.topic == self.ports.topic["requests"]
        parked = Parked.of(message, error, router_id=router_id, private=private)
        await self.give_up(parked, error, batches)

    async def give_up(
        self, parked: Parked, error: InternalError, batches: Sequence[Batch] = ()
    ) -> None:
        """Refuse an event on which this worker fails; its offset is contained from then on."""
        await self.room()
        group = Group(list(batches))
        with self.applying(group):
            self._refuse(parked, error, group.answers)
            # Of an event that had waited the offset is contained already; then this moves nothing.
            self.shard.watermarks.advance(parked.topic, parked.offset)
        self.ports.count("internal_error")
        await asyncio.shield(self.send(group))

    @asynccontextmanager
    async def batch(self) -> AsyncIterator[Answers]:
        """Apply what is no source event: at the end it is durable, and what there is to say is
        said. Nothing may be awaited inside."""
        await self.room()
        group = Group()
        with self.applying(group):
            yield group.answers
        await asyncio.shield(self.send(group))

    async def room(self) -> None:
        """Wait until another group may be applied: what is on its way is bounded, and groups grow
        meanwhile."""
        while (
            self._under_way >= UNDER_WAY
            or len(self._groups) >= UNANSWERED
            or not self.shard.table.open
        ) and self._broken is None:
            self._room.clear()
            await self._room.wait()
        self._require_sound()

    def _break(self, error: BaseException) -> None:
        """Let no other group pass: this one is neither undone nor on the log for sure."""
        self._broken = error
        self._room.set()

    def _require_sound(self) -> None:
        if self._broken is not None:
            raise Voided("a group before this one is not on the log") from self._broken

    @contextmanager
    def applying(self, group: Group) -> Iterator[None]:
        """Change the partition; at the end the group holds what is to be written. An InternalError
        leaves everything as it was."""
        group.step("decide")
        # Kafka has what was said of them; forgotten with this group. A crash before it says them
        # again, and loses none.
        delivered, self.delivered = self.delivered, []
        try:
            with self.shard.table.writing():
                for parked in delivered:
                    self.shard.unpark(parked)
                yield
                self.pack(group)
        except InternalError:
            self.delivered = delivered
            self._roll_back()
            raise
        except BaseException as error:  # let pass: it is half applied
            self._break(error)
            raise

    def contain(self, messages: Sequence[Record]) -> None:
        """Note that the state contains these events of one topic, and all before them."""
        last = messages[-1]
        self.shard.watermarks.advance(last.topic, last.offset)
        if last.topic == self.ports.topic["requests"]:
            self.shard.requests_seen_at = (last.timestamp or 0) / 1000.0

    def pack(self, group: Group) -> None:
        """Make one record batch of what has changed."""
        changed = self.shard.write()
        for router_id, changes in changed.items():
            self._bulletin.changed((self.shard.number, router_id), changes.alerts)
        if self.ports.limits.validate_state:
            self.shard.validate(changed)
        group.contexts = self.shard.take_contexts()
        group.changes = self.shard.table.take()

    def _roll_back(self) -> None:
        """Go on from what the groups before have left: an event has failed, and nobody knows what
        it has moved."""
        self.shard.roll_back()
        # The table does not know which of those that wait have their answer already.
        for parked in (*self.delivered, *(p for g in self._groups for p in g.answers.delivered)):
            self.shard.parking.answer(parked)
        self.interrupted = True

    def send(self, group: Group) -> asyncio.Task[None]:
        """Send a group on its way, behind all before it."""
        before = self._groups[-1] if self._groups else None
        self._groups.append(group)
        self._under_way += 1
        return self._spawn(self._travel(group, before))

    async def _travel(self, group: Group, before: Group | None) -> None:
        with self.ports.fatal():
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
        # Before the record batch: a decision that is durable has its context. One that is there
        # without its decision is only a waste, and expires.
        if self.ports.contexts is not None and group.contexts:
            await self.ports.contexts.put(group.contexts)
        if before is not None and not await before.durable:
            raise Voided("the group before this one is not on the log")
        group.step("commit")
        if group.changes:
            await self.shard.table.write(group.changes)

    async def answer(self, group: Group) -> None:
        """Deliver what a durable group has to say, all of it."""
        group.step("publish")
        if group.answers:
            await group.answers.deliver(
                self.ports.outbox(), topic=self.ports.topic, dead_letters=self.ports.dead_letters
            )
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

    def _spawn(self, work: Coroutine[object, object, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task
