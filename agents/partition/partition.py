"""A partition of this worker: it owns its inbox, its routers, its table and its lane. Agents are
what is done with its events."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, Literal

from msgspec import structs

from agents.group import Answers, Batch
from agents.lane.lane import Lane
from agents.lane.poison import on_behalf_of
from agents.parked import Parked
from agents.partition.aside import Aside
from agents.partition.news import News
from agents.ports import Ports
from agents.refusal_kinds import InternalError
from agents.table.recovered import Recovered
from agents.taking.next_group import NextGroup
from agents.taking.turns import Turns
from ground.messages import Message, Record
from router_state.changes import Alert, Changes
from router_state.state import invariants
from schemas.lambdas import Contained, Unbooked

BOOKED: Final[tuple[Literal["costs", "rewards"], ...]] = ("costs", "rewards")
"""Source topics of which a client may wait to see that its event was taken in."""
CONTAINED: Final = tuple(Contained.model_fields)
"""Source topics whose last offset a state on `pb.lambda` names."""
VALIDATED: Final = 200
"""Most requests of a router whose invariants are checked after each group: some milliseconds."""


Agents = Mapping[str, Callable[["Partition", list[Record]], Batch]]
"""Agent of each source topic, which makes a batch of a partition's events; in the order in which
the batches of a group are applied."""


class Worker:
    """The partitions of one worker, and what they share.

    Attributes:
        agents: what is done with the events of each source topic.
        turns: whose group is applied next.
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
        worker: all partitions of this worker, and what they share.
        inbox: what was fetched.
        waits: how long bills and rewards have waited to be taken.
        lane: the only writer.
        news: what is to be published.
        aside: routers and pools on which work by the clock fails.
        group_bytes: bytes of changes that one group aims at; the rest of a record batch is for what
            is small and many.
        feedback_topics: full names of the topics of bills and of rewards.
        requests_seen_at: time at which the last request taken in was sent, seconds since the epoch.
        undelivered: refusals whose dead letters are to be sent again.
        interrupted: whether something may be left to be finished, see `agents.upkeep.waits_end`.
        encoding_waiting: held by who answers requests that waited for their routers: what another
            one encodes is not encoded twice.
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
        """Read the requests again of which the table has only the place; one that is gone from the
        log is refused."""
        missing = [parked for parked in self.parking if parked.private and parked.value is None]
        if missing:
            offsets = [parked.offset for parked in missing]
            values = await self.ports.log.read_again(self.number, offsets)
            for parked in missing:
                refused = parked.refused or parked.offset not in values
                value = values.get(parked.offset)
                self.parking.add(structs.replace(parked, value=value, refused=refused))

    async def give_up(
        self, parked: Parked, error: InternalError, batches: Sequence[Batch] = ()
    ) -> None:
        """Refuse an event on which this worker fails; its offset is contained from then on."""
        async with self.lane.group(batches) as answers:
            self.refuse_later(parked, error, answers)
            # The offset of an event that had waited is contained already; then this changes
            # nothing.
            self.watermarks.advance(parked.topic, parked.offset)
            self.count("internal_error")

    def refuse_later(self, parked: Parked, error: Exception, answers: Answers) -> None:
        """Refuse an event by a decision that depends on the state: it stands, whatever the state is
        after a crash."""
        refused = parked.refuse(error)
        self.parking.park(refused)
        answers.refused_later.append((refused, error))
        self.note_unbooked(parked, parked.router_id, "refused")

    def refuse_again(self, parked: Parked, answers: Answers) -> None:
        """Refuse a parked event for the reason that it was parked with."""
        self.refuse_later(parked, parked.refusal, answers)

    def note_unbooked(
        self, source: Message, router_id: str, outcome: Literal["duplicate", "waiting", "refused"]
    ) -> None:
        """Let the router's next state on `pb.lambda` say that a bill or reward was taken in and
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
        """Note that the state contains these events of one topic, and all before them."""
        super().contain(messages)
        if messages[-1].topic == self._requests:
            self.requests_seen_at = (messages[-1].timestamp or 0) / 1000.0

    def roll_back(self) -> None:
        """Return to the table as it was before the present group."""
        super().roll_back()
        self.interrupted = True

    def written(self, changed: dict[str, Changes]) -> None:
        """Check the invariants of what a group has changed, if the settings ask for it, and note
        that it is to be published. Raises InternalError."""
        if self.ports.limits.validate_state:
            for router_id in changed:
                self._validate(router_id)
        for router_id, changes in changed.items():
            self.news.changed(router_id, changes.alerts)

    def _validate(self, router_id: str) -> None:
        engine = self.routers.engine(router_id)
        assert engine is not None
        with on_behalf_of(f"the state of router {router_id}"):
            # Those of requests only where few are remembered.
            if len(engine.records) <= VALIDATED:
                invariants.check(engine.state, engine.records)
            else:
                for fault in invariants.faults(engine.state):
                    raise AssertionError(fault)

    async def clear_removed(self) -> None:
        """Delete what removed routers have left, a record batch at a time; after a crash the next
        owner goes on with it."""
        while self.routers.removed:
            async with self.lane.group():
                self.routers.removed.clear(self.group_bytes)

    def applied(self) -> dict[str, int]:
        """Return the last offsets of the sources that the state contains, by the names of
        `schemas.lambdas.Contained`; −1 before the first."""
        return {name: self.watermarks.of(self.ports.outbox.topic[name]) for name in CONTAINED}

    def lags(self, name: str = "requests") -> bool:
        """Tell whether there are events of a topic that the state does not contain yet: requests
        without an answer, or declarations that are not in force."""
        # While the end is not known there may be events: to wait too long is harmless, to refuse
        # too early is not.
        end = self.ports.log.end_of(name, self.number)
        return end is None or end - 1 > self.watermarks.of(self.ports.outbox.topic[name])
