"""Play a history, changed by a scenario or not, into topics of another prefix, where workers decide it anew.

What was already sent is read back from those topics, so that a player which was stopped or killed goes on where it was: a request,
bill or reward that stands there is not sent again.
"""

from __future__ import annotations

import asyncio
import heapq
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import orjson
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.partitioner import murmur2

from schemas.event import encode
from schemas.routers import RouterDeclared
from streams.replay.cases import Case
from streams.replay.merge import Declared
from streams.replay.simulate import Outcomes
from streams.replay.world import World
from streams.settings import Settings

CHUNK = 500
MAX_UNDECIDED = 500
QUIET = 60.0


class NoWorker(Exception):
    """Nobody decides what was played."""


class SamePrefix(Exception):
    """History must not be written to."""


@dataclass(slots=True)
class Progress:
    """How far a player is."""

    requests: int = 0
    already: int = 0
    decided: int = 0
    refused: int = 0
    bills: int = 0
    rewards: int = 0


@dataclass(slots=True)
class Present:
    """What the target's topics hold already."""

    requests: set[str] = field(default_factory=set)
    costs: set[str] = field(default_factory=set)
    rewards: set[str] = field(default_factory=set)
    router: Any = None


class Player:
    """Send requests at their pace, and for each decision its bill and reward when they are due.

    Args:
        source: the history's settings; target: those of the topics to play into, on the same Kafka or another.
        speed: times the recorded pace; 0: as fast as workers decide.
        progress: called now and then.

    Raises:
        SamePrefix: the target is the source.
    """

    def __init__(
        self,
        world: World,
        outcomes: Outcomes,
        *,
        router_id: str,
        source: Settings | None,
        target: Settings,
        speed: float,
        progress: Callable[[Progress], None],
    ) -> None:
        if source is not None and (source.bootstrap, source.prefix) == (target.bootstrap, target.prefix):
            raise SamePrefix(f"the topics of {target.prefix} are the history; choose another prefix")
        self._world = world
        self._outcomes = outcomes
        self._router_id = router_id
        self._target = target
        self._speed = speed
        self._progress = progress
        self.state = Progress()
        self._present = Present()
        self._undecided: dict[str, tuple[Case, int]] = {}
        self._due: list[tuple[int, int, str, str, float]] = []
        self._order = 0
        self._era: tuple[int, int] | None = None
        self._base: RouterDeclared | None = None
        self._declared = 0

    async def play(self, cases: Iterator[Case | Declared]) -> Progress:
        """Play everything; return when all is decided and all feedback sent.

        Raises:
            NoWorker: no decision came for a minute.
        """
        auth, topic = self._target.kafka_auth(), self._target.topic
        self._producer = AIOKafkaProducer(**auth, acks="all", linger_ms=2, max_request_size=16 * 2**20)
        self._answers = AIOKafkaConsumer(**auth, enable_auto_commit=False, fetch_max_wait_ms=50)
        async with self._producer, self._answers:
            await self._producer.partitions_for(topic("requests"))
            self._present = await self._read_back()
            self._answers.assign([self._place("routes"), self._place("dlq")])
            await self._answers.seek_to_beginning()
            await self._play(cases)
        return self.state

    async def _play(self, cases: Iterator[Case | Declared]) -> None:
        started, first = time.monotonic(), None
        while chunk := await asyncio.to_thread(lambda: list(islice(cases, CHUNK))):
            for case in chunk:
                if isinstance(case, Declared):
                    if case.router is not None:
                        self._base, self._declared = case.router, self._declared + 1
                    continue
                first = case.at if first is None else first
                if self._speed > 0.0:
                    await self._wait_until(started + (case.at - first) / self._speed)
                await self._submit(case)
        await self._drain(0)
        await self._feed(until=2**63)
        await self._producer.flush()
        self._progress(self.state)

    async def _wait_until(self, moment: float) -> None:
        while (left := moment - time.monotonic()) > 0.0:
            await self._listen(min(left, 0.1))

    async def _submit(self, case: Case) -> None:
        base = self._base
        if base is None:
            return
        era = self._world.era(case.index), self._declared
        if era != self._era:
            self._era = era
            await self._declare(self._world.router(base, case.index))
        for copy in range(self._world.copies(case.index)):
            request_id = case.request_id if copy == 0 else f"{case.request_id}~{copy}"
            self._undecided[request_id] = case, copy
            if request_id in self._present.requests:
                self.state.already += 1
            else:
                await self._send("requests", request_id, _request_fields(case))
                self.state.requests += 1
        if len(self._undecided) >= MAX_UNDECIDED:
            await self._drain(MAX_UNDECIDED // 2)
        elif self.state.requests % 50 == 0:
            await self._listen(0.0)

    async def _declare(self, router: RouterDeclared) -> None:
        declared = router.model_copy(update={"router_id": self._router_id})
        value = encode(declared)
        if orjson.loads(value) != self._present.router:
            await self._drain(0)
            await self._producer.send_and_wait(self._target.topic("routers"), value, key=self._router_id.encode())
            self._present.router = orjson.loads(value)

    async def _drain(self, down_to: int) -> None:
        """Wait until at most so many requests have no decision."""
        await self._producer.flush()
        last, since = self.state.decided, time.monotonic()
        while len(self._undecided) > down_to:
            await self._listen(0.2)
            if self.state.decided != last:
                last, since = self.state.decided, time.monotonic()
            if time.monotonic() - since > QUIET:
                raise NoWorker(f"no decision in {QUIET:g} s: does a worker serve the prefix {self._target.prefix}?")

    async def _listen(self, seconds: float) -> None:
        for place, records in (await self._answers.getmany(timeout_ms=int(seconds * 1000))).items():
            for record in records:
                if record.key == self._router_id.encode():
                    self._answered(orjson.loads(record.value), refused=place.topic.endswith("dlq"))
        await self._feed(until=self.state.decided)
        self._progress(self.state)

    def _answered(self, answer: dict[str, Any], *, refused: bool) -> None:
        request_id = answer.get("request_id")
        waiting = self._undecided.pop(request_id, None) if isinstance(request_id, str) else None
        if waiting is None or not isinstance(request_id, str):
            return
        self.state.decided += 1
        if refused:
            self.state.refused += 1
            return
        case, copy = waiting
        reward, cost, _ = self._outcomes.of(case, answer["model"])
        reward_here, cost_here = self._world.outcome(case.index, answer["model"], reward or 0.0, cost or 0.0)
        if cost is not None:
            self._later("costs", case, copy, request_id, cost_here, case.cost_lag)
        if reward is not None:
            self._later("rewards", case, copy, request_id, reward_here, case.reward_lag)

    def _later(self, topic: str, case: Case, copy: int, request_id: str, value: float, lag: int) -> None:
        for late in self._world.lags(case.index, copy, topic, lag):
            self._order += 1
            heapq.heappush(self._due, (self.state.decided + late, self._order, topic, request_id, value))

    async def _feed(self, *, until: int) -> None:
        while self._due and self._due[0][0] <= until:
            _, _, topic, request_id, value = heapq.heappop(self._due)
            if request_id in getattr(self._present, topic):
                continue
            if topic == "costs":
                await self._send("costs", request_id, {"cost_usd": value})
                self.state.bills += 1
            else:
                await self._send("rewards", request_id, {"reward": value, "source": "judge"})
                self.state.rewards += 1

    async def _send(self, topic: str, request_id: str, fields: dict[str, Any]) -> None:
        body = orjson.dumps({"router_id": self._router_id, "request_id": request_id, **fields})
        await self._producer.send(self._target.topic(topic), body, key=self._router_id.encode())

    async def _read_back(self) -> Present:
        """Read what the target's topics hold of this router."""
        present = Present()
        for topic in ("routers", "requests", "costs", "rewards"):
            async for value in self._records(topic):
                if topic == "routers":
                    present.router = None if value is None else orjson.loads(value)
                elif value is not None:
                    getattr(present, topic).add(orjson.loads(value)["request_id"])
        return present

    async def _records(self, topic: str) -> Any:
        place = self._place(topic)
        consumer = AIOKafkaConsumer(**self._target.kafka_auth(), enable_auto_commit=False, fetch_max_wait_ms=50)
        async with consumer:
            consumer.assign([place])
            await consumer.seek_to_beginning()
            end = (await consumer.end_offsets([place]))[place]
            while await consumer.position(place) < end:
                for record in (await consumer.getmany(place, timeout_ms=500)).get(place, ()):
                    if record.key == self._router_id.encode():
                        yield record.value

    def _place(self, topic: str) -> TopicPartition:
        number = (murmur2(self._router_id.encode()) & 0x7FFFFFFF) % self._target.partitions
        return TopicPartition(self._target.topic(topic), number)


def _request_fields(case: Case) -> dict[str, Any]:
    fields: dict[str, Any] = {"context": case.x.tolist()}
    if case.allowed_models is not None:
        fields["allowed_models"] = list(case.allowed_models)
    if case.max_price_per_1k is not None:
        fields["max_price_per_1k"] = case.max_price_per_1k
    return fields
