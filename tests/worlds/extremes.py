"""Draw extreme declarations, bills and requests that the contract accepts, and play them to workers
in memory: the workers must live, and what they publish must parse by the strict schemas.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from router_state.instants import FOREVER
from schemas.alerts import AlertRaised
from schemas.event import Event, MalformedEvent, decode
from schemas.lambdas import LambdaUpdated
from schemas.leases import LeaseNoted
from schemas.routes import RouteDecided
from tests.granting_world import World
from tests.memory_worker import Left

USD = (0.0, 5e-324, 1e-320, 1e-300, 1e-13, 1e-7, 0.01, 1.0, 999.9, 1e6, 1e9)
POSITIVE = USD[1:]
PRICES = (0.0, 5e-324, 1e-300, 1e-12, 1e-3, 1.0, 1e6)
BILLS = (0.0, 5e-324, 1e-300, 1e-13, 1e-9, 1e-4, 0.5, 1000.0)
STARTS = (
    *("0001-01-01T00:00:00Z", "1969-12-31T23:59:59Z", "2026-11-30T23:59:59.999999Z"),
    *("2027-01-15T08:00:00Z", "9000-06-01T00:00:00Z", "9999-12-31T23:59:58Z"),
)
ENDS = (
    *("2027-01-15T08:00:30Z", "2028-02-29T12:00:00Z", "9000-01-01T00:00:00Z"),
    *("9999-12-31T23:59:59.9999999Z", "9999-12-31T23:59:59Z"),
)
ZONES = ("UTC", "Europe/Berlin", "Asia/Kolkata", "America/Sao_Paulo", "Pacific/Apia")
TOKENS = (0, 1, 68, 10**9)
STEPS = (0.5, 0.5, 1.0, 30.0, 700.0, 90_000.0, -300.0, 40 * 86_400.0)
SCHEMAS: dict[str, type[Event]] = {
    "pb.leases": LeaseNoted,
    "pb.lambda": LambdaUpdated,
    "pb.alerts": AlertRaised,
    "pb.routes": RouteDecided,
}
ROUTERS, POOLS = ("a", "b", "c", "d"), ("p", "q")


class Extremes(World):
    """Four routers and two pools over two workers, of which everything is drawn.

    Attributes:
        broken: promises that were not kept, in words; refused: reasons of dead letters.
    """

    def __init__(self, seed: int) -> None:
        super().__init__(2, seed=seed)
        self.broken: list[str] = []
        self.refused: Counter[str] = Counter()

    def some(self, *values: Any) -> Any:
        """Return one of several values."""
        return values[int(self.rng.integers(len(values)))]

    def maybe(self, share: float = 0.5) -> bool:
        """Tell whether something happens."""
        return bool(self.rng.random() < share)

    def budget(self) -> dict[str, Any]:
        """Draw a budget of a period."""
        budget: dict[str, Any] = {"usd": self.some(*USD), "timezone": self.some(*ZONES)}
        if self.maybe(0.3):
            budget |= {"from": self.some(*STARTS), "until": self.some(*ENDS)}
        else:
            budget["per"] = self.some("hour", "day", "week", "month")
            if self.maybe(0.3):
                budget["starts"] = self.some(*STARTS)
        if self.maybe(0.4):
            budget["carry"] = self.some("all", "none", *USD)
        return budget

    def budgets(self) -> list[dict[str, Any]]:
        """Draw budgets of different periods."""
        return [self.budget() for _ in range(int(self.rng.integers(1, 4)))]

    def declare(self) -> None:
        """Declare something, extreme and mostly accepted."""
        if self.maybe(0.4):
            pool_id = self.some(*POOLS)
            given: dict[str, Any] = {"budget": self.budgets()}
            if pool_id == "q" and self.maybe():
                given["parent"] = "p"
            if self.maybe(0.3):
                given["lease_seconds"] = self.some(5, 86_400)
            if self.maybe(0.3):
                given["members"] = {"a": {"min": self.some(0, 1), "max": 1}, "b": {"max": 0}}
            self.declare_pool(pool_id, **given)
            return
        router_id = self.some(*ROUTERS)
        self.worth[router_id] = 0.5
        body = {"router_id": router_id, "dimensions": 2, "models": self.models(), **self.limits()}
        self.write("routers", router_id, json.dumps(body).encode())

    def models(self) -> dict[str, dict[str, Any]]:
        """Draw a portfolio."""
        found: dict[str, dict[str, Any]] = {}
        for name in ("small", "large", "other")[: int(self.rng.integers(1, 4))]:
            price = self.some(*PRICES)
            found[name] = {"input_price_per_m": price, "output_price_per_m": self.some(*PRICES)}
            if self.maybe(0.3):
                found[name]["cached_input_price_per_m"] = price * self.some(0.0, 0.1, 1.0)
            if self.maybe(0.3):
                found[name]["expected_cost_usd"] = self.some(1e-12, 1e-6, 0.01, 999.0)
        return found

    def limits(self) -> dict[str, Any]:
        """Draw what limits a router."""
        drawn: dict[str, Any] = {
            "pool": self.some(*POOLS),
            "budget": self.budgets() if self.maybe() else self.budget(),
            "budget_usd_per_request": self.some(5e-324, 1e-300, 1e-12, 1e-3, 1000.0),
            "when_spent": self.some("cheapest", "refuse", "overrun"),
            "traffic": {"per_week": self.some(5e-324, 1.0, 1e12)},
            "max_cost_per_request_usd": self.some(5e-324, 1e-6, 1000.0),
            "min_reward": self.some(0.0, 1.0, {"of_best": 1.0}, {"of_best": 0.5}),
            "latency_target": {"p95_ms": self.some(1, 1000, 86_400_000)},
            "caps": {"hour": {"usd": self.some(5e-324, 1.0, 1e9), "mode": "soft"}},
            "seed": self.some(0, 2**53 - 1),
            "error_reward": self.some(0.0, 1.0),
            "gamma": self.some(1.0, 0.9),
        }
        return {name: value for name, value in drawn.items() if self.maybe(0.4)}

    def request(self) -> None:
        """Send a request."""
        self._asked += 1
        router_id = self.some(*ROUTERS)
        x = [self.some(0.0, -1e3, 1e3, 5e-324, float(self.rng.normal())), 1.0]
        body = {"router_id": router_id, "request_id": f"q{self._asked}", "context": x}
        if self.maybe(0.5):
            body["input_tokens"] = self.some(*TOKENS)
        if self.maybe(0.3):
            body["session_id"] = "s"
        self.write("requests", router_id, json.dumps(body).encode())

    def _answer(self, route: dict[str, Any]) -> None:
        ids = {"router_id": route["router_id"], "request_id": route["request_id"]}
        bill: dict[str, Any] = (
            {"cost_usd": self.some(*BILLS)}
            if self.maybe(0.7)
            else {"input_tokens": self.some(*TOKENS), "output_tokens": self.some(*TOKENS)}
        )
        if self.maybe(0.4):
            bill["latency_ms"] = self.some(0, 5e-324, 1.0, 86_400_000)
        if self.maybe(0.2):
            bill["status"] = self.some("error", "timeout", "rate_limited")
        if self.maybe(0.9):
            self.write("costs", ids["router_id"], json.dumps({**ids, **bill}).encode())
        if self.maybe(0.8):
            reward = {"reward": self.some(0.0, 1.0, 5e-324, 0.7), "source": "judge"}
            self.write("rewards", ids["router_id"], json.dumps({**ids, **reward}).encode())

    def _collect(self) -> None:
        for worker in self.workers:
            for topic, _, value, headers in worker.said[self._seen.get(id(worker), 0) :]:
                self._check(topic, value, dict(headers))
        super()._collect()

    def _check(self, topic: str, value: bytes | None, headers: dict[str, bytes]) -> None:
        if topic == "pb.dlq":
            reason = headers["pb.reason"].decode()
            self.refused[reason] += 1
            if reason == "internal_error":
                self.broken.append(f"internal_error: {(value or b'')[:200]!r}")
        elif value is not None and (schema := SCHEMAS.get(topic)) is not None:
            try:
                decode(schema, value)
            except MalformedEvent as error:
                self.broken.append(f"{topic}: {error}: {value[:300]!r}")

    async def play(self, steps: int) -> None:
        """Play, until a worker would have ended."""
        await self.start()
        for _ in range(steps):
            for _ in range(int(self.rng.integers(0, 3))):
                self.declare()
            for _ in range(int(self.rng.integers(0, 12))):
                self.request()
            self.now = min(self.now, FOREVER)
            await self.step(seconds=self.some(*STEPS))
            if self.maybe(0.05):
                await self.kill(int(self.rng.integers(2)))
        for worker in self.workers:
            failed = [one for at in worker.partitions for one in at.aside.failed.items()]
            if aside := {at: sorted(found) for at, found in failed if found}:
                self.broken.append(f"set aside: {aside}")

    async def _deliver(self, topic: str, number: int) -> None:
        try:
            await super()._deliver(topic, number)
        except Left as error:
            self.broken.append(f"a worker ended: {error.__cause__!r}")


async def play(seed: int, *, steps: int = 40) -> list[str]:
    """Play one drawn fleet; return the promises that were broken."""
    fleet = Extremes(seed)
    try:
        await fleet.play(steps)
    except Exception as error:
        fleet.broken.append(f"{type(error).__name__}: {error}")
    return fleet.broken
