"""A partition of this worker: it owns its inbox, its routers, its table and its lane. Agents
handle its events.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Final, Literal

from msgspec import structs

from agents.group import Answers, Batch
from agents.lane.lane import Lane
from agents.lane.poison import on_behalf_of
from agents.lane.under_way import Gone
from agents.partition.aside import Aside
from agents.partition.news import News
from agents.ports import Ports
from agents.refusal_kinds import InternalError
from agents.table.parking import Parked
from agents.table.recovered import Recovered
from agents.table.router_records import Requests
from agents.taking.next_group import NextGroup
from agents.taking.turns import Turns
from ground.messages import Message, Record
from router_state.changes import Alert, Changes
from router_state.state import invariants
from schemas.lambdas import Contained, Unbooked

BOOKED: Final[tuple[Literal["costs", "rewards"], ...]] = ("costs", "rewards")
"""Source topics on which a client may wait until its event was applied."""
CONTAINED: Final = tuple(Contained.model_fields)
"""Source topics whose last contained offset a state on `pb.lambda` names."""
VALIDATED: Final = 200
"""Most requests of a router for which invariants are checked after each group: that takes some
milliseconds.
"""


Agents = Mapping[str, Callable[["Partition", list[Record]], Batch]]
"""The agent of each source topic, which makes a batch of a partition's events, in the order in
which a group applies its batches.
"""


class Worker:
    """The partitions of one worker, and the objects that they share.

    Attributes:
        agents: the agent of each source topic.
        turns: the order in which partitions apply their groups.
        publishing: a lock held while sending, so that older states are sent before newer ones.
    """

    def __init__(self, ports: Ports, agents: Agents) -> None:
        self.ports, self.agents = ports, agents
        self.turns, self.publishing = Turns(), asyncio.Lock()
        self._partitions: dict[int, Partition] = {}

    def __iter__(self) -> Iterator[Partition]:
        return iter(list(self._partitions.values()))

    def __getitem__(self, number: int) -> Partition:
        return self._partitions[number]

    def __contains__(self, number: object) -> bool:
        return number in self._partitions

    async def each(self, duty: Callable[[Partition], Awaitable[None]]) -> None:
        """Do a duty for each partition. A partition that is lost meanwhile is passed over: its next
        owner does the duty.
        """
        for partition in self:
            with suppress(Gone):
                await duty(partition)

    @property
    def routers(self) -> int:
        """Return the number of this worker's routers."""
        return sum(len(one.routers) for one in self)

    def take_alerts(self) -> list[tuple[str, Alert]]:
        """Return the alerts to be published, and forget them."""
        return [alert for one in self for alert in one.news.take_alerts()]


class Partition(Recovered):
    """One partition of this worker.

    Attributes:
        worker: all partitions of this worker, and the objects that they share.
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

    def __init__(self, number: int, worker: Worker) -> None:
        ports = worker.ports
        super().__init__(ports.states.partition(number))
        self.worker, self.ports = worker, ports
        self.count, self.clock = ports.meter.count, ports.clock
        topic = ports.outbox.topic
        self.feedback_topics = topic["costs"], topic["rewards"]
        self._requests = topic["requests"]
        self.group_bytes = ports.limits.changelog_batch_bytes // 2
        self.inbox = ports.log.inbox(number)
        coming = NextGroup(
            worker.agents,
            self.inbox,
            routers=self.routers,
            pools=self.pools,
            limits=ports.limits,
        )
        self.waits = coming.waits
        self.lane = Lane(self, coming, inbox=self.inbox, turns=worker.turns, ports=ports)
        self.news = News()
        self.aside = Aside(self.table, ports=ports, news=self.news)
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

    async def refuse_failed(
        self, parked: Parked, error: InternalError, batches: Sequence[Batch] = ()
    ) -> None:
        """Refuse an event on which this worker fails; its offset is contained from then on."""
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

    def refuse_again(self, parked: Parked, answers: Answers) -> None:
        """Refuse a parked event with the reason that stands in it."""
        self.refuse_later(parked, parked.refusal, answers)

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
