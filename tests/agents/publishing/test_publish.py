"""`pb.lambda` says which events it contains, and which of them changed nothing: a writer learns
what became of its own.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from agents.publishing.published_values import lambda_value
from router_state.config import ModelConfig, Price, RouterConfig
from router_state.engine import Engine
from router_state.instants import utc
from router_state.newcomers import Unaffordable
from schemas import LambdaUpdated, decode, encode
from schemas.lambdas import Unbooked
from streams.settings import Settings
from tests.audit_world import DIMENSIONS, World, router

HOME, OTHER = "home", "other"
CONTEXT = [0.1] * (DIMENSIONS - 1) + [1.0]
SETTINGS = Settings(prefix="pb.", app_id="saying", partitions=1)


async def started() -> World:
    """Return a service of two routers, one of which has decided request r."""
    world = World(SETTINGS)
    await world.start()
    await world.send("routers", router(HOME))
    await world.send("routers", router(OTHER))
    await world.send("requests", {"router_id": HOME, "request_id": "r", "context": CONTEXT})
    await world.pass_time(0.5)
    return world


def last(world: World, router_id: str = HOME) -> Any:
    """Return a router's last published state."""
    values = [json.loads(record.value or b"{}") for record in world.records["lambda", 0]]
    return next(value for value in reversed(values) if value["router_id"] == router_id)


async def bill(world: World, request_id: str = "r", **fields: Any) -> None:
    await world.send(
        "costs", {"router_id": HOME, "request_id": request_id, "cost_usd": 0.001, **fields}
    )
    await world.pass_time(0.5)


async def reward(world: World, request_id: str = "r", **fields: Any) -> None:
    label = {
        "router_id": HOME,
        "request_id": request_id,
        "reward": 0.5,
        "source": "judge",
        **fields,
    }
    await world.send("rewards", label)
    await world.pass_time(0.5)


def test_a_state_is_written_as_its_schema_would_write_it() -> None:
    price = ModelConfig(Price(1.0, 1.0), None, 0)
    state = Engine.start(RouterConfig(models={"m": price}, budget_usd_per_request=1e-4)).state
    state.newcomers.found["m"] = Unaffordable("m", 0.25, 0.5)
    value = lambda_value(
        HOME,
        state,
        observed_at=utc(1e9 + 0.25),
        applied={"requests": 7, "costs": -1, "rewards": 0},
        unbooked=(Unbooked(topic="costs", offset=3, outcome="duplicate"),),
    )
    assert json.loads(value) == json.loads(encode(decode(LambdaUpdated, value)))
    assert json.loads(value).keys() >= {"unaffordable", "unbooked", "debt_usd", "applied"}


async def test_a_state_names_the_last_offsets_that_it_contains() -> None:
    world = await started()
    assert last(world)["applied"] == {"requests": 0, "costs": -1, "rewards": -1}
    await bill(world)
    await reward(world)
    assert last(world)["applied"] == {"requests": 0, "costs": 0, "rewards": 0}
    assert (last(world)["settled"], last(world)["unbooked"]) == (1, [])


async def test_a_repeated_bill_is_acknowledged_as_booked_before_once() -> None:
    world = await started()
    await bill(world)
    await bill(world)
    assert last(world)["applied"]["costs"] == 1
    assert last(world)["unbooked"] == [{"topic": "costs", "offset": 1, "outcome": "duplicate"}]
    await bill(world, revision=1)
    assert (last(world)["applied"]["costs"], last(world)["unbooked"]) == (2, [])


async def test_what_waits_for_its_request_is_acknowledged_as_waiting() -> None:
    world = await started()
    await bill(world, "early")
    await reward(world, "early")
    assert last(world)["unbooked"] == [{"topic": "rewards", "offset": 0, "outcome": "waiting"}]
    await bill(world, "early")
    assert last(world)["unbooked"] == [{"topic": "costs", "offset": 1, "outcome": "duplicate"}]


async def test_what_is_refused_never_passes_for_booked() -> None:
    world = await started()
    await world.send("costs", b"{", key=HOME.encode())
    await reward(world, observed_at="2099-01-01T00:00:00Z")
    told = last(world)["unbooked"]
    assert {(one["topic"], one["outcome"]) for one in told} == {
        ("costs", "refused"),
        ("rewards", "refused"),
    }


async def test_a_worker_that_took_over_does_not_know_what_came_before_it() -> None:
    world = await started()
    await bill(world)
    settings, before = world.settings, world.worker
    after = World(settings)
    before.changelog = [
        (0, record.key or b"", record.value, int(record.headers["epoch"]), record.timestamp)
        for record in world.records["changelog", 0]
    ]
    await after.worker.start(before)
    await after.pass_time(0.5)
    assert "unbooked" not in last(after)
    assert last(after)["applied"]["costs"] == 0


async def test_only_the_last_few_are_listed() -> None:
    world = await started()
    for number in range(70):
        await world.send(
            "costs", {"router_id": HOME, "request_id": f"none-{number}", "cost_usd": 0.1}
        )
    await world.pass_time(0.5)
    assert [one["offset"] for one in last(world)["unbooked"]] == list(range(6, 70))


DAY = {"usd": 5.0, "per": "day"}
LONG_AGO = {"usd": 1.0, "from": "2001-01-01T00:00:00Z", "until": "2001-02-01T00:00:00Z"}
TO_COME = {**LONG_AGO, "from": "2901-01-01T00:00:00Z", "until": "2901-02-01T00:00:00Z"}


@pytest.mark.parametrize(
    ("declared", "least", "most"),
    [
        ({"budget": DAY}, 1e-6, 5.0),
        ({"budget": DAY, "budget_usd_per_request": 1e-6}, 1e-6, 1e-6),
        ({"budget": {**DAY, "usd": 0.0}, "when_spent": "refuse"}, 0.0, 1e-9),
        ({"budget": LONG_AGO}, 0.0, 1e-9),
        ({"budget": TO_COME}, None, None),
        ({"min_reward": 0.5}, None, None),
        ({"pool": "none.yet"}, 0.0, 1e-9),
    ],
)
async def test_what_a_request_may_cost_is_said_before_anyone_asks(
    declared: dict[str, Any], least: float | None, most: float | None
) -> None:
    world = World(SETTINGS)
    await world.start()
    await world.send("routers", router(HOME, **{"budget_usd_per_request": None, **declared}))
    await world.pass_time(0.5)
    allowed = last(world)["budget_usd_per_request"]
    assert allowed is None if least is None or most is None else least <= allowed <= most
