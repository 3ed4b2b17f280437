"""Eight routers on three workers share one pool of money; one worker is killed in the middle."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.integration.service import RunningService, cost, request, reward, router, running_service

ROUTERS = [f"team-{k}" for k in range(8)]
USD = 0.08
"""Dollars of the pool: the cheapest model for all requests costs more, so some are refused."""
REQUESTS = 900
PRICES = {"llama": 1e-4, "mistral": 6e-4, "gemini": 2e-3}
WORTH = {"llama": 0.3, "mistral": 0.6, "gemini": 0.9}


@pytest.fixture
async def service(kafka: str, tmp_path: Path) -> AsyncIterator[RunningService]:
    """Run three workers."""
    async with running_service(kafka, tmp_path, partitions=6) as running:
        for name in ("one", "two", "three"):
            await running.ready(running.worker(instance=name))
        yield running


def budgets(service: RunningService, name: str) -> list[dict[str, Any]]:
    """Return what a router says of its budgets."""
    return list(service.lambda_of(name).get("budgets", []))


async def declared(service: RunningService) -> None:
    """Declare an organisation with two teams, and their routers; wait for their leases."""
    now = datetime.now(UTC)
    budget = {
        "usd": USD,
        "from": (now - timedelta(seconds=5)).isoformat(),
        "until": (now + timedelta(hours=1)).isoformat(),
    }
    await service.send("pools", {"pool_id": "org", "budget": budget})
    for team in ("left", "right"):
        await service.send("pools", {"pool_id": team, "parent": "org"})
    for k, name in enumerate(ROUTERS):
        pool = "left" if k % 2 else "right"
        body = router(name, pool=pool, when_spent="refuse")
        del body["budget_usd_per_request"]
        await service.send("routers", body)
    await service.until(
        lambda: all(any(one["usd"] > 0 for one in budgets(service, name)) for name in ROUTERS),
        "a lease of every router",
    )


async def test_no_more_is_spent_than_the_pool_has_though_a_worker_is_killed(
    service: RunningService,
) -> None:
    await declared(service)
    rng, billed, spent = np.random.default_rng(7), set[str](), 0.0

    async def bill(until: int) -> None:
        """Bill the decisions that have come, all but the last ones."""
        nonlocal spent
        await service.poll()
        routes = {route["request_id"]: route for route in service.routes()}
        waiting = [route for name, route in routes.items() if name not in billed]
        for route in waiting[: max(len(waiting) - until, 0)]:
            usd = PRICES[route["model"]] * float(rng.uniform(0.8, 1.2))
            value = WORTH[route["model"]] * (0.5 if route["router_id"] < "team-4" else 1.0)
            await service.post("costs", cost(route["router_id"], route["request_id"], usd))
            await service.post("rewards", reward(route["router_id"], route["request_id"], value))
            billed.add(route["request_id"])
            spent += usd

    for number in range(REQUESTS):
        name = ROUTERS[int(rng.choice(8, p=np.array([1, 2, 3, 4, 1, 2, 3, 4]) / 20))]
        await service.post("requests", request(name, str(number), seed=number))
        if number == REQUESTS // 2:
            service.workers[0].kill()
            service.worker(instance="one")
        if number % 10 == 9:
            await bill(30)
            await asyncio.sleep(0.25)
    await service.until(
        lambda: (
            len({route["request_id"] for route in service.routes()})
            + sum(service.reasons().values())
            >= REQUESTS
        ),
        "an answer to every request",
    )
    await bill(0)
    assert spent <= 1.005 * USD
    # What one router had left was granted to another before anybody was refused for good.
    assert spent >= 0.9 * USD
    assert set(service.reasons()) == {"budget_spent"}
    reports = [budgets(service, name) for name in ROUTERS]
    assert {(one["line"], one["pool"]) for budget in reports for one in budget} == {
        ("org/dates", "left"),
        ("org/dates", "right"),
    }
