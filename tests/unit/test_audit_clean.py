"""An audit of true topics finds nothing."""

from streams.settings import Settings
from studies.audit.run import audit
from tests.audit_world import DIMENSIONS, World, busy_world, router
from tests.memory_topics import MemoryTopics

SETTINGS = Settings(prefix="pb.", app_id="audited", partitions=3)


async def test_busy_service_is_clean() -> None:
    world = await busy_world(SETTINGS)
    findings = audit(world.topics(), SETTINGS)
    assert findings.as_json()["violations"] == {}, findings.examples
    assert findings.as_json()["unprovable"] == {}, findings.examples
    assert findings.checked["decisions"] == 300
    assert findings.checked["routers_recomputed"] == 4


async def _ask(world: World, *request_ids: str) -> None:
    for request_id in request_ids:
        await world.send(
            "requests",
            {
                "router_id": "home",
                "request_id": request_id,
                "context": [0.1] * (DIMENSIONS - 1) + [1.0],
            },
        )


async def test_a_router_that_came_again_and_has_decided_less_than_the_one_before_is_clean() -> None:
    world = World(SETTINGS)
    await world.start()
    await world.send("routers", router("home"))
    await _ask(world, *"abcde")
    await world.send("routers", None, key=b"home")
    await world.send("routers", router("home"))
    await _ask(world, *"fg")
    await world.pass_time(1.0)
    assert audit(world.topics(), SETTINGS).as_json()["violations"] == {}


async def test_decisions_after_the_state_was_read_are_no_violation() -> None:
    world = World(SETTINGS)
    await world.start()
    await world.send("routers", router("home"))
    await _ask(world, *"abc")
    await world.pass_time(1.0)
    place = ("changelog", world.partition_of("home"))
    state = list(world.records[place])
    await world.send("routers", router("home", budget_usd_per_request=0.5))
    await _ask(world, *"de")
    await world.pass_time(1.0)
    assert (
        audit(MemoryTopics({**world.records, place: state}), SETTINGS).as_json()["violations"] == {}
    )
