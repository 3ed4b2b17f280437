"""What the agents of one worker share: the shards, one writer at a time, and the order in which a batch becomes final.

A batch is final in four steps: its changes are committed to the table; what it answers is delivered; its source events are acked;
refusals whose dead letters were delivered are forgotten with the next commit. A crash between any two of them repeats answers and
dead letters, and changes nothing that was committed.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, Protocol

from agents.answers import Answers
from agents.boundary import Outbox, fatal
from agents.contexts import Contexts, Encode
from agents.dead_letters import DeadLetters
from agents.memory import Memory
from agents.parking import Parked
from agents.poison import try_alone
from agents.portions import arm_bytes, portions
from agents.refusals import InternalError, Refused
from agents.requests import Table
from agents.shard import Shard
from router_state.config import Prior
from schemas.lambdas import MOST_UNBOOKED, Contained, Unbooked
from schemas.priors import ReferencedPrior

BOOKED: Final[tuple[Literal["costs", "rewards"], ...]] = ("costs", "rewards")


class States(Protocol):
    """The durable table of this worker, see `streams.state.tables.States`."""

    def writing(self) -> AbstractAsyncContextManager[Any]: ...

    def partition(self, number: int) -> Table: ...

    @property
    def size(self) -> int: ...

    def roll_back(self) -> None: ...


class Source(Protocol):
    """One source topic, see `streams.faust.sources.Source`: a batch is done when the next one is asked for."""

    def batches(self) -> AsyncIterator[list[Any]]: ...


class Count(Protocol):
    """Count an outcome for the metrics."""

    def __call__(self, what: str, amount: int = 1) -> None: ...


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one worker; see the settings of the same names."""

    batch_size: int = 512
    prompt_bytes: int = 2**20
    models_per_router: int = 64
    routers_per_worker: int = 10_000
    in_flight_per_router: int = 100_000
    requests_per_router: int | None = None
    memory_bytes: int | None = None
    parked_events: int = 10_000
    orphan_wait: float = 60.0
    unknown_router_wait: float = 2.0
    context_ttl: float = 7 * 86_400.0
    changelog_batch_bytes: int = 16 * 2**20


@dataclass(slots=True)
class Service:
    """Collaborators and state of the agents of one worker.

    Attributes:
        topic: full topic names by their short ones.
        commit: makes everything durable that was changed inside `states.writing()`.
        outbox: makes an empty outbox.
        dead_letters: the dead letter writer of each source topic, by short name.
        encode: prompts to contexts, each of shape (d,) or why there is none, off the event loop; None without an encoder.
        dimensions: d of what `encode` returns; 0 without.
        read_prior: reads a prior from the file that a declaration names.
        contexts: where contexts wait for their rewards outside of the table, or None.
        clock: seconds since the epoch.
        rank_of: rank of a reward's source.
        partition_of: partition of a router.
        read_again: values of requests on a partition's log, by offset, those that are gone left out.
        requests_end: offset after the last request on a partition's log, None while it is not known.
        unbooked: of every router whose state this worker has published, what came since and changed nothing.
        hold: stops the bills and rewards of these partitions, and lets those of all others come.
    """

    topic: Mapping[str, str]
    states: States
    commit: Callable[[], Awaitable[Any]]
    outbox: Callable[[], Outbox]
    dead_letters: Mapping[str, DeadLetters]
    encode: Encode | None
    dimensions: int
    read_prior: Callable[[ReferencedPrior], Awaitable[Prior]]
    contexts: Contexts | None
    clock: Callable[[], float]
    rank_of: Callable[[str], int]
    partition_of: Callable[[str], int]
    count: Count
    read_again: Callable[[int, Iterable[int]], Awaitable[Mapping[int, bytes | None]]]
    requests_end: Callable[[int], int | None]
    hold: Callable[[frozenset[int]], None]
    limits: Limits = field(default_factory=Limits)
    shards: dict[int, Shard] = field(default_factory=dict)
    memory: Memory = field(init=False)
    unpublished: set[tuple[int, str]] = field(default_factory=set)
    publishing: asyncio.Lock = field(default_factory=asyncio.Lock)
    unbooked: dict[tuple[int, str], list[Unbooked]] = field(default_factory=dict)
    alerts: list[tuple[str, Any]] = field(default_factory=list)
    interrupted: bool = False
    undelivered: list[Parked] = field(default_factory=list)
    held: frozenset[int] = frozenset()
    _delivered: list[Parked] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.memory = Memory(self.limits.memory_bytes)

    def shard(self, partition: int) -> Shard:
        """Return the routers of an owned partition; they were unpacked when it was recovered."""
        return self.shards[partition]

    @property
    def room(self) -> int:
        """How many bytes of changes one batch aims at; the rest of a record batch is for what is small and many."""
        return self.limits.changelog_batch_bytes // 2

    @property
    def routers(self) -> int:
        """How many routers this worker has."""
        return sum(map(len, self.shards.values()))

    async def recovered(self, partitions: frozenset[int]) -> None:
        """Index the routers of partitions that have just been recovered; call before any event flows."""
        shards = [Shard(self.states.partition(number)) for number in partitions - self.shards.keys()]
        for shard in shards:
            shard.require_topics(self.topic.values())
            await self._complete(shard)
        for shard in shards:
            if shard.table.owned:  # it may have been lost meanwhile
                self.shards[shard.number] = shard
                self.unpublished.update((shard.number, router_id) for router_id in shard)
                self.interrupted = True
                self.undelivered += [parked for parked in shard.parking if parked.refused]

    async def _complete(self, shard: Shard) -> None:
        """Read the requests again of which the table has only the place; one that is gone from the log is refused."""
        missing = [parked for parked in shard.parking if parked.private and parked.value is None]
        if missing:
            values = await self.read_again(shard.number, [parked.offset for parked in missing])
            for parked in missing:
                gone = parked.offset not in values
                shard.parking.add(replace(parked, value=values.get(parked.offset), refused=parked.refused or gone))

    def lost(self, partitions: frozenset[int]) -> None:
        """Forget everything about partitions that are not this worker's any more."""
        for number in partitions:
            self.shards.pop(number, None)
        self.unpublished = {item for item in self.unpublished if item[0] not in partitions}
        self.unbooked = {at: noted for at, noted in self.unbooked.items() if at[0] not in partitions}
        self.undelivered = [parked for parked in self.undelivered if parked.partition not in partitions]
        self._delivered = [parked for parked in self._delivered if parked.partition not in partitions]

    @asynccontextmanager
    async def batch(self) -> AsyncIterator[None]:
        """Be the only writer; at the end everything that was changed is durable."""
        async with self.states.writing():
            delivered, self._delivered = self._delivered, []
            for parked in delivered:
                if parked.partition in self.shards:
                    self.shards[parked.partition].unpark(parked)
            try:
                yield
                for number, shard in self.shards.items():
                    for router_id, changes in shard.write().items():
                        self.unpublished.add((number, router_id))
                        self.alerts += [(router_id, alert) for alert in changes.alerts]
            except InternalError:
                self._roll_back()
                raise
            contexts = [item for shard in self.shards.values() for item in shard.take_contexts()]
            if self.contexts is not None and contexts:
                await self.contexts.put(contexts)
            await self.commit()

    def _roll_back(self) -> None:
        """Go on from what is durable, as after a crash: an event has failed, and nobody knows what it has moved."""
        self.states.roll_back()
        for number, before in list(self.shards.items()):
            self.shards[number] = shard = Shard(self.states.partition(number))
            shard.take_over(before)
            self.undelivered += [parked for parked in shard.parking if parked.refused]
        self._delivered = []
        self.interrupted = True

    async def clear(self) -> None:
        """Delete what routers that are gone have left, as much at once as a record batch holds; a crash is gone on from."""
        while any(shard.leaves for shard in self.shards.values()):
            async with self.batch():
                for shard in self.shards.values():
                    shard.clear(self.room)

    def reached(self, messages: list[Any]) -> None:
        """Note that the state contains these source events, and all before them, with the next commit."""
        for message in messages:
            shard = self.shards[message.partition]
            shard.reached(message.topic, message.offset)
            if message.topic == self.topic["requests"]:
                shard.requests_seen_at = (message.timestamp or 0) / 1000.0

    def positions(self, partition: int) -> tuple[int, int]:
        """Return the last offsets of `pb.costs` and `pb.rewards` that a partition's state contains; −1 before the first."""
        watermarks = self.shards[partition].watermarks
        return watermarks.get(self.topic["costs"], -1), watermarks.get(self.topic["rewards"], -1)

    def applied(self, partition: int) -> Contained:
        """Return the last offsets of the sources that a partition's state contains; −1 before the first."""
        watermarks = self.shards[partition].watermarks
        return Contained(**{name: watermarks.get(self.topic[name], -1) for name in Contained.model_fields})

    def note_unbooked(self, source: Any, router_id: str, outcome: Literal["duplicate", "waiting", "refused"]) -> None:
        """Let the router's next state on `pb.lambda` say that a bill or reward was taken in and changed nothing.

        Args:
            source: a message or a parked event, with topic, partition and offset.
        """
        name = next((name for name in BOOKED if self.topic[name] == source.topic), None)
        at = source.partition, router_id
        if name is None or router_id not in self.shards[source.partition]:
            return
        self.unpublished.add(at)
        if (noted := self.unbooked.get(at)) is not None:
            noted.append(Unbooked(topic=name, offset=source.offset, outcome=outcome))
            del noted[:-MOST_UNBOOKED]

    def lags(self, partition: int) -> bool:
        """Tell whether there are requests on a partition's log that have no answer yet."""
        end = self.requests_end(partition)
        return end is None or end - 1 > self.shards[partition].watermarks.get(self.topic["requests"], -1)

    def hold_back(self) -> None:
        """Take no more bills and rewards where too many wait already for requests that are still to be answered.

        Nothing waits inside an agent for that: its queue would fill up and keep the requests from the worker.
        """
        self.held = frozenset(number for number in self.shards if self._is_crowded(number))
        self.hold(self.held)

    def _is_crowded(self, partition: int) -> bool:
        waiting, limit = len(self.shards[partition].parking), self.limits.parked_events
        return self.lags(partition) and waiting >= (limit // 2 if partition in self.held else limit)

    def refuse_later(self, parked: Parked, error: Exception, answers: Answers) -> None:
        """Refuse an event by a decision that depends on the state: it stands, whatever the state is after a crash."""
        refused = parked.refuse(error)
        self.shards[parked.partition].park(refused)
        answers.refused_later.append((refused, error))
        self.note_unbooked(parked, parked.router_id, "refused")

    def refusal(self, parked: Parked) -> Refused:
        """Return the error with which a parked event is refused."""
        return Refused(parked.reason, parked.detail)

    async def answer(self, answers: Answers) -> None:
        """Deliver what a batch has to say, all of it."""
        await answers.deliver(self.outbox(), topic=self.topic, dead_letters=self.dead_letters)
        self._delivered += answers.delivered

    def _weight(self, message: Any) -> int:
        """Bound the bytes that an event may add to a commit: itself, if it has to wait, and the arm that it moves."""
        router_id = (message.key or b"").decode(errors="replace")
        engine = self.shards[message.partition].engine(router_id)
        return len(message.value or b"") + (0 if engine is None else arm_bytes(engine.state.arms.d))

    async def run(self, source: Source, step: Callable[[list[Any]], Awaitable[None]]) -> None:
        """Feed what comes of a source topic to an agent's step, a batch at a time; whatever escapes ends the process."""
        with fatal():
            async for messages in source.batches():
                for portion in portions(messages, self._weight, room=self.room):
                    await try_alone(portion, step, self._give_up)

    async def _give_up(self, message: Any, error: InternalError) -> None:
        """Refuse a message on which this worker fails."""
        router_id, private = (message.key or b"").decode(errors="replace"), message.topic == self.topic["requests"]
        await self.give_up(Parked.of(message, error, router_id=router_id, private=private), error)

    async def give_up(self, parked: Parked, error: InternalError) -> None:
        """Refuse an event on which this worker fails; its offset is contained from then on."""
        answers = Answers()
        async with self.batch():
            self.refuse_later(parked, error, answers)
            self.shards[parked.partition].reached(parked.topic, parked.offset)
        self.count("internal_error")
        await self.answer(answers)
