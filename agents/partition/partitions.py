"""Hold what the agents of one worker share: the routers of its partitions, each with its lane."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final, Literal

from agents.group import Answers, Batch
from agents.lane.lane import Lane
from agents.parked import Parked
from agents.partition.aside import Aside
from agents.partition.news import Bulletin
from agents.ports import Ports
from agents.refusal_kinds import InternalError, Refused
from agents.table.own_routers import Shard
from agents.taking.next_group import Serving
from agents.taking.turns import Turns
from agents.upkeep.memory_bound import Memory
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
        agents: what is done with the events of each source topic, in the order in which a group's
            are applied.
        declare: what is done with declarations.
        shards, lanes: the routers of each owned partition, and their only writer.
        memory: how full the durable table is.
        batch_bytes: bytes of changes that one batch aims at; the rest of a record batch is for what
            is small and many.
        feedback_topics: full names of the topics of bills and of rewards.
        bulletin: what is to be published.
        aside: routers and pools on which work by the clock fails.
        held: partitions whose bills and rewards wait on the log.
        encoding_waiting: held by who answers requests that waited for their routers: what another
            agent encodes is not encoded twice.
    """

    ports: Ports
    agents: Mapping[str, Callable[[Service, list[Record]], Batch]]
    declare: Callable[[Service, list[Record]], Awaitable[None]]
    shards: dict[int, Shard] = field(default_factory=dict)
    lanes: dict[int, Lane] = field(default_factory=dict)
    memory: Memory = field(init=False)
    batch_bytes: int = field(init=False)
    feedback_topics: tuple[str, str] = field(init=False)
    bulletin: Bulletin = field(default_factory=Bulletin)
    aside: Aside = field(init=False)
    held: frozenset[int] = frozenset()
    encoding_waiting: asyncio.Lock = field(default_factory=asyncio.Lock)
    _turns: Turns = field(default_factory=Turns)

    def __post_init__(self) -> None:
        self.feedback_topics = self.ports.topic["costs"], self.ports.topic["rewards"]
        self.batch_bytes = self.ports.limits.changelog_batch_bytes // 2
        self.aside = Aside(self.ports, self.bulletin)
        self.memory = Memory(self.ports.limits.memory_bytes)

    def shard(self, partition: int) -> Shard:
        """Return the routers of an owned partition; they were unpacked when it was recovered."""
        return self.shards[partition]

    @property
    def routers(self) -> int:
        """Return the number of this worker's routers."""
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
                self.lanes[shard.number] = lane = Lane(
                    self.ports, shard, bulletin=self.bulletin, refuse=self.refuse_later
                )
                agents = {name: partial(agent, self) for name, agent in self.agents.items()}
                Serving(lane, agents, turns=self._turns).start(partial(self.declare, self))
        for lane in self.lanes.values():
            lane.reopen()

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
            if (lane := self.lanes.pop(number, None)) is not None:
                lane.stop()
        self.bulletin.lost(partitions)
        self.aside.lost(partitions)

    async def clear(self, number: int) -> None:
        """Delete what routers of a partition that are gone have left, a record batch at a time;
        after a crash the next worker goes on with it."""
        while (shard := self.shards.get(number)) is not None and shard.leaves:
            async with self.lanes[number].batch():
                shard.clear(self.batch_bytes)

    def applied(self, partition: int) -> dict[str, int]:
        """Return the last offsets of the sources that a partition's state contains, by the names of
        `schemas.lambdas.Contained`; −1 before the first."""
        watermarks = self.shards[partition].watermarks
        return {name: watermarks.of(self.ports.topic[name]) for name in CONTAINED}

    def contained(self, topic: str, partition: int) -> int:
        """Return the last offset of a source that a partition's state contains, −1 before the first
        and where the partition is not this worker's."""
        shard = self.shards.get(partition)
        return -1 if shard is None else shard.watermarks.of(topic)

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

    async def give_up(self, parked: Parked, error: InternalError) -> None:
        """Refuse a waiting event on which this worker fails."""
        if (lane := self.lanes.get(parked.partition)) is not None:
            await lane.give_up(parked, error)
