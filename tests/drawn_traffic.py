"""Draw a router's declaration from the optional fields of the contract, its requests, and what
comes back of them: bills and verdicts of attempts, labels, withdrawals; late, repeated, revised.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from random import Random
from typing import Any

from tests.audit_world import DIMENSIONS, MODELS

Event = dict[str, Any]
Later = tuple[float, str, Event]
"""Seconds until an event is sent, its topic, and the event."""
LATE = (0.0, 0.0, 0.3, 1.0, 3.0, 9.0)
PEOPLE = ("human", "human:anna", "human:ben", "expert", "expert:x")
JUDGES = ("judge-a", "judge-b", "judge-c", "user")
PRICED: Mapping[str, tuple[Event, ...]] = {
    "budget_usd_per_request": ({}, {"budget_usd_per_request": 1e-5}),
    "budget": ({"budget": {"usd": 0.01, "per": "day"}}, {"budget": {"usd": 1.0, "per": "hour"}}),
    "when_spent": ({"when_spent": "refuse"}, {"when_spent": "overrun"}),
    "max_cost_per_request_usd": ({"max_cost_per_request_usd": 0.01},),
    "min_reward": ({"min_reward": 0.5}, {"min_reward": {"of_best": 0.95}}),
    "caps": ({"caps": {"day": {"usd": 0.01, "mode": "hard"}}},),
    "sessions": ({"sessions": {"budget_usd": 0.01, "when_spent": "refuse"}},),
    "pool": ({"pool": "pool"},),
}
"""Limits of money, by what they are about."""
LIVE: Mapping[str, tuple[Event, ...]] = {
    "latency": ({"latency_target": {"mean_ms": 300}}, {"usd_per_second": 1e-4}),
    "family": ({"family": "fam"}, {"family": {"name": "fam", "gives": False}}),
    "verifiers": (
        {"verifiers": {"tests": {"usd": 1e-4, "exact": True}}},
        {"verifiers": {"tests": {"usd": 0}, "judge": {"usd": 1e-4, "bins": 3}}, "max_attempts": 3},
        {"verifiers": {"judge": {"usd": 1e-5}}, "max_attempts": 1},
    ),
    "sources": tuple(
        {"sources": {"gold": gold, "judges": ["judge-a", "judge-b"], "calibrate": {"judge-a": how}}}
        for gold, how in (("human", "on"), ("human", "offset"), ("expert", "on"))
    ),
    "labels": ({"labels": {"want": 20, "per": "hour"}},),
    "incumbent": ({"incumbent": "llama", "holdout": 0.1}, {"incumbent": "llama", "share": 0.5}),
    "error_reward": ({"error_reward": 0.0},),
    "epsilon": ({"epsilon": 0.1},),
}
"""What else a router may declare, by what it is about."""
OF_MODELS: tuple[Event, ...] = (
    {"cached_input_price_per_m": 0.01, "cache_ttl_seconds": 5.0, "cache_min_tokens": 0},
    {"offers": {"context_window": 1000, "tools": True}},
    {"retires_at": "2020-01-01"},
    {"expected_cost_usd": 0.01},
    {"answers_as": ["*"]},
)


class Drawn:
    """One router's declarations and traffic, all drawn from a seed.

    Attributes:
        declared: its last declaration.
    """

    def __init__(self, router_id: str, seed: int) -> None:
        self.draw, self.router_id = Random(seed), router_id
        self.declared = self.declare()

    def maybe(self, share: float) -> bool:
        """Tell whether something happens."""
        return self.draw.random() < share

    def some(self, *values: Any) -> Any:
        """Return one of several values."""
        return self.draw.choice(values)

    def declare(self) -> Event:
        """Draw a declaration, the first one or another one."""
        names = list(MODELS)[: self.some(2, 3, 3)]
        models = {name: dict(MODELS[name]) for name in names}
        for one in models.values():
            for more in OF_MODELS:
                one |= more if self.maybe(0.15) else {}
        found: Event = {"models": models, "dimensions": DIMENSIONS, "budget_usd_per_request": 1e-3}
        for share, groups in ((0.2, PRICED), (0.4, LIVE)):
            for options in groups.values():
                found |= self.some(*options) if self.maybe(share) else {}
        self.declared = {"router_id": self.router_id, **found}
        return self.declared

    def request(self, number: int, before: Iterable[str]) -> Event:
        """Draw a request, which may follow one of those before."""
        found: Event = {"router_id": self.router_id, "request_id": f"{self.router_id}-{number}"}
        found["context"] = [*(self.draw.gauss(0, 1) for _ in range(DIMENSIONS - 1)), 1.0]
        if self.maybe(0.4):
            found["session_id"] = f"s-{number // 10}"
        if self.maybe(0.3):
            found["input_tokens"] = self.some(0, 100, 2000)
        if self.maybe(0.1):
            found |= self.some({"allowed_models": ["llama"]}, {"needs": {"tools": True}})
        if self.maybe(0.2):
            found["verifiers"] = self.some([], ["tests"], ["judge", "unknown"])
        if self.maybe(0.2):
            found["follows"] = self.some(*[*before][-5:], "never")
            found |= self.some({}, {"signals": self.some({"repeats": 4}, {"severity": 1})})
        return found

    def feedback(self, route: Event) -> Iterator[Later]:
        """Draw what comes of a decision."""
        of = {"router_id": self.router_id, "request_id": route["request_id"]}
        plan = route.get("plan") or [{}]
        calls = 1 if self.maybe(0.5) else len(plan)
        for attempt in range(calls):
            yield from self._bills({**of, "attempt": attempt})
            if self.maybe(0.6):
                verifier = plan[attempt].get("verify") or self.some("tests", "judge")
                said = {**of, "attempt": attempt, "verifier": verifier}
                yield from self._said({**said, "verdict": self.some(0, 0.4, 1)})
        if self.maybe(0.05):
            yield self.some(*LATE), "costs", {**of, "attempt": self.some(1, 2, 9), "cost_usd": 0.1}
        for _ in range(self.some(0, 1, 2, 3)):
            said = {**of, "source": self.some(*PEOPLE, *JUDGES), "reward": self.some(0, 0.5, 1)}
            if "session_id" in route and self.maybe(0.1):
                del said["request_id"]
                said["session_id"] = route["session_id"]
            elif self.maybe(0.2):
                said["attempt"] = self.some(0, calls - 1)
            yield from self._said(said)
            if self.maybe(0.2):
                yield self.some(*LATE), "rewards", {**said, "reward": None, "revision": 2}

    def _bills(self, of: Event) -> Iterator[Later]:
        bill: Event = {**of, "cost_usd": self.some(0.0, 1e-5, 1e-3)}
        if self.maybe(0.2):
            bill = {**of, "input_tokens": 50, "output_tokens": self.some(0, 400)}
        if self.maybe(0.5):
            bill["latency_ms"] = self.some(0, 900)
        if self.maybe(0.15):
            bill["status"] = self.some("error", "timeout", "rate_limited", "cancelled", "gone")
        if self.maybe(0.1):
            bill |= self.some({"model": "llama"}, {"answered_by": "another"})
        if self.maybe(0.9):
            yield self.some(*LATE), "costs", bill
        for revision in (0, 1):
            if self.maybe(0.15):
                again = {"cost_usd": self.some(0.0, 2e-3)} if revision else {}
                yield self.some(*LATE), "costs", {**bill, **again, "revision": revision}

    def _said(self, said: Event) -> Iterator[Later]:
        yield self.some(*LATE), "rewards", said
        if self.maybe(0.2):
            yield self.some(*LATE), "rewards", {**said, "revision": self.some(0, 1)}
