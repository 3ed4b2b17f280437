"""The agents of a worker without Kafka: its durable table and what it says are kept in lists, one
event at a time.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from faust.types import TP

from agents.declaring.declare_routers import declare_routers
from agents.group import Group
from agents.members.exchange_grants import report_and_grant
from agents.members.exchange_priors import report_and_estimate
from agents.outbox import DeadLetters, Outbox
from agents.partition.partition import Partition, Partitions
from agents.ports import Encoder, Limits, Ports, References
from agents.publishing.publish import publish
from agents.upkeep.sweep import Sweep
from agents.upkeep.waits_end import end_waits, resume
from streams.faust.sources import Inbox
from streams.partitioner import partition_of
from streams.priors.references import prior_reader, projection_checker
from streams.service.agent_ports import TOPICS
from streams.service.worker import AGENTS
from streams.settings import Settings
from streams.state.tables import States

SOURCES = ("routers", "requests", "costs", "rewards", "pools", "leases", "kin")


class Left(Exception):
    """The process would have ended here."""


class Clock:
    """Processing time as the test sets it."""

    now = 1_800_000_000.0

    def __call__(self) -> float:
        # As the worker's, which tells no more than events can say.
        return round(self.now, 6)


class MemoryWorker:
    """A worker that owns some partitions.

    Attributes:
        changelog: (partition, key, value, epoch, time) of every record written.
        said: (topic, key, value, headers) of everything sent.
        gate, at_gate: while there is a gate, answers wait until it is set; `at_gate` is set when
            one does.
        requests: the value of every request that was taken, by partition and offset.
        ends: the offset after the last event of each topic, None if it is not known.
        counted: outcomes.
        mute: whether it is to fail as soon as it has something to say, after its changes are
            durable.
    """

    def __init__(
        self, settings: Settings, partitions: Sequence[int], *, validates: bool = True
    ) -> None:
        self.clock = Clock()
        self.mute = False
        self.ends: dict[str, int | None] = {"requests": 0, "routers": 0}
        self.counted: Counter[str] = Counter()
        self.gate: asyncio.Event | None = None
        self.at_gate = asyncio.Event()
        self.changelog: list[tuple[int, bytes, bytes | None, int, float]] = []
        self.said: list[tuple[str, bytes | None, bytes | None, Sequence[tuple[str, bytes]]]] = []
        self.requests: dict[tuple[int, int], bytes | None] = {}
        self.finished: list[Group] = []
        self._left: asyncio.Future[BaseException] | None = None
        self._inboxes: dict[int, Inbox] = {}
        self._topics = {name: settings.topic(name) for name in SOURCES}
        self.states = States(self._publish)
        self._ends = dict.fromkeys(partitions, 0)
        dead_letters = DeadLetters(settings.prefix, stage="test", send_large=self._send_large)
        self.partitions = Partitions(
            Ports(
                states=self.states,
                log=self,
                outbox=Outbox(
                    {name: settings.topic(name) for name in TOPICS},
                    self._produce,
                    dict.fromkeys(SOURCES, dead_letters),
                ),
                encoder=None,
                references=References(
                    prior_reader(settings.priors_path), projection_checker(settings)
                ),
                contexts=None,
                count=lambda what, amount=1: self.counted.update({what: amount}),
                finished=self.finished.append,
                rank_of=settings.source_rank,
                clock=self.clock,
                leave=self._leave,
                limits=Limits(
                    **{name: getattr(settings, name) for name in Limits.__slots__}
                    | {"validate_state": validates}
                ),
            ),
            AGENTS,
            declare_routers,
        )
        self.partition_of = partial(partition_of, partitions=settings.partitions)

    def __getitem__(self, number: int) -> Partition:
        return self.partitions[number]

    def encode_with(self, encoder: Encoder | None) -> None:
        """Give the worker another encoder."""
        ports = self.partitions.ports = replace(self.partitions.ports, encoder=encoder)
        for partition in self.partitions:
            partition.ports = ports

    def _leave(self, error: BaseException) -> None:
        """Let what ends the process end only the call."""
        if self._left is not None and not self._left.done():
            self._left.set_result(error)

    def inbox(self, number: int) -> Inbox:
        """Return what waits of a partition."""
        if number not in self._inboxes:
            self._inboxes[number] = Inbox(
                number, self._topics, max_bytes=2**40, stop=_never, resume=_never
            )
        return self._inboxes[number]

    def end_of(self, name: str, partition: int) -> int | None:
        """Return the offset after a topic's last event, as the test says."""
        return self.ends[name]

    def hold(self, partitions: frozenset[int]) -> None:
        """Hold nothing."""

    async def read_again(self, partition: int, offsets: Iterable[int]) -> dict[int, bytes | None]:
        """Return what was asked, while it is on the log."""
        return {
            offset: self.requests[at]
            for offset in offsets
            if (at := (partition, offset)) in self.requests
        }

    async def start(self, before: MemoryWorker | None = None) -> None:
        """Take over the partitions: empty, or as another worker left them on its changelog."""
        await self.states.assign(self._ends)
        self.states.on_recovered(self.partitions.recovered)
        if before is not None:
            self.requests = before.requests
        for number, key, value, epoch, _ in before.changelog if before is not None else ():
            self.states.partition(number).recover(
                key, value, offset=self._ends[number], epoch=epoch
            )
            self._ends[number] += 1
        await self.states.recovered(self._ends.copy())

    async def take(self, topic: str, messages: Sequence[Any]) -> None:
        """Give messages of a source topic (short name) to their lanes, and wait until they are
        finished.
        """
        if topic == "requests":
            self.requests |= {
                (message.partition, message.offset): message.value for message in messages
            }
        if self._left is None:
            self._left = asyncio.get_running_loop().create_future()
        numbers = dict.fromkeys(message.partition for message in messages)
        for number in numbers:
            own = [message for message in messages if message.partition == number]
            self.inbox(number).put(topic, own)
        for number in numbers:
            await self._finished(self.inbox(number), topic, messages[-1].offset)

    async def _finished(self, inbox: Inbox, topic: str, offset: int) -> None:
        assert self._left is not None
        while inbox.done.get(topic, -1) <= offset:
            if self._left.done():
                raise Left from self._left.result()
            await asyncio.sleep(0)

    async def pass_time(self) -> None:
        """Do what the timers do."""
        for duty in (resume, report_and_grant, report_and_estimate, end_waits):
            await self.partitions.each(duty)
        await Sweep(self.partitions).round()
        await publish(self.partitions)

    def table(self, number: int) -> dict[bytes, bytes]:
        """Return the durable records of a partition."""
        return dict(self.states.partition(number).records)

    async def _publish(self, number: int, changes: Mapping[bytes, bytes | None], epoch: int) -> int:
        first = self._ends[number]
        self._ends[number] += len(changes)
        self.changelog += [
            (number, key, value, epoch, self.clock.now) for key, value in changes.items()
        ]
        return first

    async def _produce(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None,
        partition: int | None = None,
        headers: Any = None,
    ) -> Any:
        if self.gate is not None:
            self.at_gate.set()
            await self.gate.wait()
        if self.mute:
            raise ConnectionError("killed before its answers were delivered")
        self.said.append((topic, key, value, headers or ()))
        return _delivered()

    async def _send_large(
        self, topic: str, *, key: bytes | None, value: bytes | None, headers: Any
    ) -> None:
        self.said.append((topic, key, value, headers))


async def _delivered() -> None:
    return None


def _never(tp: TP) -> None:
    """Fetching is not stopped, and not resumed."""
