"""How many requests a router awaits bills for, and how many it remembers, is bounded."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import orjson
import pytest

from streams.service.memory_limit import usual_memory
from streams.settings import Settings
from streams.state.table_partition import RECORD_BYTES
from tests.audit_world import DIMENSIONS, World, router

HOME = "home"


def request(number: int) -> dict[str, object]:
    return {
        "router_id": HOME,
        "request_id": f"r-{number}",
        "context": [0.1] * (DIMENSIONS - 1) + [1.0],
    }


async def started(settings: Settings) -> tuple[World, Counter[str]]:
    world = World(settings)
    await world.start()
    await world.send("routers", router(HOME))
    return world, world.worker.counted


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
            await world.send(
                "costs", {"router_id": HOME, "request_id": f"r-{number}", "cost_usd": 0.001}
            )
    await world.pass_time(5.0)
    engine = world.worker.partitions[0].routers.engine(HOME)
    assert engine is not None
    assert list(engine.records) == [f"r-{number}" for number in (1, 3, 5, 7, 9, 11)]
    assert counted["forgotten_early"] == 6
    assert counted["forgotten"] == 0


async def filled(limit: int | None, requests: int) -> tuple[World, Counter[str]]:
    """Return a service that has decided so many requests; of the first half the bills and labels
    have come.
    """
    world, counted = await started(Settings(partitions=1, memory_bytes=limit))
    for number in range(requests):
        await world.send("requests", request(number))
    for number in range(requests // 2):
        named = {"router_id": HOME, "request_id": f"r-{number}"}
        await world.send("costs", {**named, "cost_usd": 0.001})
        await world.send("rewards", {**named, "reward": 0.5, "source": "judge"})
    return world, counted


async def test_the_size_of_the_table_is_that_of_its_records() -> None:
    world, _ = await filled(None, 30)
    table = world.worker.states.partition(0)
    assert table.size == sum(
        len(key) + len(value) + RECORD_BYTES for key, value in table.records.items()
    )
    await world.send("routers", None, key=HOME.encode())
    assert table.size == sum(
        len(key) + len(value) + RECORD_BYTES for key, value in table.records.items()
    )


async def test_nothing_is_forgotten_while_there_is_room() -> None:
    world, counted = await filled(None, 60)
    await world.pass_time(6 * 86_400.0)
    assert counted["forgotten_early"] == 0
    assert world.worker[0].routers.remembers(HOME) == 60


async def test_an_alert_comes_before_the_settled_requests_are_forgotten_first() -> None:
    world, counted = await filled(2**20, 1600)
    size = world.worker.states.size
    assert size > 2**20
    await world.pass_time(5.0)
    alerts = [orjson.loads(record.value or b"") for record in world.records["alerts", 0]]
    assert [alert["kind"] for alert in alerts] == ["memory_nearly_full"]
    for _ in range(20):
        await world.pass_time(5.0)
    assert world.worker.states.size <= 2**20
    engine = world.worker.partitions[0].routers.engine(HOME)
    assert engine is not None
    left = {int(name.removeprefix("r-")) for name in engine.records}
    assert left >= set(range(800, 1600))
    assert counted["forgotten_early"] == 1600 - len(left) > 0


@pytest.mark.parametrize(
    ("written", "part"),
    [("4294967296\n", 2**31), ("max\n", None), (None, None), ("nonsense", None)],
)
def test_half_of_the_containers_memory_is_for_what_is_remembered(
    tmp_path: Path, written: str | None, part: int | None
) -> None:
    file = tmp_path / "memory.max"
    if written is not None:
        file.write_text(written)
    machine = usual_memory(())
    assert usual_memory((file,)) == (min(part, machine) if part else machine) > 0
