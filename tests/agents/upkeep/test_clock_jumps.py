"""A clock that jumps: nothing is lost or counted twice, and the audit of what was done finds no
promise broken.
"""

from typing import Any

import pytest

from router_state.state import invariants
from streams.settings import Settings
from studies.audit.run import audit
from tests.audit_world import World, busy_world

SETTINGS = Settings(prefix="pb.", app_id="clock", partitions=3)
HOME = "home-1"
DAY = 86_400.0


async def traffic(world: World, first: int, count: int, *, finish: bool = True) -> None:
    """Send requests of one router and, if they are to be finished, their bills and rewards."""
    for number in range(first, first + count):
        event = {"router_id": HOME, "request_id": f"late-{number}"}
        await world.send(
            "requests", {**event, "context": [((number * k) % 7) / 7 for k in range(1, 5)] + [1.0]}
        )
        if finish:
            await settle(world, number)


async def settle(world: World, number: int) -> None:
    """Pay and reward a request."""
    event = {"router_id": HOME, "request_id": f"late-{number}"}
    await world.send("costs", {**event, "cost_usd": 0.0004})
    await world.send("rewards", {**event, "reward": (number % 10) / 10, "source": "judge"})


def state(world: World) -> Any:
    """Return the router's state, checked."""
    engine = world.worker.partitions[world.partition_of(HOME)].routers.engine(HOME)
    assert engine is not None
    invariants.check(engine.state, engine.records)
    return engine.state


def reasons(world: World) -> list[str]:
    """Return the reasons of all dead letters since the world began."""
    return [
        record.headers["pb.reason"]
        for (topic, _), log in world.records.items()
        if topic == "dlq"
        for record in log
    ]


@pytest.mark.parametrize("jump", [-30 * DAY, -3600.0, 3600.0, 3 * DAY, 400 * DAY])
async def test_everything_goes_on_and_is_proved_after_a_jump(jump: float) -> None:
    world = await busy_world(SETTINGS, requests=60)
    refused = len(reasons(world))
    await traffic(world, 0, 20)
    await world.pass_time(jump)
    await traffic(world, 20, 20)
    await world.pass_time(-jump)
    await traffic(world, 40, 20)
    await world.pass_time(1.0)
    assert len(reasons(world)) == refused
    found = state(world)
    assert found.seq == 15 + 60
    assert found.lambda_t >= 0.0
    findings = audit(world.topics(), SETTINGS)
    assert findings.clean, findings.as_json()


async def test_a_jump_back_lets_waits_last_and_loses_nothing() -> None:
    world = await busy_world(SETTINGS, requests=20)
    before = state(world).settled
    await settle(world, 0)
    await world.pass_time(-DAY)
    await world.pass_time(70.0)
    await traffic(world, 0, 1, finish=False)
    assert state(world).settled == before + 1
    assert "orphan_cost" not in reasons(world)[-1:]
    assert audit(world.topics(), SETTINGS).clean


async def test_a_jump_forward_ends_waits_and_counts_what_comes_late_once() -> None:
    world = await busy_world(SETTINGS, requests=20)
    await traffic(world, 0, 5, finish=False)
    await settle(world, 99)
    before = state(world).spend_usd
    await world.pass_time(3600.0)
    await world.pass_time(1.0)
    assert sorted(reasons(world)[-2:]) == ["orphan_cost", "orphan_reward"]
    assert state(world).in_flight == 0 and state(world).expired >= 5
    await world.pass_time(-3600.0)
    for number in range(5):
        await settle(world, number)
    assert state(world).spend_usd == pytest.approx(before + 5 * 0.0004)
    assert audit(world.topics(), SETTINGS).clean


async def test_events_of_a_client_whose_clock_is_ahead_are_refused_only_beyond_the_tolerance() -> (
    None
):
    world = await busy_world(SETTINGS, requests=20)
    await traffic(world, 0, 2, finish=False)
    ahead = {"router_id": HOME, "request_id": "late-0", "reward": 0.5, "source": "judge"}
    await world.send("rewards", {**ahead, "observed_at": "2099-01-01T00:00:00Z"})
    assert reasons(world)[-1] == "from_the_future"
    before = state(world).rewards_applied
    await world.send("rewards", {**ahead, "observed_at": "1999-01-01T00:00:00Z"})
    assert state(world).rewards_applied == before + 1
