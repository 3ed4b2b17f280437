"""How many requests a router awaits bills for, and how many it remembers, is bounded."""

from __future__ import annotations

from collections import Counter

import orjson

from streams.settings import Settings
from tests.audit_world import DIMENSIONS, World, router

HOME = "home"


def request(number: int) -> dict[str, object]:
    return {"router_id": HOME, "request_id": f"r-{number}", "context": [0.1] * (DIMENSIONS - 1) + [1.0]}


async def started(settings: Settings) -> tuple[World, Counter[str]]:
    world, counted = World(settings), Counter[str]()
    world.worker.service.count = lambda what, amount=1: counted.update({what: amount})
    await world.start()
    await world.send("routers", router(HOME))
    return world, counted


async def test_a_request_beyond_those_whose_bill_is_awaited_is_refused_until_a_bill_comes() -> None:
    world, _ = await started(Settings(partitions=1, in_flight_per_router=3))
    for number in range(4):
        await world.send("requests", request(number))
    assert len(world.records["routes", 0]) == 3
    [letter] = world.records["dlq", 0]
    assert orjson.loads(letter.value or b"")["request_id"] == "r-3"
    assert "too_many_in_flight" in str(letter.headers)
    await world.send("costs", {"router_id": HOME, "request_id": "r-0", "cost_usd": 0.001})
    await world.send("requests", request(5))
    assert len(world.records["routes", 0]) == 4


async def test_requests_beyond_those_that_may_be_remembered_are_forgotten_early() -> None:
    world, counted = await started(Settings(partitions=1, requests_per_router=5))
    for number in range(12):
        await world.send("requests", request(number))
        if number % 2 == 0:
            await world.send("costs", {"router_id": HOME, "request_id": f"r-{number}", "cost_usd": 0.001})
    await world.pass_time(5.0)
    engine = world.worker.service.shards[0].engine(HOME)
    assert engine is not None
    assert list(engine.records) == [f"r-{number}" for number in (1, 3, 5, 7, 9, 11)]
    assert counted["forgotten_early"] == 6
    assert counted["forgotten"] == 0
