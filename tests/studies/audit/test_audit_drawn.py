"""Whatever is declared and said, in any order: no event fails, and the audit is clean."""

import json

import pytest

from streams.settings import Settings
from studies.audit.run import audit
from tests.audit_world import World
from tests.drawn_traffic import Drawn, Later

REQUESTS = 40


async def played(seed: int, settings: Settings) -> World:
    """Play the traffic of three drawn routers."""
    world = World(settings)
    await world.start()
    await world.send("pools", {"pool_id": "pool", "budget": {"usd": 1.0, "per": "day"}})
    routers = {name: Drawn(name, seed + at) for at, name in enumerate(("a", "b", "c"))}
    for one in routers.values():
        await world.send("routers", one.declared)
    waiting: list[Later] = []
    asked: dict[str, None] = {}

    async def hear() -> None:
        """Draw what comes of new decisions, and send what is due."""
        now = world.worker.clock.now
        for number in range(settings.partitions):
            for record in world.records["routes", number]:
                route = json.loads(record.value or b"{}")
                if route["request_id"] not in asked:
                    asked[route["request_id"]] = None
                    one = routers[route["router_id"]]
                    waiting.extend((now + s, to, event) for s, to, event in one.feedback(route))
        due = [one for one in waiting if one[0] <= now]
        waiting[:] = [one for one in waiting if one[0] > now]
        for _, topic, event in due:
            await world.send(topic, event)

    for number in range(REQUESTS):
        for one in routers.values():
            before = [name for name in asked if name.startswith(f"{one.router_id}-")]
            request = one.request(number, before)
            for _ in range(2 if one.maybe(0.05) else 1):
                await world.send("requests", request)
            if one.maybe(0.04):
                await world.send("routers", one.declare())
            await hear()
        await world.pass_time(0.5)
    for _ in range(14):
        await hear()
        await world.pass_time(1.0)
    return world


@pytest.mark.parametrize(("seed", "remembered"), [(10, 15), (20, 100_000)])
async def test_all_that_is_drawn_is_booked_and_recomputed(seed: int, remembered: int) -> None:
    settings = Settings(
        prefix="pb.",
        app_id="audited",
        partitions=1,
        orphan_wait=3.0,
        requests_per_router=remembered,
    )
    world = await played(seed, settings)
    dead = {one.headers["pb.reason"] for one in world.records["dlq", 0]}
    assert "internal_error" not in dead
    findings = audit(world.topics(), settings)
    assert findings.checked["decisions"] > REQUESTS
    assert findings.as_json()["violations"] == {}, findings.examples
