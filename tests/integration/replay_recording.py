"""Record a history: two routers on the real worker, clients with many requests in flight, the
worker killed in the middle.
"""

from __future__ import annotations

import asyncio
import heapq
import signal
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

from streams.settings import Settings
from tests.integration.forked import Forked, inherited, start

MODELS = {"small": (0.1, 0.1), "middle": (0.5, 1.5), "large": (1.25, 10.0)}
QUALITY = {"small": 0.78, "middle": 0.9, "large": 0.94}
COST_USD = {"small": 2.9e-5, "middle": 5.3e-4, "large": 1.5e-2}


def start_worker(settings: Settings, log: Path) -> subprocess.Popen[bytes] | Forked:
    """Start a worker process of its own."""
    own = {
        "PB_BOOTSTRAP": settings.bootstrap,
        "PB_PREFIX": settings.prefix,
        "PB_APP_ID": settings.app_id,
        "PB_PARTITIONS": str(settings.partitions),
        "PB_WEB_PORT": "0",
        "PB_ENCODER_BACKEND": "none",
        "PB_SESSION_TIMEOUT": "3",
        "PB_HEARTBEAT": "0.5",
    }
    return start(["tests.integration.service_worker"], log=log, env=inherited() | own)


class Clients:
    """Send requests, and bills and rewards once so many more requests were decided."""

    def __init__(self, settings: Settings, *, requests: int, in_flight: int, seed: int = 0) -> None:
        self._settings = settings
        self._total = requests
        self._in_flight = in_flight
        self._rng = np.random.default_rng(seed)
        self._tilt = {model: self._rng.normal(0, 0.03, 25) for model in MODELS}
        self._contexts: dict[tuple[str, str], np.ndarray] = {}
        self._due: list[tuple[int, int, str, dict[str, Any]]] = []
        self._order = 0
        self.decided: dict[tuple[str, str], str] = {}

    async def run(self, routers: dict[str, dict[str, Any]], *, at: dict[int, Any]) -> None:
        """Play until every request is decided; `at` holds coroutine functions to be called at so
        many decisions.
        """
        auth = self._settings.kafka_auth()
        producer = AIOKafkaProducer(**auth, linger_ms=2)
        topics = [self._settings.topic("routes"), self._settings.topic("dlq")]
        consumer = AIOKafkaConsumer(*topics, **auth, auto_offset_reset="earliest")
        async with producer, consumer:
            self._producer = producer
            for router_id, declared in routers.items():
                await self.send("routers", router_id, declared)
            names, sent, pending = list(routers), 0, dict(at)
            while len(self.decided) < self._total:
                while sent < self._total and sent - len(self.decided) < self._in_flight:
                    await self._request(names[sent % len(names)], f"r-{sent}")
                    sent += 1
                for place, records in (await consumer.getmany(timeout_ms=200)).items():
                    assert place.topic.endswith("routes"), [record.headers for record in records]
                    for record in records:
                        self._answer(orjson.loads(record.value))
                for count in [count for count in pending if count <= len(self.decided)]:
                    await pending.pop(count)()
                await self._feedback(len(self.decided))
            await self._feedback(10**9)

    async def send(self, topic: str, router_id: str, value: dict[str, Any]) -> None:
        """Send one event of a router."""
        body = orjson.dumps({"router_id": router_id, **value})
        await self._producer.send(self._settings.topic(topic), body, key=router_id.encode())

    async def _request(self, router_id: str, request_id: str) -> None:
        x = np.append(self._rng.normal(0, 1, 25), 1.0)
        self._contexts[router_id, request_id] = x
        await self.send("requests", router_id, {"request_id": request_id, "context": x.tolist()})

    def _answer(self, decision: dict[str, Any]) -> None:
        request = decision["router_id"], decision["request_id"]
        if request in self.decided:
            assert self.decided[request] == decision["model"]
            return
        model = self.decided[request] = decision["model"]
        quality = QUALITY[model] + float(self._tilt[model] @ self._contexts[request][:25])
        reward = {
            "request_id": request[1],
            "reward": float(np.clip(quality, 0, 1)),
            "source": "judge",
        }
        cost = {
            "request_id": request[1],
            "cost_usd": COST_USD[model] * float(self._rng.lognormal(0, 0.5)),
        }
        self._later(30, "costs", request[0], cost)
        self._later(100, "rewards", request[0], reward)

    def _later(self, decisions: int, topic: str, router_id: str, value: dict[str, Any]) -> None:
        self._order += 1
        lag = decisions + int(self._rng.integers(0, decisions))
        heapq.heappush(
            self._due,
            (len(self.decided) + lag, self._order, topic, {"router_id": router_id, **value}),
        )

    async def _feedback(self, decided: int) -> None:
        while self._due and self._due[0][0] <= decided:
            _, _, topic, value = heapq.heappop(self._due)
            await self.send(topic, value["router_id"], value)


def declaration(
    profile: str, *, budget: float = 6e-4, without: tuple[str, ...] = ()
) -> dict[str, Any]:
    """Return the declaration of a router over the three models."""
    models = {
        model: {"input_price_per_m": prices[0], "output_price_per_m": prices[1]}
        for model, prices in MODELS.items()
        if model not in without
    }
    return {"models": models, "budget_usd_per_request": budget, "profile": profile}


def record_history(settings: Settings, folder: Path, *, requests: int, in_flight: int) -> None:
    """Run workers and clients; kill the worker in the middle, change the routers twice."""
    workers = [start_worker(settings, folder / "worker.log")]
    clients = Clients(settings, requests=requests, in_flight=in_flight)

    async def kill() -> None:
        workers[-1].send_signal(signal.SIGKILL)
        workers[-1].wait()
        workers.append(start_worker(settings, folder / "worker.log"))

    async def redeclare(**changes: Any) -> None:
        for profile in ("paper", "live"):
            await clients.send("routers", profile, declaration(profile, **changes))

    at = {
        requests // 4: lambda: redeclare(budget=2e-4, without=("large",)),
        requests // 2: kill,
        3 * requests // 4: redeclare,
    }
    routers = {profile: declaration(profile, without=("large",)) for profile in ("paper", "live")}
    try:
        asyncio.run(asyncio.wait_for(clients.run(routers, at=at), 240))
    finally:
        for worker in workers:
            if worker.poll() is None:
                worker.send_signal(signal.SIGTERM)
                worker.wait(30)
