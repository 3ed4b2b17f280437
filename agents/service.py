"""What the agents of one worker share: the shards, one writer at a time, and the order in which a
batch becomes final.

A batch is final in four steps: its changes are committed to the table; what it answers is
delivered; its source events are acked; refusals whose dead letters were delivered are forgotten
with the next commit. A crash between any two of them repeats answers and dead letters, and changes
nothing that was committed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Final, Literal

from agents.answers import Answers
from agents.bulletin import Bulletin
from agents.memory import Memory
from agents.parked import Parked
from agents.poison import try_alone
from agents.portions import arm_bytes, portions
from agents.ports import Ports, Source
from agents.refusals import InternalError, Refused
from agents.shard import Shard
from ground.messages import Message, Record
from schemas.lambdas import Contained, Unbooked

log = logging.getLogger(__name__)

BOOKED: Final[tuple[Literal["costs", "rewards"], ...]] = ("costs", "rewards")
"""Source topics of which a client may wait to see that its event was taken in."""

CONTAINED: Final = tuple(Contained.model_fields)
"""Source topics whose last offset a state on `pb.lambda` names."""


@dataclass(slots=True)
class Service:
    """The routers of one worker, and what its agents share of them.

    Attributes:
        shards: the routers of each owned partition.
        memory: how full the durable table is.
        bulletin: what is to be published.
        interrupted: whether a crash may have left something to be finished.
        undelivered: refusals whose dead letters are to be sent again.
        held: partitions whose bills and rewards wait on the log.
        encoding_waiting: held by who answers requests that waited for their routers: what another
            agent encodes is not encoded twice.
    """

    ports: Ports
    shards: dict[int, Shard] = field(default_factory=dict)
    memory: Memory = field(init=False)
    bulletin: Bulletin = field(default_factory=Bulletin)
    interrupted: bool = False
    undelivered: list[Parked] = field(default_factory=list)
    held: frozenset[int] = frozenset()
    encoding_waiting: asyncio.Lock = field(default_factory=asyncio.Lock)
    _delivered: list[Parked] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.memory = Memory(self.ports.limits.memory_bytes)

    def shard(self, partition: int) -> Shard:
        """Return the routers of an owned partition; they were unpacked when it was recovered."""
        return self.shards[partition]

    @property
    def batch_bytes(self) -> int:
        """How many bytes of changes one batch aims at; the rest of a record batch is for what is
        small and many."""
        return self.ports.limits.changelog_batch_bytes // 2

    @property
    def routers(self) -> int:
        """How many routers this worker has."""
        return sum(map(len, self.shards.values()))

    async def recovered(self, partitions: frozenset[int]) -> None:
        """Index the routers of partitions that have just been recovered; call before any event
        flows."""
        shards = [
            Shard(self.ports.states.partition(number)) for number in partitions - self.shards.keys()
        ]
        for shard in shards:
            if shard.watermarks.unreadable:
                log.error(
                    "what the state of partition %d contains can't be read (%s): events that were "
                    "not acknowledged are taken in again",
                    shard.number,
                    shard.watermarks.unreadable,
                )
            shard.watermarks.require_topics(self.ports.topic.values())
            await self._complete(shard)
        # Shown when all are complete: until then a request whose value is still being read would be
        # taken for one without a body.
        for shard in shards:
            if shard.table.owned:  # it may have been lost meanwhile
                self.shards[shard.number] = shard
                self.bulletin.routers.update((shard.number, router_id) for router_id in shard)
                self.interrupted = True
                self.undelivered += [parked for parked in shard.parking if parked.refused]

    async def _complete(self, shard: Shard) -> None:
        """Read the requests again of which the table has only the place; one that is gone from the
        log is refused."""
        missing = [parked for parked in shard.parking if parked.private and parked.value is None]
        if missing:
            values = await self.ports.log.read_again(
                shard.number, [parked.offset for parked in missing]
            )
            for parked in missing:
                gone = parked.offset not in values
                shard.parking.add(
                    replace(parked, value=values.get(parked.offset), refused=parked.refused or gone)
                )

    def lost(self, partitions: frozenset[int]) -> None:
        """Forget everything about partitions that are not this worker's any more."""
        for number in partitions:
            self.shards.pop(number, None)
        self.bulletin.lost(partitions)
        self.undelivered = [
            parked for parked in self.undelivered if parked.partition not in partitions
        ]
        self._delivered = [
            parked for parked in self._delivered if parked.partition not in partitions
        ]

    @asynccontextmanager
    async def batch(self) -> AsyncIterator[None]:
        """Be the only writer; at the end everything that was changed is durable."""
        async with self.ports.states.writing():
            delivered, self._delivered = self._delivered, []
            # Kafka has what was said of them; forgotten with this commit. A crash before it says
            # them again, and loses none.
            for parked in delivered:
                if parked.partition in self.shards:
                    self.shards[parked.partition].unpark(parked)
            try:
                yield
                # Inside the try: what can't be packed is rolled back like an event that can't be
                # applied.
                for number, shard in self.shards.items():
                    for router_id, changes in shard.write().items():
                        self.bulletin.changed((number, router_id), changes.alerts)
            except InternalError:
                self._roll_back()
                raise
            contexts = [item for shard in self.shards.values() for item in shard.take_contexts()]
            # Before the commit: a decision that is durable has its context. One that is there
            # without its decision is only a waste, and expires.
            if self.ports.contexts is not None and contexts:
                await self.ports.contexts.put(contexts)
            await self.ports.commit()

    def _roll_back(self) -> None:
        """Go on from what is durable, as after a crash: an event has failed, and nobody knows what
        it has moved."""
        self.ports.states.roll_back()
        for number, before in list(self.shards.items()):
            # From the table alone: engines are unpacked again when an event needs them.
            self.shards[number] = shard = Shard(self.ports.states.partition(number))
            shard.take_over(before)
            self.undelivered += [parked for parked in shard.parking if parked.refused]
        # What the batch had forgotten is in the table again; `resume` says it once more.
        self._delivered = []
        self.interrupted = True

    async def clear(self) -> None:
        """Delete what routers that are gone have left, a record batch at a time; after a crash the
        next worker goes on with it."""
        while any(shard.leaves for shard in self.shards.values()):
            async with self.batch():
                for shard in self.shards.values():
                    shard.clear(self.batch_bytes)

    def mark_applied(self, messages: list[Record]) -> None:
        """Note that the state contains these source events, and all before them, with the next
        commit."""
        for message in messages:
            shard = self.shards[message.partition]
            shard.watermarks.advance(message.topic, message.offset)
            if message.topic == self.ports.topic["requests"]:
                shard.requests_seen_at = (message.timestamp or 0) / 1000.0

    def positions(self, partition: int) -> tuple[int, int]:
        """Return the last offsets of `pb.costs` and `pb.rewards` that a partition's state contains;
        −1 before the first."""
        watermarks = self.shards[partition].watermarks
        return watermarks.of(self.ports.topic["costs"]), watermarks.of(self.ports.topic["rewards"])

    def applied(self, partition: int) -> dict[str, int]:
        """Return the last offsets of the sources that a partition's state contains, by the names of
        `schemas.lambdas.Contained`; −1 before the first."""
        watermarks = self.shards[partition].watermarks
        return {name: watermarks.of(self.ports.topic[name]) for name in CONTAINED}

    def note_unbooked(
        self, source: Message, router_id: str, outcome: Literal["duplicate", "waiting", "refused"]
    ) -> None:
        """Let the router's next state on `pb.lambda` say that a bill or reward was taken in and
        changed nothing.

        Args:
            source: a message or a parked event, with topic, partition and offset.
        """
        name = next((name for name in BOOKED if self.ports.topic[name] == source.topic), None)
        at = source.partition, router_id
        if name is None or router_id not in self.shards[source.partition]:
            return
        self.bulletin.unmoved(at, Unbooked(topic=name, offset=source.offset, outcome=outcome))

    def lags(self, partition: int, name: str = "requests") -> bool:
        """Tell whether there are events on a partition of a topic that the state does not contain
        yet: requests without an answer, or declarations that are not in force."""
        # While the end is not known there may be events: to wait too long is harmless, to refuse
        # too early is not.
        end = self.ports.log.end_of(name, partition)
        contained = self.shards[partition].watermarks.of(self.ports.topic[name])
        return end is None or end - 1 > contained

    def hold_back(self) -> None:
        """Take no more bills and rewards where too many wait already for requests that are still to
        be answered.

        Nothing waits inside an agent for that: its queue would fill up and keep the requests from
        the worker.
        """
        self.held = frozenset(number for number in self.shards if self._is_crowded(number))
        self.ports.log.hold(self.held)

    def _is_crowded(self, partition: int) -> bool:
        # Half the limit to let go: at the limit itself every event would hold the partition again.
        waiting, limit = len(self.shards[partition].parking), self.ports.limits.parked_events
        return self.lags(partition) and waiting >= (limit // 2 if partition in self.held else limit)

    def refuse_later(self, parked: Parked, error: Exception, answers: Answers) -> None:
        """Refuse an event by a decision that depends on the state: it stands, whatever the state is
        after a crash."""
        refused = parked.refuse(error)
        self.shards[parked.partition].park(refused)
        answers.refused_later.append((refused, error))
        self.note_unbooked(parked, parked.router_id, "refused")

    def refusal(self, parked: Parked) -> Refused:
        """Return the error with which a parked event is refused."""
        return Refused(parked.reason, parked.detail)

    async def answer(self, answers: Answers) -> None:
        """Deliver what a batch has to say, all of it."""
        await answers.deliver(
            self.ports.outbox(), topic=self.ports.topic, dead_letters=self.ports.dead_letters
        )
        self._delivered += answers.delivered

    def _weight(self, message: Message) -> int:
        """Bound the bytes that an event may add to a commit: itself, if it has to wait, and the arm
        that it moves."""
        router_id = (message.key or b"").decode(errors="replace")
        engine = self.shards[message.partition].engine(router_id)
        return len(message.value or b"") + (0 if engine is None else arm_bytes(engine.state.arms.d))

    async def run(self, source: Source, step: Callable[[list[Record]], Awaitable[None]]) -> None:
        """Feed what comes of a source topic to an agent's step, a batch at a time; whatever escapes
        ends the process."""
        with self.ports.fatal():
            async for messages in source.batches():
                for portion in portions(messages, self._weight, limit=self.batch_bytes):
                    await try_alone(portion, step, self._give_up)

    async def _give_up(self, message: Message, error: InternalError) -> None:
        """Refuse a message on which this worker fails."""
        router_id, private = (
            (message.key or b"").decode(errors="replace"),
            message.topic == self.ports.topic["requests"],
        )
        await self.give_up(Parked.of(message, error, router_id=router_id, private=private), error)

    async def give_up(self, parked: Parked, error: InternalError) -> None:
        """Refuse an event on which this worker fails; its offset is contained from then on."""
        answers = Answers()
        async with self.batch():
            self.refuse_later(parked, error, answers)
            # Of an event that had waited the offset is contained already; then this moves nothing.
            self.shards[parked.partition].watermarks.advance(parked.topic, parked.offset)
        self.ports.count("internal_error")
        await self.answer(answers)
