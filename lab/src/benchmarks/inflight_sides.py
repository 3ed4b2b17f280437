"""The sides that decide in `benchmarks.inflight_kafka`: the engine in this process, or a worker
through its topics.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import orjson

from agents.declaring.configuration import config_of
from agents.publishing.published_values import route_value
from benchmarks.played import Played
from doors.console.bus import Bus, Follower, open_bus
from doors.console.changing_declarations import put_in_force
from schemas import (
    CostReported,
    Event,
    LambdaUpdated,
    RequestSubmitted,
    RewardObserved,
    RouteDecided,
    RouterDeclared,
    decode,
    encode,
)
from streams.settings import Settings

ROUTER = "inflight"
PATIENCE = 60.0


class Side(Protocol):
    """Whoever decides: a simulation or a service."""

    async def declare(self, declared: RouterDeclared) -> None:
        """Put a declaration in force."""

    async def feed_back(self, feedback: Sequence[tuple[CostReported, RewardObserved]]) -> None:
        """Put bills and rewards in force."""

    async def decide(self, requests: Sequence[RequestSubmitted]) -> list[RouteDecided]:
        """Return the decisions, in order."""


@dataclass(slots=True)
class Simulation:
    """The engine alone, in this process."""

    engine: Played | None = None
    at: float = 0.0

    async def declare(self, declared: RouterDeclared) -> None:
        config = config_of(declared, offset=0, references={})
        if self.engine is None:
            self.engine = Played.start(config)
        else:
            self.engine.configure(config, now=self.at)

    async def feed_back(self, feedback: Sequence[tuple[CostReported, RewardObserved]]) -> None:
        for bill, label in feedback:
            assert self.engine is not None
            self.engine.settle(bill.request_id, cost_usd=bill.cost_usd)
            self.engine.learn(label.subject, reward=label.reward, source=label.source)

    async def decide(self, requests: Sequence[RequestSubmitted]) -> list[RouteDecided]:
        return [self._decide(request) for request in requests]

    def _decide(self, request: RequestSubmitted) -> RouteDecided:
        assert self.engine is not None
        self.at += 1.0
        record = self.engine.decide(request.request_id, np.array(request.context), now=self.at)
        return decode(RouteDecided, route_value(ROUTER, request.request_id, record, repeat=False))


@dataclass(slots=True)
class Service:
    """A worker, through its topics."""

    bus: Bus
    records: Follower
    fed_back: int = 0
    in_force: int | None = None
    arrived: dict[str, RouteDecided] = field(default_factory=dict)

    async def declare(self, declared: RouterDeclared) -> None:
        document: dict[str, Any] = orjson.loads(encode(declared))
        state = await put_in_force(
            self.bus, ROUTER, document, based_on=self.in_force, seconds=PATIENCE
        )
        self.in_force = state.config_offset

    async def feed_back(self, feedback: Sequence[tuple[CostReported, RewardObserved]]) -> None:
        if not feedback:
            return
        self.fed_back += len(feedback)
        names: list[tuple[str, Event]] = [
            pair for bill, label in feedback for pair in (("costs", bill), ("rewards", label))
        ]
        await self.bus.send_all(names)
        await self.records.until(
            self._contained, seconds=PATIENCE, waited_for="took in the feedback"
        )

    def _contained(self, name: str, record: Any) -> bool | None:
        if name != "lambda":
            return None
        state = decode(LambdaUpdated, record.value)
        return (state.settled, state.rewards_applied) == (self.fed_back, self.fed_back) or None

    async def decide(self, requests: Sequence[RequestSubmitted]) -> list[RouteDecided]:
        wanted = [request.request_id for request in requests]
        await self.bus.send_all([("requests", request) for request in requests])

        def all_decided(name: str, record: Any) -> bool | None:
            if name == "routes":
                decision = decode(RouteDecided, record.value)
                self.arrived[decision.request_id] = decision
            return all(i in self.arrived for i in wanted) or None

        await self.records.until(all_decided, seconds=PATIENCE)
        return [self.arrived.pop(i) for i in wanted]


@asynccontextmanager
async def following(settings: Settings) -> Any:
    """Yield the service as a side."""
    names = ("routers", "requests", "costs", "rewards", "routes", "lambda", "dlq")
    async with (
        open_bus(settings, *names) as bus,
        bus.follow("routes", "lambda", router_id=ROUTER) as records,
    ):
        yield Service(bus, records)
