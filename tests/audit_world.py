"""A small service in memory that writes true topics, for audits of them and of what is done to
them.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np

from schemas.headers import FORWARDED, REPEATED
from streams.partitioner import partition_of
from streams.settings import Settings
from studies.history.records import Record
from tests.memory_topics import MemoryTopics
from tests.memory_worker import MemoryWorker

DIMENSIONS = 5
MODELS = {
    "llama": {"input_price_per_m": 0.1, "output_price_per_m": 0.1, "onboarding_pulls": 2},
    "mistral": {"input_price_per_m": 0.5, "output_price_per_m": 1.5, "onboarding_pulls": 2},
    "gemini": {"input_price_per_m": 1.25, "output_price_per_m": 10.0, "onboarding_pulls": 2},
}


class World:
    """Topics in memory with a worker behind them.

    Attributes:
        records: every topic by (short name, partition); tests spoil them.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.records: dict[tuple[str, int], list[Record]] = defaultdict(list)
        self.partition_of = partial(partition_of, partitions=settings.partitions)
        self.worker = MemoryWorker(settings, range(settings.partitions))

    async def start(self) -> None:
        """Start the worker."""
        await self.worker.start()
        self._collect()

    async def send(
        self,
        topic: str,
        event: Mapping[str, Any] | bytes | None,
        *,
        key: bytes | None = None,
        **place: Any,
    ) -> None:
        """Write an event and let the worker take it at once; `partition` and `headers` may be
        given.
        """
        if isinstance(event, Mapping):
            key = key or event.get("router_id", event.get("pool_id", "")).encode()
            event = json.dumps(event).encode()
        number = place.get("partition", self.partition_of((key or b"").decode()))
        headers = place.get("headers", [])
        self.worker.clock.now += 0.001
        offset = self._append(topic, number, key, event, headers)
        message = SimpleNamespace(
            topic=self.settings.topic(topic),
            partition=number,
            offset=offset,
            key=key,
            value=event,
            headers=headers,
            timestamp=self.worker.clock.now * 1000,
        )
        await self.worker.take(topic, [message])
        await self._forward()

    async def pass_time(self, seconds: float) -> None:
        """Let time go by, and the timers with it."""
        self.worker.clock.now += seconds
        await self.worker.pass_time()
        await self._forward()

    def topics(self) -> MemoryTopics:
        """Return what an audit reads."""
        return MemoryTopics(self.records)

    def _append(
        self, topic: str, number: int, key: bytes | None, value: bytes | None, headers: Any
    ) -> int:
        log = self.records[topic, number]
        texts = {name: header.decode() for name, header in headers}
        log.append(Record(len(log), self.worker.clock.now, key, value, texts))
        return len(log) - 1

    async def _forward(self) -> None:
        for topic, key, value, headers in self._collect():
            assert key is not None
            assert topic in ("leases", "kin") or {FORWARDED, REPEATED} & dict(headers).keys()
            await self.send(
                topic, value, key=key, headers=headers, partition=self.partition_of(key.decode())
            )

    def _collect(self) -> list[Any]:
        """Write down what the worker said; what is for its own agents is returned."""
        said, self.worker.said = self.worker.said, []
        strays = []
        for topic, key, value, headers in said:
            short = topic.removeprefix(self.settings.prefix)
            if short in ("routers", "requests", "costs", "rewards", "leases", "kin"):
                strays.append((short, key, value, headers))
            else:
                self._append(
                    short,
                    self.partition_of((key or b"").decode(errors="replace")),
                    key,
                    value,
                    headers,
                )
        changelog, self.worker.changelog = self.worker.changelog, []
        for number, changed, value, epoch, _ in changelog:
            self._append("changelog", number, changed, value, [("epoch", b"%d" % epoch)])
        return strays


def router(router_id: str, **changed: Any) -> dict[str, Any]:
    """Return a declaration of three models without priors."""
    event = {
        "router_id": router_id,
        "models": MODELS,
        "dimensions": DIMENSIONS,
        "budget_usd_per_request": 6.62e-4,
    }
    return {**event, **changed}


async def busy_world(settings: Settings, *, requests: int = 300, seed: int = 1) -> World:
    """Return a service after some traffic of every kind: late, repeated, revised, orphaned, stray
    and malformed events.
    """
    world, rng = World(settings), np.random.default_rng(seed)
    await world.start()
    homes = [f"home-{number}" for number in range(4)]
    for number, home in enumerate(homes):
        by_hour = {"budget": {"usd": 0.02, "per": "hour"}} if number == 1 else {}
        profile = ("paper", "live")[number % 2]
        await world.send("routers", router(home, profile=profile, **by_hour))
    for number in range(requests):
        home, request_id = homes[number % len(homes)], f"r-{number}"
        context = [*rng.normal(size=DIMENSIONS - 1).round(3).tolist(), 1.0]
        event = {"router_id": home, "request_id": request_id, "context": context}
        called = {"model": "llama"} if number % 23 == 6 else {}
        bill = {
            "router_id": home,
            "request_id": request_id,
            "cost_usd": float(rng.lognormal(-8, 1)),
            **called,
        }
        label = {
            "router_id": home,
            "request_id": request_id,
            "reward": round(float(rng.random()), 3),
            "source": "judge",
        }
        astray: dict[str, Any] = (
            {"partition": (world.partition_of(home) + 1) % settings.partitions}
            if number % 41 == 5
            else {}
        )
        if number % 7 == 3:
            await world.send("costs", bill)
        await world.send("requests", event, **astray)
        if number % 13 == 4:
            await world.send("requests", event)
        if number % 7 != 3 and number % 50 != 9:
            await world.send("costs", bill, **astray)
        if number % 60 != 11:
            await world.send("rewards", label)
        if number % 17 == 2:
            await world.send("rewards", {**label, "source": "human", "reward": 1.0})
            await world.send("costs", {**bill, "cost_usd": 0.002, "revision": 1})
            await world.send("costs", bill)
        if number % 20 == 7:
            await world.send("requests", b"{", key=home.encode())
            await world.send("costs", {**bill, "cost_usd": -1})
            await world.send("costs", {**bill, "request_id": f"nobody-{number}"})
            await world.send("rewards", {**label, "request_id": f"nobody-{number}"})
            await world.send(
                "requests", {**event, "request_id": f"never-{number}", "allowed_models": ["other"]}
            )
        if number % 25 == 0:
            await world.pass_time(0.5)
    await world.pass_time(61.0)
    await world.pass_time(1.0)
    return world


async def talking_world(settings: Settings, *, requests: int = 120, seed: int = 1) -> World:
    """Return a service after conversations with caches, calls that failed, times of calls, budgets
    of a period, and rewards of whole sessions.
    """
    world, rng = World(settings), np.random.default_rng(seed)
    await world.start()
    cached = {name: {**MODELS[name], "cached_input_price_per_m": 0.01} for name in MODELS}
    homes: dict[str, dict[str, Any]] = {
        "talk-0": {"models": cached, "latency_target": {"p95_ms": 2000}},
        "talk-1": {"usd_per_second": 0.001, "budget": {"usd": 0.02, "per": "hour"}},
        "talk-2": {"latency_target": {"mean_ms": 700, "of": "first_token"}},
    }
    for home, declared in homes.items():
        await world.send("routers", router(home, **declared))
    for number in range(requests):
        home, request_id = f"talk-{number % 3}", f"r-{number}"
        session = f"s-{number % 9}"
        event = {"router_id": home, "request_id": request_id, "session_id": session}
        context = [*rng.normal(size=DIMENSIONS - 1).round(3).tolist(), 1.0]
        tokens = {"input_tokens": 2000 + 50 * number} if number % 5 else {}
        bill = {
            "router_id": home,
            "request_id": request_id,
            "cost_usd": float(rng.lognormal(-8, 1)),
            "latency_ms": round(float(rng.lognormal(7, 0.7)), 3),
            "first_token_ms": round(float(rng.lognormal(6, 0.7)), 3),
        }
        whole = {"router_id": home, "session_id": session, "reward": 0.5, "source": "user"}
        if number == 4:
            await world.send("rewards", whole)
        await world.send("requests", {**event, "context": context, **tokens})
        if number % 4 == 1:
            failed = {**bill, "cost_usd": 0.0, "status": "timeout" if number % 8 == 1 else "error"}
            await world.send("costs", failed)
            await world.send("costs", {**bill, "revision": 1, "model": "llama"})
        else:
            read = {"input_tokens": 2000, "output_tokens": 9, "cached_input_tokens": 1000}
            await world.send("costs", {**bill, **(read if number % 6 == 2 else {})})
        if number % 11 == 3:
            revision = number // 11
            await world.send("rewards", {**whole, "reward": 0.25, "revision": revision})
        if number % 3 == 0:
            label = {"request_id": request_id, "reward": 0.75, "source": "judge"}
            await world.send("rewards", {"router_id": home, **label})
        if number % 30 == 0:
            await world.send("rewards", {**whole, "session_id": f"nobody-{number}"})
            await world.pass_time(0.5)
    await world.pass_time(61.0)
    await world.pass_time(1.0)
    return world
