"""What a refusal leaves behind: the alert that tells of it, and nothing else."""

from __future__ import annotations

import json
from typing import Any

from streams.settings import Settings
from tests.audit_world import DIMENSIONS, World, router

HOME = "home"
CONTEXT = [0.1] * (DIMENSIONS - 1) + [1.0]


async def started(**changed: Any) -> World:
    """Return a service with one router that was just declared."""
    world = World(Settings(prefix="pb.", app_id="refusing", partitions=1))
    await world.start()
    await world.send("routers", router(HOME, **changed))
    return world


def alerts(world: World) -> list[str]:
    """Return the kinds of all alerts that were published."""
    return [json.loads(record.value or b"{}")["kind"] for record in world.records["alerts", 0]]


async def test_the_alert_of_a_hard_cap_is_published_while_all_that_happens_is_refused() -> None:
    world = await started(caps={"hour": {"usd": 1e-9, "mode": "hard"}})
    for number in range(3):
        await world.send("requests", {"router_id": HOME, "request_id": f"r-{number}", "context": CONTEXT})
    await world.pass_time(0.5)
    assert alerts(world) == ["cap_reached"]
    assert [record.headers["pb.reason"] for record in world.records["dlq", 0]] == ["cap_reached"] * 3
    await world.pass_time(0.5)
    assert alerts(world) == ["cap_reached"]
