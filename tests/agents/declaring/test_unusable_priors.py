"""A declaration whose priors cannot work is refused, and what was in force goes on."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from streams.settings import Settings
from studies.audit.run import audit
from tests.audit_world import DIMENSIONS, MODELS, World, router

SETTINGS = Settings(prefix="pb.", app_id="priors", partitions=1)
HOME = "home"
ONES = np.eye(DIMENSIONS)
PRIORS: dict[str, dict[str, Any]] = {
    "next to no observations": {
        "prior": {"A": (1e-320 * ONES).tolist(), "b": [0.0] * DIMENSIONS},
    },
    "rewards that overflow": {
        "prior": {"A": ONES.tolist(), "b": [1e154] * DIMENSIONS},
    },
    "bills whose mean overflows": {
        "cost_prior": {
            "A": (100.0 * ONES).tolist(),
            "b": [3e4, *[0.0] * (DIMENSIONS - 2), 800.0],
            "mean_usd": 1e-3,
        },
    },
}


async def requests(world: World, *, first: int) -> None:
    """Send twenty requests, each with its bill and its reward."""
    rng = np.random.default_rng(first)
    for number in range(first, first + 20):
        of = {"router_id": HOME, "request_id": f"r-{number}"}
        context = [*rng.normal(size=DIMENSIONS - 1).round(3).tolist(), 1.0]
        await world.send("requests", {**of, "context": context})
        await world.send("costs", {**of, "cost_usd": 1e-4})
        await world.send("rewards", {**of, "reward": 0.5, "source": "judge"})


def reasons(world: World) -> list[str]:
    return [record.headers["pb.reason"] for record in world.records["dlq", 0]]


@pytest.mark.parametrize("profile", ["live", "paper"])
@pytest.mark.parametrize("prior", PRIORS.values(), ids=PRIORS)
async def test_a_prior_that_cannot_work_is_refused_and_what_is_in_force_goes_on(
    prior: dict[str, Any], profile: str
) -> None:
    world = World(SETTINGS)
    await world.start()
    with_it = {**MODELS, "new": {**MODELS["llama"], **prior}}
    await world.send("routers", router(HOME, models=with_it, profile=profile))
    assert reasons(world) == ["wrong_prior"]
    message = world.records["dlq", 0][0].headers["__connect.errors.exception.message"]
    assert "'new'" in message
    await world.send("routers", router(HOME, profile=profile))
    await requests(world, first=0)
    await world.send("routers", router(HOME, models=with_it, profile=profile))
    await requests(world, first=20)
    await world.pass_time(1.0)
    assert reasons(world) == ["wrong_prior"] * 2
    routes = [json.loads(record.value or b"{}") for record in world.records["routes", 0]]
    assert len(routes) == 40
    assert audit(world.topics(), SETTINGS).as_json()["violations"] == {}
