"""A steady load as clients make it: bills and labels later, some of everything twice, out of order,
missing or malformed.
"""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from itertools import cycle
from typing import Any

import numpy as np

from tests.chaos.watch import WatchedService
from tests.integration.service import MODELS, cost, request, reward, router
from tests.malformed import malformed

BILLS_LATER, LABELS_LATER = 30, 100
SESSIONS = 0.5
"""Share of requests that belong to a session and say how many tokens they have."""
DUPLICATES, OUT_OF_ORDER, MISSING, POISON = 0.05, 0.05, 0.01, 0.05
LEASE_SECONDS = 86_400
"""Leases outlast a round: one that ends is given back by the clock, which no event tells."""


def period(usd: float) -> dict[str, Any]:
    """Return a budget of a period that neither begins nor ends during a round."""
    now = datetime.now(UTC)
    begin, end = now - timedelta(hours=1), now + timedelta(days=30)
    return {"usd": usd, "from": begin.isoformat(), "until": end.isoformat()}


def kinds(pool: str) -> tuple[dict[str, Any], ...]:
    """Return what is declared of one router after the other: both profiles, each kind of budget."""
    return (
        {},
        {"profile": "paper"},
        {"budget": period(500.0), "budget_usd_per_request": None},
        {"pool": pool, "budget_usd_per_request": None},
    )


class Load:
    """Sends until it is told to stop, and knows what must come of it.

    Args:
        burst: requests that are sent at once, with as long a pause after them.

    Attributes:
        declared: what is declared of each router, beside its models.
        asked: request ids by router; paid, judged: those that were sent a bill, a reward.
        poisoned: malformed events sent; number: requests sent; undelivered: why Kafka did not take
            an event.
    """

    def __init__(
        self,
        service: WatchedService,
        *,
        routers: int,
        per_second: float,
        seed: int,
        burst: int = 1,
        name: str = "home",
    ) -> None:
        self._service = service
        self._rng = np.random.default_rng(seed)
        self._pause, self._burst = 1.0 / per_second, burst
        self._later: list[tuple[int, str, dict[str, Any]]] = []
        self._poison = [bad for bad in malformed("chaos") if bad.topic != "routers"]
        self.homes = [f"{name}-{number}" for number in range(routers)]
        self._pool = f"{name}-pool"
        self.declared = dict(zip(self.homes, cycle(kinds(self._pool)), strict=False))
        self.asked: defaultdict[str, set[str]] = defaultdict(set)
        self.paid: defaultdict[str, set[str]] = defaultdict(set)
        self.judged: defaultdict[str, set[str]] = defaultdict(set)
        self.poisoned = 0
        self.sent = 0
        self.undelivered: list[BaseException] = []
        self.number = 0
        self._stopping = False

    async def declare(self) -> None:
        """Declare a pool and all routers: of both profiles, with each kind of budget."""
        pool = {"pool_id": self._pool, "budget": period(2000.0), "lease_seconds": LEASE_SECONDS}
        await self._service.send("pools", pool)
        models = {
            name: model | {"cached_input_price_per_m": 0.1 * model["input_price_per_m"]}
            for name, model in MODELS.items()
        }
        for home, kind in self.declared.items():
            await self._service.send("routers", router(home, **{"models": models} | kind))

    @property
    def members(self) -> list[str]:
        """The routers that share the pool."""
        return [home for home, kind in self.declared.items() if "pool" in kind]

    async def run(self) -> None:
        """Send at a steady pace; what could not be sent for a while, as a broker is away, is sent
        then.
        """
        started = time.monotonic()
        while not self._stopping:
            for _ in range(self._burst):
                await self._one_more()
            await asyncio.sleep(max(0.0, started + self.number * self._pause - time.monotonic()))
        for _, topic, event in sorted(self._later, key=lambda item: item[0]):
            await self._post(topic, event)
        await self._service.producer.flush()

    def stop(self) -> None:
        """Let `run` send what is still owed, and end."""
        self._stopping = True

    async def _one_more(self) -> None:
        number, rng = self.number, self._rng
        self.number += 1
        home = self.homes[int(rng.integers(len(self.homes)))]
        request_id = f"{home}-{number}"
        self._service.asks(home, request_id)
        talk: dict[str, Any] = {}
        if rng.random() < SESSIONS:
            talk = {"session_id": f"s-{number % 40}", "input_tokens": 1024 + 8 * (number % 400)}
        await self._post("requests", request(home, request_id, seed=number, **talk))
        self.asked[home].add(request_id)
        if rng.random() >= MISSING:
            self._owe(BILLS_LATER, "costs", cost(home, request_id, float(rng.lognormal(-8, 1))))
            self.paid[home].add(request_id)
        if rng.random() >= MISSING:
            self._owe(
                LABELS_LATER, "rewards", reward(home, request_id, round(float(rng.random()), 3))
            )
            self.judged[home].add(request_id)
        if rng.random() < POISON:
            bad = self._poison[int(rng.integers(len(self._poison)))]
            key = bad.key if bad.key is not None else home.encode()
            self._expect(await self._service.post(bad.topic, bad.value, key=key))
            self.poisoned += 1
        due = [item for item in self._later if item[0] <= number]
        self._later = [item for item in self._later if item[0] > number]
        for _, topic, event in due:
            await self._post(topic, event)

    def _owe(self, later: int, topic: str, event: dict[str, Any]) -> None:
        early = self._rng.random() < OUT_OF_ORDER
        self._later.append(
            (
                self.number + (0 if early else int(self._rng.integers(later // 2, 2 * later))),
                topic,
                event,
            )
        )

    async def _post(self, topic: str, event: dict[str, Any]) -> None:
        for _ in range(2 if self._rng.random() < DUPLICATES else 1):
            self._expect(await self._service.post(topic, event))
            self.sent += 1

    def _expect(self, delivery: Any) -> None:
        def ended(future: Any) -> None:
            if (error := future.exception()) is not None:
                self.undelivered.append(error)

        delivery.add_done_callback(ended)
