"""Pools over workers in memory: what is written is read by whoever owns the partition, at once,
late, or twice.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from agents.partition.partition import Partition
from router_state.engine import Engine
from router_state.periods.holdings import UNKNOWN
from router_state.pools.pool import Pool
from streams.partitioner import partition_of
from streams.settings import Settings
from tests.memory_worker import Left, MemoryWorker
from tests.router_state.periods.ledgers import kept

PARTITIONS = 6
SETTINGS = Settings(prefix="pb.", app_id="pools", partitions=PARTITIONS)
MODELS = {
    "small": {"input_price_per_m": 0.1, "output_price_per_m": 0.1, "expected_cost_usd": 0.001},
    "large": {"input_price_per_m": 9.0, "output_price_per_m": 9.0, "expected_cost_usd": 0.02},
}
PRICES = {"small": 0.001, "large": 0.02}
START = 1_800_000_000.0


class World:
    """Workers that share partitions, and the topics between them.

    Attributes:
        late: rounds that a record of `pb.leases` waits; twice: whether each of them comes twice.
        validates: whether workers check the invariants of what they change.
        worth: by router, what the large model's answers earn beyond the small one's.
    """

    validates = True

    def __init__(self, workers: int = 3, *, seed: int = 0, surprise: float = 0.0) -> None:
        self.rng = np.random.default_rng(seed)
        self.now, self.surprise = START, surprise
        self.late, self.twice = 0, False
        self.worth: dict[str, float] = {}
        self.logs: dict[tuple[str, int], list[Any]] = defaultdict(list)
        self.read: dict[tuple[str, int], int] = defaultdict(int)
        self.round = 0
        self.spent: dict[str, float] = defaultdict(float)
        self._due: list[tuple[str, str, float]] = []
        self._asked = 0
        self._seen: dict[int, int] = {}
        self.workers = [
            MemoryWorker(SETTINGS, range(k, PARTITIONS, workers), validates=self.validates)
            for k in range(workers)
        ]

    async def start(self) -> World:
        """Let all workers begin."""
        for worker in self.workers:
            worker.clock.now = self.now
            await worker.start()
        return self

    def owner(self, key: str) -> MemoryWorker:
        """Return the worker of a router or a pool."""
        return self.workers[partition_of(key, PARTITIONS) % len(self.workers)]

    def partition(self, key: str) -> Partition:
        """Return the partition of a router or a pool."""
        return self.owner(key)[partition_of(key, PARTITIONS)]

    def engine(self, router_id: str) -> Engine:
        """Return a router."""
        engine = self.partition(router_id).routers.engine(router_id)
        assert engine is not None
        return engine

    def pool(self, pool_id: str) -> Pool:
        """Return a pool."""
        pool = self.partition(pool_id).pools.get(pool_id)
        assert pool is not None
        return pool

    def write(
        self,
        topic: str,
        key: str,
        value: bytes | None,
        headers: Sequence[tuple[str, bytes]] = (),
    ) -> None:
        """Write a record."""
        number = partition_of(key, PARTITIONS)
        log = self.logs[topic, number]
        record = {
            "topic": f"pb.{topic}",
            "partition": number,
            "offset": len(log),
            "key": key.encode(),
            "value": value,
            "headers": list(headers),
            "timestamp": self.now * 1000.0,
            "since": self.round,
        }
        log.append(SimpleNamespace(**record))

    def declare_pool(self, pool_id: str, **fields: Any) -> None:
        """Declare a pool."""
        self.write("pools", pool_id, json.dumps({"pool_id": pool_id, **fields}).encode())

    def declare_router(self, router_id: str, pool: str | None, *, worth: float = 0.5) -> None:
        """Declare a router."""
        self.worth[router_id] = worth
        given: dict[str, Any] = {"router_id": router_id, "models": MODELS, "dimensions": 2}
        self.write(
            "routers", router_id, json.dumps(given | ({"pool": pool} if pool else {})).encode()
        )

    def ask(self, router_id: str) -> None:
        """Send a request."""
        self._asked += 1
        context = [float(self.rng.normal()), 1.0]
        body = {"router_id": router_id, "request_id": f"q{self._asked}", "context": context}
        self.write("requests", router_id, json.dumps(body).encode())

    async def step(self, seconds: float = 0.5) -> None:
        """Let time pass: everybody reads what has come, and does what is due."""
        self.now += seconds
        self.round += 1
        for worker in self.workers:
            worker.clock.now = self.now
        for topic in ("pools", "routers", "requests", "costs", "rewards", "leases", "kin"):
            for number in range(PARTITIONS):
                await self._deliver(topic, number)
        for worker in self.workers:
            await worker.pass_time()
        self._collect()

    async def _deliver(self, topic: str, number: int) -> None:
        log, at = self.logs[topic, number], self.read[topic, number]
        late = self.late if topic == "leases" else 0
        ready = [record for record in log[at:] if record.since + late < self.round]
        if not ready:
            return
        worker = self.workers[number % len(self.workers)]
        try:
            await worker.take(topic, ready)
        except Left:
            return  # read again by the next owner
        self.read[topic, number] = at + len(ready)

    def _collect(self) -> None:
        for worker in self.workers:
            first = self._seen.get(id(worker), 0)
            self._seen[id(worker)] = len(worker.said)
            for topic, key, value, headers in worker.said[first:]:
                name = (key or b"").decode()
                if topic == "pb.leases":
                    for _ in range(2 if self.twice else 1):
                        self.write("leases", name, value, headers)
                elif topic == "pb.kin":
                    self.write("kin", name, value, headers)
                elif topic == "pb.routes":
                    self._answer(json.loads(value or b""))

    def _answer(self, route: dict[str, Any]) -> None:
        if route["repeat"]:
            return
        router_id, model = route["router_id"], route["model"]
        factor = float(np.exp(self.surprise * self.rng.normal() - 0.5 * self.surprise**2))
        cost = PRICES[model] * factor
        self.spent[router_id] += cost
        ids = {"router_id": router_id, "request_id": route["request_id"]}
        self.write("costs", router_id, json.dumps({**ids, "cost_usd": cost}).encode())
        reward = min(0.4 + (self.worth[router_id] if model == "large" else 0.0), 1.0)
        body = {**ids, "reward": reward, "source": "judge"}
        self.write("rewards", router_id, json.dumps(body).encode())

    async def kill(self, k: int) -> None:
        """End a worker at once, and let another one take over from its changelog."""
        old = self.workers[k]
        self._collect()
        numbers = range(k, PARTITIONS, len(self.workers))
        new = MemoryWorker(SETTINGS, numbers, validates=self.validates)
        new.clock.now = self.now
        old.partitions.lost(frozenset(range(PARTITIONS)))
        await new.start(old)
        new.changelog = [*old.changelog, *new.changelog]
        # What it said is there; where it had read to was not committed.
        for topic, number in self.read:
            if number % len(self.workers) == k:
                self.read[topic, number] = max(self.read[topic, number] - 20, 0)
        self.workers[k] = new

    def granted(self, routers: list[str], line: str) -> float:
        """Return what routers may have been charged at the end of the present period, by what is
        granted to them; what their bills took beyond it does not count."""
        total = 0.0
        for router_id in routers:
            ledger = kept(self.engine(router_id))
            assert ledger is not None and ledger.holdings is not None
            for one in ledger.holdings.lines:
                holding = one.holdings.get(_begin(one, self.now))
                if one.line == line and holding is not None:
                    account = one.at(self.now, seq=0)
                    charged = 0.0 if account is None else account.charged_usd
                    total += holding.usd if self.now < holding.until else min(charged, holding.usd)
        return total

    def unlent(self, router_id: str) -> bool:
        """Tell whether a router waits for its first lease."""
        ledger = kept(self.engine(router_id))
        assert ledger is not None and ledger.holdings is not None
        return ledger.holdings.lines[0].line == UNKNOWN


def _begin(line: Any, now: float) -> float:
    period = line.budget.period(now)
    return -1.0 if period is None else period[0]
