"""Drawn worlds, played through the core as a worker does, and hashes of what they leave:

    python -m tests.router_state.record_streams         # writes tests/fixtures/record-streams.json
    python -m tests.router_state.record_streams NAME    # prints a world's stream, to be compared

A world declares a router as on the wire, and applies drawn events to it: requests, bills, rewards,
revisions, repeats, orphans, declarations, grants, sweeps, restarts from the table, exports. What is
published and what the table holds is hashed, so a change of the core that changes any digit of a
decision shows. Only the events of the core and what workers do with them are used.
"""

from __future__ import annotations

import base64
import heapq
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from msgspec import convert

from agents.declaring.configuration import config_of
from agents.publishing.published_values import alert_raised, lambda_value, route_value
from agents.table.recovered import Recovered
from router_state.config import RouterConfig, Vector
from router_state.events import (
    Aged,
    Asked,
    Charged,
    Crowded,
    Event,
    Judged,
    Needs,
    Orphaned,
    Redeclared,
    Verified,
    Waited,
)
from router_state.families.family_reports import MemberPrior, Model
from router_state.families.family_sums import Sums, bytes_of
from router_state.periods.holdings import Granted
from router_state.record import RequestRecord
from router_state.state import portable
from schemas.routers import RouterDeclared

FIXTURE = Path(__file__).parents[1] / "fixtures" / "record-streams.json"
START = 1_760_000_000.0
Document = dict[str, Any]
PRICES = {"small": (0.05, 0.1), "middle": (0.3, 0.9), "large": (2.0, 8.0), "huge": (5.0, 15.0)}
BUDGET = 0.0012


def _models(**extra: Document) -> Document:
    return {
        name: {"input_price_per_m": i, "output_price_per_m": o, **extra.get(name, {})}
        for name, (i, o) in PRICES.items()
    }


def _prior(d: int) -> Document:
    A = 40.0 * np.eye(d)
    A[-1, -1] = 60.0
    b = np.zeros(d)
    b[0], b[-1] = 3.0, 45.0
    return {"prior": {"A": A.tolist(), "b": b.tolist(), "n_eff": 60.0}}


def _cost_prior(d: int) -> Document:
    A = 30.0 * np.eye(d)
    b = np.zeros(d)
    b[-1] = -220.0
    return {"cost_prior": {"A": A.tolist(), "b": b.tolist(), "mean_usd": 0.0008}}


CACHED: Document = {
    "cached_input_price_per_m": 0.02,
    "cache_min_tokens": 16,
    "cache_ttl_seconds": 60,
}
WRITTEN: Document = {
    "cached_input_price_per_m": 0.2,
    "cache_write_price_per_m": 2.5,
    "cache_min_tokens": 16,
}
OFFERS: dict[str, Document] = {
    "small": {"offers": {"context_window": 2000, "json_output": True}},
    "middle": {"offers": {"tools": True, "json_output": True, "regions": ["eu"]}},
    "large": {"offers": {"vision": True, "tools": True, "retention_days": 0}},
}
LONG = [
    {"input_tokens": 800, "input_price_per_m": 4.0, "output_price_per_m": 12.0},
    {"input_tokens": 4000, "input_price_per_m": 5.0, "output_price_per_m": 12.0},
]
MONTH = {"usd": 3.0, "per": "month", "timezone": "Europe/Berlin", "carry": "all"}
DAY = {"usd": 0.25, "per": "day"}
HOUR = {"usd": 0.02, "per": "hour", "carry": 0.01}


@dataclass(frozen=True)
class World:
    """How a world is drawn: its declaration beside the models, and what its clients do. Half of its
    requests have one of the `fields`, as `Asked.fields` has them.
    """

    seed: int
    d: int = 26
    declared: Document = field(default_factory=dict)
    models: Document = field(default_factory=dict)
    requests: int = 300
    gap: float = 3.0
    tokens: bool = False
    sessions: bool = False
    people: int = 8
    runs: bool = False
    fields: tuple[Document, ...] = ()
    attempts: bool = False
    needs: bool = False
    failures: bool = False
    endings: bool = False
    times: bool = False
    drift: bool = False
    pool: bool = False
    judges: bool = False
    family: bool = False
    lag: float = 20.0
    changes: tuple[Callable[[Document], Document], ...] = ()


def _config(document: Document, offset: int) -> RouterConfig:
    declared = RouterDeclared.model_validate_json(json.dumps(document))
    return config_of(declared, offset=offset, references={})


def _cheaper(document: Document) -> Document:
    document["models"]["large"]["output_price_per_m"] = 3.0
    document["models"].pop("huge", None)
    return document


def _back(document: Document) -> Document:
    document["models"]["huge"] = {"input_price_per_m": 5.0, "output_price_per_m": 12.0}
    document["models"]["new"] = {
        "input_price_per_m": 0.2,
        "output_price_per_m": 0.4,
        "prior": {"like": "small", "n_eff": 30.0},
        "onboarding_pulls": 5,
    }
    return document


def _free(document: Document) -> Document:
    document["models"]["small"] |= {"input_price_per_m": 0, "output_price_per_m": 0}
    return document


def _budget(usd: float | None) -> Callable[[Document], Document]:
    def change(document: Document) -> Document:
        document.pop("budget_usd_per_request", None)
        return document if usd is None else document | {"budget_usd_per_request": usd}

    return change


def _with(**fields: Any) -> Callable[[Document], Document]:
    return lambda document: {k: v for k, v in (document | fields).items() if v is not None}


PAPER = {"profile": "paper", "budget_usd_per_request": BUDGET, "seed": 3}
CAPS = {"caps": {"hour": {"usd": 0.05, "mode": "soft"}, "day": {"usd": 0.4, "mode": "hard"}}}
BUDGETED = {"budget_usd_per_request": BUDGET, "seed": 5}
WORLDS: dict[str, World] = {
    "plain": World(1, declared=BUDGETED, changes=(_cheaper, _back)),
    "unpaced": World(2, declared={"seed": 2}, changes=(_budget(BUDGET), _budget(None))),
    "narrow": World(3, d=4, declared=BUDGETED, drift=True, requests=900, gap=1.0),
    "wide": World(4, d=385, declared=BUDGETED, requests=130, changes=(_cheaper,)),
    "paper": World(5, declared=PAPER, changes=(_cheaper, _back)),
    "paper-narrow": World(6, d=4, declared=PAPER | {"epsilon": 0.1}, requests=500),
    "paper-wide": World(7, d=385, declared=PAPER | {"budget_usd_per_request": None}, requests=100),
    "paper-all": World(
        8,
        declared=PAPER | CAPS,
        models=OFFERS,
        needs=True,
        failures=True,
        sessions=True,
        tokens=True,
        changes=(_cheaper,),
    ),
    "priors": World(
        9,
        d=4,
        declared=BUDGETED | {"epsilon": 0.05},
        models={
            "small": _prior(4),
            "middle": _cost_prior(4),
            "large": {"expected_cost_usd": 0.004},
            "huge": {"onboarding_pulls": 8},
        },
        changes=(_back, _free),
    ),
    "caps": World(10, declared=BUDGETED | CAPS, changes=(_with(caps=None), _with(**CAPS))),
    "hard-cap": World(
        11, d=4, declared={"caps": {"hour": {"usd": 0.02, "mode": "hard"}}}, requests=400
    ),
    "periods": World(
        12,
        declared={"budget": [MONTH, DAY], "traffic": {"per_week": 80_000}},
        gap=120.0,
        changes=(_with(budget=[DAY]), _with(when_spent="refuse", budget=[HOUR, DAY])),
    ),
    "floor": World(
        13,
        d=4,
        declared=BUDGETED | {"min_reward": {"of_best": 0.97}, "max_cost_per_request_usd": 0.01},
        requests=600,
        gap=30.0,
        changes=(_with(min_reward=0.6), _with(min_reward=None)),
    ),
    "spent": World(
        14, d=4, declared={"budget": HOUR, "when_spent": "refuse"}, requests=400, gap=20.0
    ),
    "pool": World(15, declared={"pool": "acme", "budget": DAY}, pool=True, gap=60.0),
    "needs": World(16, declared=BUDGETED, models=OFFERS, needs=True, tokens=True),
    "outages": World(
        17, d=4, declared=BUDGETED | {"error_reward": 0.0}, failures=True, requests=700, gap=0.5
    ),
    "runs": World(
        23,
        declared=BUDGETED | {"sessions": {"budget_usd": 0.02, "when_spent": "refuse"}},
        sessions=True,
        runs=True,
        tokens=True,
        failures=True,
        requests=450,
        changes=(_cheaper,),
    ),
    "observe": World(
        28,
        declared=BUDGETED | {"incumbent": {"small": 0.7, "large": 0.3}, "mode": "observe"},
        models=OFFERS,
        needs=True,
        failures=True,
        sessions=True,
        tokens=True,
        requests=450,
        changes=(
            _with(mode="route", share=0.3, by="session", holdout=0.05),
            _cheaper,
            _with(incumbent=None, mode=None, share=None, by=None, holdout=None),
        ),
    ),
    "share": World(
        25,
        d=4,
        declared={
            "budget": [MONTH, DAY],
            "latency_target": {"p95_ms": 1500},
            "epsilon": 0.05,
            "incumbent": "middle",
            "share": 0.5,
            "holdout": 0.1,
        },
        times=True,
        gap=60.0,
        changes=(_with(mode="observe"), _with(mode="route", share=0.9)),
    ),
    "ramp": World(
        27,
        d=4,
        declared={"incumbent": "small", "ramp": [0.4, 0.8], "margin": 0.3, "holdout": 0.1},
        requests=900,
        gap=1.0,
        changes=(_with(margin=0.9), _budget(BUDGET)),
    ),
    "ramp-sessions": World(
        30,
        d=4,
        declared={
            "incumbent": "small",
            "ramp": [0.4, 0.8],
            "margin": 0.6,
            "holdout": 0.1,
            "by": "session",
        },
        sessions=True,
        people=400,
        requests=900,
        gap=1.0,
        changes=(_with(by="request"), _with(by="session")),
    ),
    "paper-share": World(
        26, d=4, declared=PAPER | {"incumbent": "large", "share": 0.5}, changes=(_budget(None),)
    ),
    "attempts": World(
        24,
        declared=BUDGETED
        | {"verifiers": {"tests": {"usd": 0, "exact": True}, "judge": {"usd": 2e-5, "bins": 3}}},
        attempts=True,
        failures=True,
        requests=450,
        changes=(_cheaper, _back, _with(verifiers=None)),
    ),
    "sessions": World(
        18,
        declared=BUDGETED,
        models={"middle": CACHED, "large": WRITTEN},
        sessions=True,
        tokens=True,
        failures=True,
        requests=450,
        changes=(_cheaper, _back),
    ),
    "tail": World(
        19,
        declared=BUDGETED | {"latency_target": {"p95_ms": 1500}},
        times=True,
        failures=True,
        changes=(_with(latency_target={"mean_ms": 700}), _with(latency_target=None)),
    ),
    "first-token": World(
        20,
        d=4,
        declared={"latency_target": {"mean_ms": 300, "of": "first_token"}},
        times=True,
        requests=400,
        changes=(_budget(BUDGET),),
    ),
    "sources": World(
        24,
        d=4,
        declared=BUDGETED | {"sources": {"gold": "human", "judges": ["judge", "judge-v2"]}},
        judges=True,
        failures=True,
        requests=450,
        changes=(
            _cheaper,
            _with(sources={"gold": "human", "judges": ["judge"]}),
            _with(sources=None),
        ),
    ),
    "family": World(
        25,
        declared=BUDGETED | {"family": "acme"},
        family=True,
        drift=True,
        requests=450,
        changes=(_cheaper, _back, _with(family={"name": "acme", "takes": False})),
    ),
    "family-narrow": World(
        26, d=4, declared={"family": "acme"}, family=True, changes=(_free, _with(family=None))
    ),
    "endings": World(
        29,
        d=4,
        declared=BUDGETED,
        models={
            "small": {"retires_at": "2025-10-20", "answers_as": ["tiny*"]},
            "middle": {"variant_of": "large", "params": {"effort": "low", "tags": [1, 2.5, None]}},
            "large": {"price_above": LONG, **CACHED, "cached_input_price_per_m": 0.2},
            "huge": {"retires_at": "2025-12-01", "params": {"tier": "flex"}},
        },
        tokens=True,
        sessions=True,
        failures=True,
        endings=True,
        requests=600,
        gap=1500.0,
        changes=(_cheaper, _back),
    ),
    "labels": World(
        29,
        d=4,
        declared=BUDGETED
        | {
            "sources": {"gold": "human", "judges": ["judge", "judge-v2"]},
            "labels": {"want": 40, "per": "hour"},
            "incumbent": "middle",
            "share": 0.7,
        },
        judges=True,
        failures=True,
        requests=450,
        gap=20.0,
        changes=(_cheaper, _back, _with(labels={"want": 5, "per": "day"}), _with(labels=None)),
    ),
    "calibrated": World(
        25,
        d=4,
        declared=BUDGETED
        | {
            "sources": {
                "gold": "human",
                "judges": ["judge-v2", "judge"],
                "calibrate": {"judge-v2": "on", "judge": "offset"},
            }
        },
        judges=True,
        failures=True,
        drift=True,
        requests=450,
        changes=(
            _cheaper,
            _with(sources={"gold": "human", "judges": ["judge-v2", "judge"]}),
            _with(
                sources={
                    "gold": "human",
                    "judges": ["judge-v2"],
                    "calibrate": {"judge-v2": "on"},
                }
            ),
        ),
    ),
    "seconds": World(
        21, d=4, declared=BUDGETED | {"usd_per_second": 0.002}, times=True, tokens=True
    ),
    "all": World(
        22,
        d=26,
        declared=BUDGETED
        | CAPS
        | {
            "budget": [MONTH, DAY],
            "min_reward": {"of_best": 0.9},
            "latency_target": {"p95_ms": 2000},
            "error_reward": 0.1,
            "epsilon": 0.02,
        },
        models={"middle": CACHED | OFFERS["middle"], "large": WRITTEN, "small": OFFERS["small"]},
        tokens=True,
        sessions=True,
        needs=True,
        failures=True,
        times=True,
        drift=True,
        requests=450,
        gap=20.0,
        changes=(_cheaper, _back, _with(caps=None), _free),
    ),
}


class Table:
    """A partition's records in memory."""

    number = 0

    def __init__(self) -> None:
        self.records: dict[bytes, bytes] = {}

    def get(self, key: bytes) -> bytes | None:
        return self.records.get(key)

    def put(self, key: bytes, value: bytes) -> None:
        self.records[key] = value

    def delete(self, key: bytes) -> None:
        self.records.pop(key, None)

    def set_all(self, values: dict[bytes, bytes | None]) -> None:
        for key, value in values.items():
            if value is None:
                self.delete(key)
            else:
                self.put(key, value)


class Played:
    """One world as it is played; `lines` are pairs of what is said and what it is about."""

    def __init__(self, name: str, world: World | None = None) -> None:
        self.world, self.router = world or WORLDS[name], f"acme.{name}"
        self.random = Random(self.world.seed)
        self.numbers = np.random.default_rng(self.world.seed)
        self.table = Table()
        self.open()
        self.now, self.offset, self.asked, self.granted = START, 0, 0, 0
        self.contexts: dict[str, Vector] = {}
        self.document: Document = {
            "router_id": self.router,
            "models": _models(**self.world.models),
            "dimensions": self.world.d,
            **{name: one for name, one in self.world.declared.items() if one is not None},
        }
        self.born = self.offset
        self.due: list[tuple[float, int, Event]] = []
        self.past: list[Event] = []
        self.lines: list[tuple[str, bytes]] = []

    def play(self) -> Iterator[tuple[str, bytes]]:
        """Yield what the world leaves."""
        self.state.routers.start(self.router, self.config())
        changes = list(self.world.changes)
        every = self.world.requests // (len(changes) + 1)
        for number in range(self.world.requests):
            self.now += self.random.expovariate(1.0 / self.world.gap)
            if changes and number and number % every == 0:
                self.document = changes.pop(0)(self.document)
                self.apply(Redeclared(self.config()))
            while self.due and self.due[0][0] <= self.now:
                self.apply(heapq.heappop(self.due)[2])
            if self.world.pool and number % 20 == 5:
                self.apply(self.grant())
            if self.world.family and number % 25 == 5:
                self.apply(self.kin())
            self.ask(number)
            self.sweep(number)
            yield from self.take()
        while self.due:
            self.now, _, event = heapq.heappop(self.due)
            self.apply(event)
        self.write()
        yield from self.take()

    def open(self) -> None:
        """Begin with what the table has."""
        table: Any = self.table
        self.state = Recovered(table)

    def config(self) -> RouterConfig:
        """Return the declaration in force, as the core has it."""
        self.offset += 1
        return _config(self.document, self.offset)

    def take(self) -> list[tuple[str, bytes]]:
        """Return what was said since the last call."""
        taken, self.lines = self.lines, []
        return taken

    def apply(self, event: Event) -> Any:
        """Apply an event as a worker does, and say what followed."""
        changes = self.state.routers.apply(self.router, event, now=self.now)
        said = f"{type(event).__name__} {changes.outcome.value}"
        if changes.refusal is not None:
            said += f" {changes.refusal.reason}: {changes.refusal}"
        self.lines.append(("decisions", said.encode()))
        self.lines += [
            ("alerts", alert_raised(self.router, alert).model_dump_json().encode())
            for alert in changes.alerts
        ]
        if not isinstance(event, Redeclared):
            self.past.append(event)
        return changes

    def ask(self, number: int) -> None:
        """Send a request; once in a while one again."""
        engine = self.state.routers.engine(self.router)
        assert engine is not None
        again = self.random.random() < 0.02 and number > 0
        request_id = f"r{self.random.randrange(number) if again else number}"
        event = self.request(request_id)
        changes = self.apply(event)
        record = changes.decision
        if record is None:
            return
        since = engine.state.since.led_to(record.seq)
        value = route_value(self.router, request_id, record, repeat=again, since=since)
        self.lines.append(("decisions", value))
        if not again:
            self.follow(request_id, record.model, event)
            if self.world.attempts:
                self.attempt(request_id, record)

    def request(self, request_id: str) -> Asked:
        """Draw a request."""
        world, draw = self.world, self.random.random
        x = np.append(self.numbers.normal(size=world.d - 1) / np.sqrt(world.d - 1.0), 1.0)
        self.contexts[request_id] = x
        allowed, most, needs, session = None, None, None, None
        if draw() < 0.06:
            allowed = frozenset(self.random.sample([*PRICES, "nowhere"], 2))
        if draw() < 0.04:
            most = self.random.choice([1e-5, 1e-4, 1e-3])
        if world.needs and draw() < 0.5:
            needs = Needs(
                vision=draw() < 0.2,
                tools=draw() < 0.3,
                json_output=draw() < 0.2,
                region="eu" if draw() < 0.1 else None,
                max_retention_days=30.0 if draw() < 0.1 else None,
            )
        tokens = int(200 * self.random.lognormvariate(1.0, 1.0)) if world.tokens else None
        if world.sessions and draw() < 0.8:
            session = f"s{self.random.randrange(world.people)}"
            tokens = None if tokens is None else 300 + self.asked * 5
        self.asked += 1
        return Asked(
            request_id,
            x,
            offset=self.asked,
            allowed_models=allowed,
            max_price_per_1k=most,
            input_tokens=tokens if draw() < 0.9 else None,
            contained=(self.asked // 2, self.asked // 3),
            needs=needs,
            session_id=session,
            fields=self.said(session),
        )

    def said(self, session: str | None) -> dict[str, Any] | None:
        """Draw what a request says of capabilities."""
        world, draw = self.world, self.random.random
        if world.fields and draw() < 0.5:
            return self.random.choice(world.fields)
        if world.attempts and draw() < 0.3:
            return {"attempts": ["tests"] if draw() < 0.5 else []}
        return {"runs": draw() / 20.0} if world.runs and session and draw() < 0.2 else None

    def follow(self, request_id: str, model: str, asked: Asked) -> None:
        """Draw the bills and rewards of a request, to come later."""
        world, draw, later = self.world, self.random.random, self.later
        x = self.contexts[request_id]
        called = self.random.choice(list(PRICES)) if draw() < 0.03 else None
        price_in, price_out = PRICES.get(called or model, (0.2, 0.4))
        tokens = asked.input_tokens or int(400 * self.random.lognormvariate(0.5, 0.6))
        tokens = int(tokens * (0.8 + 0.4 * draw()))
        output = int(150 * self.random.lognormvariate(0.5 + 0.3 * float(x[0]), 0.5))
        usd = (tokens * price_in + output * price_out) / 1e6
        said: dict[str, Any] = {"model": called, "x": x}
        if world.times and draw() < 0.9:
            slow = {"small": 0.4, "middle": 0.7, "large": 1.4}.get(called or model, 0.9)
            said["latency"] = slow * self.random.lognormvariate(0.0, 0.4)
            said["first_token"] = 0.3 * said["latency"]
        if world.sessions and draw() < 0.6:
            said["cached"] = int(tokens * draw())
        if world.endings and draw() < 0.3:
            said["answered_by"] = self.random.choice([model, f"{model}-2026-01-01", "tiny-2", "x"])
        if world.endings and draw() < 0.005:
            later(Charged(request_id, 0.0, status="gone", **said))
            return
        failing = ("small", "middle", "large")[self.asked // 200 % 3]
        down = world.failures and model == failing and self.asked % 200 < 60
        if world.failures and draw() < (0.9 if down else 0.04):
            status = self.random.choice(["error", "timeout", "rate_limited", "cancelled"])
            rest = 30.0 if status == "rate_limited" and draw() < 0.5 else None
            failed = said | {"status": status, "retry_after": rest}
            later(Charged(request_id, 0.2 * usd * draw(), revision=0, **failed))
            if draw() < 0.5:
                return
        if draw() < 0.93:
            if draw() < 0.3:
                bill = Charged(request_id, None, (tokens, output), revision=1, **said)
            else:
                bill = Charged(request_id, usd, revision=1, **said)
            later(bill)
            if draw() < 0.05:
                later(Charged(request_id, 1.3 * usd, revision=2, **said), 2.0)
        self.judge(request_id, model, called, asked)
        if draw() < 0.01:
            later(Charged(f"unknown-{request_id}", usd))
            later(Orphaned(usd), 4.0)

    def attempt(self, request_id: str, record: RequestRecord) -> None:
        """Draw the verdicts on a request's answers, and the bill of its second call."""
        draw, x = self.random.random, self.contexts[request_id]
        verdict = float(draw() < 0.6)
        name = "judge" if record.plan is None else record.plan.steps[0].verify or "tests"
        if draw() < 0.9:
            self.later(Verified(request_id, name, verdict, x=x))
        if draw() < 0.05:
            self.later(Verified(request_id, name, 1.0 - verdict, revision=1, x=x), 2.0)
        if record.plan is not None and len(record.plan.steps) > 1 and not verdict:
            self.later(Charged(request_id, 0.002 * draw(), attempt=1, x=x), 1.5)
            if draw() < 0.5:
                self.later(Verified(request_id, name, draw(), 1, x=x), 2.0)

    def judge(self, request_id: str, model: str, called: str | None, asked: Asked) -> None:
        """Draw the rewards of a request, to come later."""
        world, draw, later = self.world, self.random.random, self.later
        x = self.contexts[request_id]
        reward = 0.5 + 0.08 * list({**PRICES, model: 0}).index(called or model)
        if world.drift and self.asked > 0.6 * world.requests and model != "small":
            reward -= 0.4
        reward = min(max(reward + 0.2 * float(x[0]) + 0.1 * self.random.gauss(0, 1), 0.0), 1.0)
        if draw() < 0.85:
            later(Judged(request_id, reward, model=called, x=x), 1.5)
        if draw() < 0.05:
            later(Judged(request_id, draw(), source="person", rank=2, x=x), 3.0)
        if world.judges:
            for source in ("judge-v2", "human:a", "human:b"):
                if draw() < 0.6:
                    later(Judged(request_id, draw(), source=source, model=called, x=x), 2.0)
            if draw() < 0.3:
                source = ("judge", "judge-v2", "human:a")[int(3 * draw())]
                later(Judged(request_id, None, source=source, revision=1, x=x), 2.0)
        if asked.session_id is not None and draw() < 0.1:
            known = dict(list(self.contexts.items())[-60:])
            name = "\x1f" + asked.session_id
            later(Judged(name, draw(), revision=self.asked, contexts=known), 2.0)

    def later(self, event: Charged | Judged | Verified | Orphaned, times: float = 1.0) -> None:
        """Let an event come after a drawn time."""
        at = self.now + times * self.random.expovariate(1.0 / self.world.lag)
        heapq.heappush(self.due, (at, len(self.past) + len(self.due) * 100_000, event))

    def grant(self) -> Granted:
        """Return what a pool grants."""
        self.granted += 1
        line = {
            "line": "acme/day",
            "per": "day",
            "zone": "UTC",
            "starts": None,
            "ends": None,
            "begin": START // 86_400 * 86_400,
            "end": START // 86_400 * 86_400 + 86_400,
            "usd": 0.02 * self.granted,
            "until": self.now + 900.0,
        }
        grant = {
            "pool_id": "acme",
            "born": 1,
            "n": self.granted,
            "lines": [line],
            "offset": self.granted,
        }
        return convert(grant, Granted)

    def kin(self) -> MemberPrior:
        """Return what a family tells."""
        self.granted += 1
        d, models = self.world.d, {}
        for name in self.random.sample([*PRICES, "new"], 3):
            X = np.column_stack([self.numbers.normal(size=(30, d - 1)), np.ones(30)])
            rewards, bills = self.numbers.random(30), self.numbers.normal(size=30) - 1.0
            sums = [bytes_of(Sums(X.T @ X, X.T @ y)) for y in (rewards, bills)]
            models[name] = Model(sums[0], sums[1])
        aside = self.granted % 3 == 0
        return MemberPrior(
            "acme", 1, self.granted, models, members=3, aside=aside, offset=self.granted
        )

    def sweep(self, number: int) -> None:
        """Do what a worker does by itself, and start it again."""
        if number % 40 == 39:
            self.apply(Waited())
        if number % 90 == 89:
            self.apply(Aged(self.now - 120.0 * self.world.gap, limit=40))
        if number % 110 == 109:
            self.apply(Crowded(60, limit=25))
        if number % 10 == 9:
            self.write()
        if number % 70 == 69:
            self.write()
            self.open()
            for event in self.past[-12:]:  # read again after a crash
                self.state.routers.apply(self.router, event, now=self.now)
        if number == self.world.requests * 3 // 4:
            self.export()

    def export(self) -> None:
        """Go on as another router that starts from this one's export."""
        self.write()
        engine = self.state.routers.engine(self.router)
        assert engine is not None
        packed = portable.pack(engine.state, {"router_id": self.router})
        self.lines.append(("pieces", packed))
        self.router, self.due = self.router + ".copy", []
        snapshot = base64.b64encode(packed).decode()
        started = self.document | {"router_id": self.router, "snapshot": snapshot}
        self.offset = 1
        self.state.routers.start(self.router, _config(started, self.offset))
        self.past = []

    def write(self) -> None:
        """Put what has changed into the table, and say what is there and published."""
        self.state.write()
        engine = self.state.routers.engine(self.router)
        assert engine is not None
        for key in sorted(self.table.records):
            held = self.table.records[key]
            self.lines.append(("pieces", key + b" " + blake2b(held, digest_size=8).digest()))
        observed_at = datetime.fromtimestamp(self.now, UTC)
        value = lambda_value(
            self.router, engine.state, observed_at=observed_at, applied={}, unbooked=None
        )
        self.lines.append(("lambda", value))


def hashes(played: Played) -> dict[str, str]:
    """Play a world, and return a digest of each kind of its lines."""
    found = {kind: blake2b(digest_size=16) for kind in ("decisions", "alerts", "lambda", "pieces")}
    for kind, line in played.play():
        found[kind].update(line + b"\n")
    return {kind: digest.hexdigest() for kind, digest in found.items()}


def main() -> None:
    """Write the fixture, or print a world's stream."""
    if len(sys.argv) > 1:
        for kind, line in Played(sys.argv[1]).play():
            print(kind, line.decode(errors="backslashreplace"))
        return
    found = {name: hashes(Played(name)) for name in WORLDS}
    FIXTURE.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
