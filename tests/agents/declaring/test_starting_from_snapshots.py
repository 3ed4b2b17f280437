"""A declaration with a snapshot: put in force whole, once, or refused; proved by the audit like any
other.
"""

import base64
import json
from typing import Any

import pytest

from schemas.dlq import REASON
from streams.settings import Settings
from streams.state.exporting import declaration_from, pack
from studies.audit.run import audit
from tests.audit_world import World, busy_world

SETTINGS = Settings(prefix="pb.", app_id="snap", partitions=3)
COPY = "copy"


async def exported(world: World, router_id: str) -> dict[str, Any]:
    """Return the declaration of a copy of a router."""
    engine = world.worker.partitions[world.partition_of(router_id)].routers.engine(router_id)
    assert engine is not None
    return declaration_from(engine.state.config, COPY, pack(engine.state, router_id, SETTINGS))


def refusals(world: World) -> list[str]:
    """Return the reasons of the dead letters about the copy."""
    letters = [
        record
        for log in world.records.items()
        if log[0][0] == "dlq"
        for record in log[1]
        if record.key == COPY.encode()
    ]
    return [letter.headers[REASON] for letter in letters]


async def traffic(world: World, homes: list[str], count: int) -> dict[str, list[dict[str, Any]]]:
    """Give routers the same requests, bills and rewards; return their decisions."""
    for number in range(count):
        context = [((number * 7 + k * 3) % 11) / 5 - 1 for k in range(4)] + [1.0]
        for home in homes:
            event = {"router_id": home, "request_id": f"after-{number}"}
            await world.send("requests", {**event, "context": context})
            await world.send("costs", {**event, "cost_usd": 1e-4 * (1 + number % 5)})
            await world.send("rewards", {**event, "reward": (number % 10) / 10, "source": "judge"})
    routes = [
        json.loads(record.value)
        for log in world.records.items()
        if log[0][0] == "routes"
        for record in log[1]
        if record.value
    ]
    return {
        home: [route for route in routes if route["router_id"] == home][-count:] for home in homes
    }


# One of each profile; home-1 has a budget of a period, of which a copy has its own.
@pytest.mark.parametrize("home", ["home-0", "home-3"])
async def test_a_copy_decides_as_its_original_and_both_pass_the_audit(home: str) -> None:
    world = await busy_world(SETTINGS, requests=160)
    await world.send("routers", await exported(world, home))
    made = await traffic(world, [home, COPY], 40)
    same = ("model", "reason", "propensity", "candidates", "lambda_t", "expected_cost_usd")
    assert [[route[name] for name in same] for route in made[home]] == [
        [route[name] for name in same] for route in made[COPY]
    ]
    assert [route["seq"] for route in made[COPY]] == list(range(1, 41))
    await world.pass_time(1.0)
    findings = audit(world.topics(), SETTINGS)
    assert findings.clean, findings.as_json()
    assert findings.checked["routers_recomputed"] == 5


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda text: base64.b64encode(base64.b64decode(text)[:-9]).decode(), "corrupt_snapshot"),
        (lambda text: base64.b64encode(b"a file of something else").decode(), "corrupt_snapshot"),
        (lambda text: text[:-3], "corrupt_snapshot"),
        (lambda text: "?" + text, "invalid_field"),
    ],
)
async def test_a_snapshot_that_cannot_be_read_is_refused_and_nothing_changes(
    spoil: Any, reason: str
) -> None:
    world = await busy_world(SETTINGS, requests=40)
    declared = await exported(world, "home-1")
    await world.send("routers", {**declared, "snapshot": spoil(declared["snapshot"])})
    await world.pass_time(1.0)
    assert refusals(world) == [reason]
    assert COPY not in world.worker.partitions[world.partition_of(COPY)].routers
    assert audit(world.topics(), SETTINGS).clean
    await world.send("routers", declared)
    assert COPY in world.worker.partitions[world.partition_of(COPY)].routers


async def test_a_snapshot_for_another_number_of_dimensions_is_refused() -> None:
    world = await busy_world(SETTINGS, requests=40)
    await world.send("routers", {**await exported(world, "home-1"), "dimensions": 9})
    assert refusals(world) == ["invalid_config"]


async def test_a_router_that_is_there_keeps_what_it_has_learned() -> None:
    world = await busy_world(SETTINGS, requests=40)
    declared = await exported(world, "home-1")
    await world.send("routers", declared)
    await traffic(world, [COPY], 20)
    engine = world.worker.partitions[world.partition_of(COPY)].routers.engine(COPY)
    assert engine is not None
    before = [arm.rewards.kept.copy() for arm in engine.state.arms]
    await world.send("routers", declared)
    for arm, kept in zip(engine.state.arms, before, strict=True):
        assert (arm.rewards.kept == kept).all()
    assert engine.state.seq == 20


async def test_an_import_that_requires_a_new_router_is_refused_where_there_is_one() -> None:
    world = await busy_world(SETTINGS, requests=40)
    declared = await exported(world, "home-1")
    await world.send("routers", declared, headers=[("pb.based_on", b"-1")])
    assert refusals(world) == []
    await world.send("routers", declared, headers=[("pb.based_on", b"-1")])
    assert refusals(world) == ["stale_config"]
