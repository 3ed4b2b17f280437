"""The partitions of a worker as they come and go. Each owns its inbox, its routers, its table and
its lane; agents handle its events.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Final, Literal

from msgspec import structs

from agents.group import Answers, Batch
from agents.partition.lane import Lane
from agents.partition.news import News
from agents.partition.poison import Aside, on_behalf_of
from agents.partition.under_way import Gone
from agents.ports import Ports
from agents.refusal_kinds import InternalError
from agents.table.parking import Parked
from agents.table.recovered import Recovered
from agents.table.router_records import Requests
from agents.taking.intake import E, Intake, M, check_size, is_at_home, take_in
from agents.taking.next_group import NextGroup
from agents.taking.turns import Turns
from ground.messages import Message, Record, key_text
from router_state.changes import Alert, Changes
from router_state.state import invariants
from schemas.lambdas import Contained, Unbooked

log = logging.getLogger(__name__)

BOOKED: Final[tuple[Literal["costs", "rewards"], ...]] = ("costs", "rewards")
"""Source topics on which a client may wait until its event was applied."""
CONTAINED: Final = tuple(Contained.model_fields)
"""Source topics whose last contained offset a state on `pb.lambda` names."""
VALIDATED: Final = 200
"""Most requests of a router for which invariants are checked after each group: that takes some
milliseconds.
"""


class Partition(Recovered):
    """One partition of this worker.

    Attributes:
        partitions: all partitions of this worker, and the objects that they share.
        inbox: events that were fetched.
        waits: times for which bills and rewards have waited.
        lane: the only writer of the partition.
        news: changes that are to be published.
        aside: routers and pools on which timed work fails.
        group_bytes: bytes of changes that one group aims at; the rest of a record batch is room for
            many small changes.
        feedback_topics: full names of the topics of bills and of rewards.
        requests_seen_at: time at which the last applied request was sent, seconds since the epoch.
        undelivered: refusals whose dead letters are to be sent again.
        interrupted: whether a crash or a roll-back may have left work to be finished, see
            `agents.upkeep.waits_end`.
        encoding_waiting: lock held while waiting requests are answered, so that no prompt is
            encoded twice.
    """

    def __init__(self, number: int, partitions: Partitions) -> None:
        ports = partitions.ports
        super().__init__(ports.states.partition(number))
        self.partitions, self.ports = partitions, ports
        self.count, self.clock = ports.count, ports.clock
        topic = ports.outbox.topic
        self.feedback_topics = topic["costs"], topic["rewards"]
        self._requests = topic["requests"]
        self.group_bytes = ports.limits.changelog_batch_bytes // 2
        self.inbox = ports.log.inbox(number)
        coming = NextGroup(
            partitions.agents,
            self.inbox,
            routers=self.routers,
            pools=self.pools,
            limits=ports.limits,
        )
        self.waits = coming.waits
        self.lane = Lane(self, coming, inbox=self.inbox, turns=partitions.turns, ports=ports)
        self.news = News(self.clock)
        self.aside = Aside(self.table, self.news, self.count)
        self.requests_seen_at = 0.0
        self.undelivered: list[Parked] = []
        self.interrupted = True
        self.encoding_waiting = asyncio.Lock()

    async def read_again(self) -> None:
        """Read requests again, from their topic, of which the table stores only the offset. A
        request that is gone from the log is refused.
        """
        missing = [parked for parked in self.parking if parked.private and parked.value is None]
        if missing:
            offsets = [parked.offset for parked in missing]
            values = await self.ports.log.read_again(self.number, offsets)
            for parked in missing:
                refused = parked.refused or parked.offset not in values
                value = values.get(parked.offset)
                self.parking.add(structs.replace(parked, value=value, refused=refused))

    def decode(self, name: str, records: list[Record]) -> Batch:
        """Return a batch of a topic's events, which its agent applies."""
        return self.partitions.agents[name](self, records)

    async def refuse_failed(
        self, source: Record | Parked, error: InternalError, batches: Sequence[Batch] = ()
    ) -> None:
        """Refuse an event on which this worker fails; its offset is contained from then on."""
        if isinstance(source, Parked):
            parked = source
        else:
            private = source.topic == self._requests
            parked = Parked.of(source, error, router_id=key_text(source), private=private)
        async with self.lane.group(batches) as answers:
            self.refuse_later(parked, error, answers)
            # If the event had waited, its offset is contained already, and this changes nothing.
            self.watermarks.advance(parked.topic, parked.offset)
            self.count("internal_error")

    def refuse_later(self, parked: Parked, error: Exception, answers: Answers) -> None:
        """Refuse an event for a reason that depends on the state. The refusal is stored, so a crash
        does not change it.
        """
        refused = parked.refuse(error)
        self.parking.park(refused)
        answers.refused_later.append((refused, error))
        self.note_unbooked(parked, parked.router_id, "refused")

    def note_unbooked(
        self, source: Message, router_id: str, outcome: Literal["duplicate", "waiting", "refused"]
    ) -> None:
        """Let the router's next state on `pb.lambda` say that a bill or reward was read and
        changed nothing.

        Args:
            source: a message or a parked event, with topic, partition and offset.
        """
        topics = zip(BOOKED, self.feedback_topics, strict=True)
        name = next((name for name, topic in topics if topic == source.topic), None)
        if name is not None and router_id in self.routers:
            event = Unbooked(topic=name, offset=source.offset, outcome=outcome)
            self.news.unbooked(router_id, event)

    def take_in(
        self,
        messages: Iterable[M],
        kind: type[E],
        *,
        name: Callable[[M], E | None] = lambda message: None,
    ) -> Intake[M, E]:
        """Sort a batch of messages, see `agents.taking.intake.take_in`."""
        return take_in(
            messages,
            kind,
            partition_of=self.ports.log.partition_of,
            max_bytes=self.group_bytes,
            homes=self.routers,
            name=name,
        )

    def admit(self, message: Record, key: str, answers: Answers) -> bool:
        """Return whether a record belongs to this partition; forward one that does not.

        Raises:
            MalformedEvent: the record is too large to wait.
            WrongPartition: it was forwarded already.
        """
        check_size(message, self.group_bytes)
        if is_at_home(message, key, partition_of=self.ports.log.partition_of):
            return True
        answers.strays.append((message, key))
        return False

    def contain(self, messages: Sequence[Record]) -> None:
        """Record that the state contains these events of one topic, and all earlier ones."""
        super().contain(messages)
        if messages[-1].topic == self._requests:
            self.requests_seen_at = (messages[-1].timestamp or 0) / 1000.0

    def roll_back(self) -> None:
        """Return to the table as it was before the present group."""
        super().roll_back()
        self.interrupted = True

    def written(self, changed: dict[str, Changes]) -> None:
        """Note that the routers which a group has changed are to be published, and check their
        invariants if the settings ask for it. Raises InternalError.
        """
        if self.ports.limits.validate_state:
            for router_id in changed:
                self._validate(router_id)
        for router_id, changes in changed.items():
            self.news.changed(router_id, changes.alerts)
            if (engine := self.routers.engine(router_id)) is not None:
                self.families.changed(router_id, engine)

    def _validate(self, router_id: str) -> None:
        engine = self.routers.engine(router_id)
        assert engine is not None
        with on_behalf_of(f"the state of router {router_id}"):
            # Invariants of requests are checked only if few are remembered.
            if len(engine.records) <= VALIDATED:
                assert isinstance(engine.records, Requests)
                invariants.check(engine.state, engine.records.all_as_read())
            else:
                for fault in invariants.faults(engine.state):
                    raise AssertionError(fault)

    async def clear_removed(self) -> None:
        """Delete the remaining records of removed routers, a record batch at a time; after a crash
        the next owner goes on.
        """
        while self.routers.removed:
            async with self.lane.group():
                self.routers.removed.clear(self.group_bytes)

    def applied(self) -> dict[str, int]:
        """Return the last offsets of the sources that the state contains, by the names of
        `schemas.lambdas.Contained`; −1 before the first."""
        return {name: self.watermarks.of(self.ports.outbox.topic[name]) for name in CONTAINED}

    def lags(self, name: str = "requests") -> bool:
        """Tell whether a topic has events that the state does not contain yet: requests without an
        answer, or declarations that are not in force.
        """
        # While the end of the topic is not known, it may have events: waiting too long is
        # harmless, refusing too early is not.
        end = self.ports.log.end_of(name, self.number)
        return end is None or end - 1 > self.watermarks.of(self.ports.outbox.topic[name])


Agents = Mapping[str, Callable[[Partition, list[Record]], Batch]]
"""The agent of each source topic, which makes a batch of a partition's events, in the order in
which a group applies its batches.
"""
Declare = Callable[[Partition, list[Record]], Awaitable[None]]
"""Function that puts declarations in force. Raises InternalError."""


class Partitions:
    """The partitions that this worker owns and has recovered, and the objects that they share.

    Attributes:
        agents: the agent of each source topic.
        turns: the order in which partitions apply their groups.
        publishing: a lock held while sending, so that older states are sent before newer ones.
        held: partitions whose bills and rewards are not fetched for now.
    """

    def __init__(self, ports: Ports, agents: Agents, declare: Declare) -> None:
        self.ports, self.agents, self._declare = ports, agents, declare
        self.turns, self.publishing = Turns(), asyncio.Lock()
        self.held: frozenset[int] = frozenset()
        self._partitions: dict[int, Partition] = {}
        # Alerts of partitions that were lost before the alerts were published.
        self._alerts: list[tuple[str, Alert]] = []

    def __iter__(self) -> Iterator[Partition]:
        return iter(list(self._partitions.values()))

    def __getitem__(self, number: int) -> Partition:
        return self._partitions[number]

    @property
    def routers(self) -> int:
        """Return the number of this worker's routers."""
        return sum(len(one.routers) for one in self)

    async def recovered(self, numbers: frozenset[int]) -> None:
        """Index the routers of partitions that have just been recovered; call before any event
        flows."""
        new = [self._make(number) for number in numbers - self._partitions.keys()]
        for partition in new:
            await partition.read_again()
        # Partitions are shown when all are complete: until then, a request whose value is still
        # being read would be taken for one without a body.
        for partition in new:
            if partition.table.owned:  # it may have been lost meanwhile
                self._start(partition)
        for partition in self:
            partition.lane.under_way.look_again()

    def _make(self, number: int) -> Partition:
        partition = Partition(number, self)
        if partition.watermarks.unreadable:
            log.error(
                "what the state of partition %d contains can't be read (%s): events that were not "
                "acknowledged are taken in again",
                number,
                partition.watermarks.unreadable,
            )
        partition.watermarks.require_topics(self.ports.outbox.topic.values())
        return partition

    def _start(self, partition: Partition) -> None:
        self._partitions[partition.number] = partition
        partition.undelivered = [parked for parked in partition.parking if parked.refused]
        partition.news.routers.update(partition.routers)
        lane = partition.lane
        lane.spawn(lane.pass_groups(partition.decode, partition.refuse_failed))
        declare = partial(self._declare, partition)
        lane.spawn(lane.pass_declarations(declare, partition.refuse_failed))

    def lost(self, numbers: frozenset[int]) -> None:
        """Forget everything about partitions that no longer belong to this worker."""
        for number in numbers:
            if (partition := self._partitions.pop(number, None)) is not None:
                partition.lane.stop()
                self._alerts += partition.news.take_alerts()

    def take_alerts(self) -> list[tuple[str, Alert]]:
        """Return the alerts to be published, and forget them."""
        taken, self._alerts = self._alerts, []
        return taken + [alert for one in self for alert in one.news.take_alerts()]

    async def each(self, duty: Callable[[Partition], Awaitable[None]]) -> None:
        """Do a duty for each partition. A partition that is lost meanwhile is passed over: its next
        owner does the duty.
        """
        for partition in self:
            with suppress(Gone):
                await duty(partition)

    async def forget_delivered(self) -> None:
        """Forget the refusals whose dead letters were delivered: the next owner would repeat
        them."""
        for partition in self:
            # A partition that a rebalance has closed takes no more groups.
            if partition.lane.delivered and partition.table.open:
                async with partition.lane.group():
                    pass

    def contained(self, topic: str, number: int) -> int:
        """Return the last offset of a source that a partition's state contains; −1 before the
        first, and for a partition of another worker.
        """
        partition = self._partitions.get(number)
        return -1 if partition is None else partition.watermarks.of(topic)

    async def hold_back(self) -> None:
        """Stop fetching bills and rewards of partitions where too many wait for requests that are
        still to be answered.

        No agent waits for room: its queue would fill up and keep requests from the worker.
        """
        self.held = frozenset(one.number for one in self if self._is_crowded(one))
        self.ports.log.hold(self.held)

    def _is_crowded(self, partition: Partition) -> bool:
        # Fetching goes on at half the limit: at the limit itself every event would stop it again.
        waiting, limit = len(partition.parking), self.ports.limits.parked_events
        most = limit // 2 if partition.number in self.held else limit
        return partition.lags() and waiting >= most
