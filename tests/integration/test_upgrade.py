"""A rolling upgrade from an older commit of this repository on a real broker, with events all the
time.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import math
import tarfile
from collections import defaultdict
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agents.table.recovered import Recovered
from router_state.config import ProjectionRef
from router_state.state import invariants
from streams.encoder.projection import Projection
from tests.integration.service import (
    MODELS,
    ROOT,
    RunningService,
    Worker,
    cost,
    request,
    reward,
    router,
    running_service,
)

OLDER = ("c03b342",)
"""Commits whose programs are fixtures, made with `tools/bundle_worker`: a clone need not have them.
It is the last one that writes format 4 of the state."""
MANY = {f"{name}-too": dict(model) for name, model in MODELS.items()}
HOMES: dict[str, dict[str, Any]] = {
    "paper": {"profile": "paper"},
    "live": {},
    "unpaced": {"budget_usd_per_request": None},
    "capped": {"caps": {"hour": {"usd": 0.002, "mode": "soft"}}},
    "newcomers": {
        "models": {name: model | {"onboarding_pulls": 8} for name, model in MODELS.items()}
    },
    "free": {"models": MODELS | {"llama": {"input_price_per_m": 0.0, "output_price_per_m": 0.0}}},
    "alone": {"models": {"llama": MODELS["llama"]}},
    "suspected": {"models": {"llama": MODELS["llama"]}},
    "stopped": {"caps": {"day": {"usd": 0.004, "mode": "hard"}}},
    "changing": {},
}
"""What differs from the usual declaration, by router: each is in another state when another version
takes it over."""
CHANGES: tuple[dict[str, Any], ...] = (
    {"models": {"mistral": MODELS["mistral"], **MANY}},
    {"models": MODELS, "budget_usd_per_request": 1e-3},
    {"models": MODELS | {"gemini": MODELS["llama"]}},
)
"""What `changing` declares in turn: models go and come back, the budget and a price change."""
STEP = 8
"""Requests of each router in each phase."""
SETTLED_AFTER = 5
"""Phases of the older version alone: so much must be known of a model that a drift can be told from
noise."""
UNTIL_SUSPECTED = 8
"""Phases that a drift may take to be found; one or two are usual."""


@pytest.fixture(params=OLDER)
def older(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Unpack the program of an older commit."""
    folder = tmp_path / "older"
    bundle = ROOT / "tests" / "fixtures" / f"worker-{request.param}.tar.xz"
    # Python 3.11 knows filters from its release 3.11.4 on.
    options: dict[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
    with tarfile.open(bundle) as archive:
        archive.extractall(folder, **options)
    return folder


@pytest.fixture
async def service(kafka: str, tmp_path: Path) -> AsyncIterator[RunningService]:
    async with running_service(kafka, tmp_path) as running:
        yield running


class Traffic:
    """Requests, and of the earlier ones bills and rewards, so that every phase settles what another
    version decided.
    """

    def __init__(self, service: RunningService) -> None:
        self.service = service
        self.rng = np.random.default_rng(7)
        self.sent: list[tuple[str, str]] = []
        self.billed: dict[tuple[str, str], float] = {}
        self.changes = itertools.cycle(CHANGES)
        self.worse = False
        self.homes = list(HOMES)

    @property
    def refused(self) -> set[tuple[str, str]]:
        """Requests that met a cap: each has a dead letter, and no bill is sent for it."""
        letters = self.service.dead_letters().values()
        assert {letter.reason for letter, _ in letters} <= {"cap_reached"}
        events = [json.loads(record.value) for _, record in letters]
        return {(event["router_id"], event["request_id"]) for event in events}

    @property
    def decided(self) -> set[tuple[str, str]]:
        return {(route["router_id"], route["request_id"]) for route in self.service.routes()}

    def suspected(self) -> bool:
        """Whether the router whose answers got worse has said so."""
        alerts = [json.loads(record.value) for record in self.service.records["alerts"]]
        return any(
            (alert["router_id"], alert["kind"], alert["signal"]) == ("suspected", "drift", "reward")
            for alert in alerts
            if alert["kind"] == "drift"
        )

    async def phase(self) -> None:
        """Send a phase's events, and wait until each request has its answer."""
        before = [at for at in self.sent if at not in self.billed and at not in self.refused]
        await self.service.post("routers", router("changing", **next(self.changes)))
        for number in range(STEP):
            for home in self.homes:
                request_id = f"{home}-{len(self.sent)}"
                await self.service.post("requests", request(home, request_id, seed=number))
                self.sent.append((home, request_id))
        for home, request_id in before:
            amount = float(self.rng.lognormal(-8, 1))
            await self.service.post("costs", cost(home, request_id, amount))
            await self.service.post("rewards", reward(home, request_id, self.quality(home)))
            self.billed[home, request_id] = amount
        await self.service.producer.flush()
        await self.service.until(
            lambda: self.decided | self.refused >= set(self.sent), "answers or refusals"
        )

    def quality(self, home: str) -> float:
        drawn = float(self.rng.random())
        if home == "suspected":
            drawn = (0.1 if self.worse else 0.9) + drawn / 20.0
        return round(drawn, 3)

    async def settled(self) -> None:
        """Wait until every bill and every reward is in."""
        for home in self.homes:
            mine = sum(at[0] == home for at in self.billed)
            done = {"settled": mine, "rewards_applied": mine}
            await self.service.until(
                lambda h=home, d=done: d.items() <= self.service.lambda_of(h).items(),
                f"the bills of {home}",
            )


async def ends(service: RunningService, worker: Worker) -> None:
    worker.terminate()
    await service.until(lambda: not worker.running, "the end of a worker", poll=False)


async def supervise(service: RunningService, older: Path, workers: list[Worker]) -> None:
    """Start again what has ended by itself, as a supervisor does: an older program takes a batch of
    its own that lands in a rebalance for a hole in its recovery.
    """
    while True:
        for place, worker in enumerate(workers):
            if not worker.running:
                workers[place] = service.worker(source=older)
        await asyncio.sleep(0.2)


async def test_a_worker_of_this_version_takes_over_from_an_older_one(
    service: RunningService, older: Path, tmp_path: Path
) -> None:
    priors = tmp_path / "priors"
    projection = random_projection(priors, "own", dimensions=5)
    traffic = Traffic(service)
    old = [await service.ready(service.worker(source=older))]
    supervising = asyncio.create_task(supervise(service, older, old))
    for home, changes in HOMES.items():
        await service.send("routers", router(home, **changes))
    for _ in range(SETTLED_AFTER):
        await traffic.phase()
    traffic.worse = True
    for _ in range(UNTIL_SUSPECTED):
        if traffic.suspected():
            break
        await traffic.phase()
    assert traffic.suspected()
    await joined(service, service.worker(PB_PRIORS_PATH=str(priors), PB_ENCODER_BACKEND="static"))
    await traffic.phase()  # both, side by side
    supervising.cancel()
    await ends(service, old.pop())
    await service.send("routers", router("projected", projection=projection))
    traffic.homes.append("projected")
    await traffic.phase()
    await traffic.settled()
    check(service, traffic)
    for partition in (await service.partitions()).values():
        routers = Recovered(partition).routers
        for home in routers:
            engine = routers.engine(home)
            assert engine is not None, routers.unreadable
            invariants.check(engine.state, engine.records)
            if home == "projected":
                assert engine.state.config.projection == ProjectionRef(**projection)


def random_projection(folder: Path, name: str, *, dimensions: int) -> dict[str, str]:
    """Write a projection to `dimensions` numbers; return how a declaration refers to it."""
    rng = np.random.default_rng(7)
    fitted, _ = Projection.fit(rng.normal(size=(4 * dimensions, 128)), dimensions - 1)
    return {"ref": name, "sha256": fitted.save(folder / name)}


async def joined(service: RunningService, worker: Worker) -> Worker:
    """Wait until a worker that was started has partitions of its own."""
    await service.ready(worker)
    await service.until(lambda: worker.partitions, "partitions of the new worker", poll=False)
    await asyncio.sleep(0)
    return worker


def check(service: RunningService, traffic: Traffic) -> None:
    """Check that each request has one decision, that they are numbered without gaps, and that the
    money is right.
    """
    assert {home for home, _ in traffic.refused} == {"stopped"}
    decided: dict[str, dict[str, Any]] = {}
    numbers: dict[str, set[int]] = defaultdict(set)
    for route in service.routes():
        first = decided.setdefault(route["request_id"], route)
        assert {
            name: first[name] for name in ("model", "seq", "lambda_t", "decided_at")
        }.items() <= route.items()
        numbers[route["router_id"]].add(route["seq"])
    answered = {at for at in traffic.sent if at not in traffic.refused}
    assert decided.keys() == {request_id for _, request_id in answered}
    for home in traffic.homes:
        mine = [request_id for at, request_id in answered if at == home]
        assert numbers[home] == set(range(1, len(mine) + 1))
        spent = sum(amount for (at, _), amount in traffic.billed.items() if at == home)
        assert math.isclose(service.lambda_of(home)["spend_usd"], spent, rel_tol=1e-9)
