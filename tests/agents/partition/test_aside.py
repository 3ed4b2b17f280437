"""Whatever the contract accepts: workers live, and what they publish parses by the strict schemas;
where work by the clock fails all the same, one router or pool is set aside for it."""

from __future__ import annotations

from typing import Any

import pytest

from agents.publishing import publish as publishing
from agents.publishing import published_values as wire
from agents.table import keys
from router_state.changes import Alert
from router_state.packing import framing
from router_state.periods.period_budgets import Periods
from router_state.pools import pieces
from router_state.pools.pool import Pool
from schemas.alerts import AlertRaised
from schemas.event import decode
from tests.granting_world import World
from tests.worlds.extremes import play


# In the last one a bill's part underflows to a number that has no logarithm.
@pytest.mark.parametrize("seed", [*range(4), 95])
async def test_workers_live_on_extreme_declarations_and_bills(seed: int) -> None:
    assert await play(seed) == []


def aside(world: World) -> list[Any]:
    """Return what is set aside."""
    partitions = [one for worker in world.workers for one in worker.partitions]
    return [found for one in partitions for found in one.aside.failed.values() if found]


async def granting() -> World:
    found = await World().start()
    for pool_id, members in (("good", "ab"), ("bad", "cd")):
        found.declare_pool(pool_id, budget={"usd": 10.0, "per": "day"})
        for name in members:
            found.declare_router(name, pool_id)
    for _ in range(8):
        await found.step()
    return found


def grants(pieces: dict[str, bytes]) -> dict[str, int]:
    """Return the number of each member's last grant."""
    return {
        name: framing.loads(piece)["member"][2] for name, piece in pieces.items() if ":" in name
    }


def alerts(world: World) -> list[AlertRaised]:
    said = [one for worker in world.workers for one in worker.said]
    return [decode(AlertRaised, value) for topic, _, value, _ in said if topic == "pb.alerts"]


async def test_a_pool_that_cannot_lend_is_set_aside_and_tried_again_after_its_next_change(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world, real, tried = await granting(), Pool.set_grants, []

    def set_grants(pool: Pool, *, now: float) -> list[str]:
        names = real(pool, now=now)
        if pool.pool_id == "bad":
            tried.append(now)
            raise ArithmeticError("no lease can be computed")
        return names

    monkeypatch.setattr(Pool, "set_grants", set_grants)
    before = pieces.pack(world.pool("bad"))
    for _ in range(6):
        for name in "abcd":
            world.ask(name)
        await world.step(seconds=5.0)
    assert len(tried) > 1
    (alert,) = alerts(world)
    assert (alert.router_id, alert.kind) == ("bad", "set_aside")
    assert alert.evidence["work"] == "lend" and alert.evidence["of"] == "pool"
    # What failed changed nothing; reports are taken all the same, and the other pool grants.
    assert grants(pieces.pack(world.pool("bad"))) == grants(before)
    assert world.pool("bad").moves > framing.loads(before[""])["numbers"][2]
    monkeypatch.undo()
    for _ in range(20):
        for name in "abcd":
            world.ask(name)
        await world.step(seconds=2.0)
    assert not aside(world)
    assert world.granted(list("cd"), "bad/day") == pytest.approx(10.0, rel=0.05)


async def test_a_router_that_cannot_be_published_or_reported_is_set_aside(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = await granting()

    lambda_value, real_report = wire.lambda_value, Periods.reported

    def publish(router_id: str, *given: Any, **more: Any) -> bytes:
        if router_id == "c":
            raise ValueError("cannot be written")
        return lambda_value(router_id, *given, **more)

    def report(periods: Any, router_id: str, **more: Any) -> Any:
        if router_id == "c":
            raise ZeroDivisionError("cannot be computed")
        return real_report(periods, router_id, **more)

    monkeypatch.setattr(publishing, "lambda_value", publish)
    monkeypatch.setattr(Periods, "reported", report)
    seen = sum(len(worker.said) for worker in world.workers)
    for _ in range(4):
        for name in "abcd":
            world.ask(name)
        await world.step(seconds=20.0)
    assert {(one.router_id, one.evidence["work"]) for one in alerts(world)} == {
        ("c", "publish"),
        ("c", "report"),
    }
    assert len(alerts(world)) == 2
    assert sum(len(worker.said) for worker in world.workers) > seen
    monkeypatch.undo()
    world.ask("c")
    await world.step(seconds=20.0)
    assert not aside(world)


async def test_an_alert_that_cannot_be_written_ends_nothing() -> None:
    world = await granting()
    partition = world.partition("a")
    for evidence in ({"usd": float("nan")}, {}):
        alert = Alert("budget_spent", "up", 1.0, world.now, world.now, evidence)
        partition.news.alerts.append(("a", alert))
    await world.step()
    assert [one.evidence for one in alerts(world)] == [{}]


async def test_a_pools_leases_are_set_in_several_record_batches_where_they_do_not_fit() -> None:
    """Of 60 members all leases change at once; each record batch holds some of them."""
    world = await World(workers=1).start()
    (worker,) = world.workers
    for partition in worker.partitions:
        partition.group_bytes = 8_000
    names = [f"r{k}" for k in range(60)]
    world.declare_pool("p", budget=[{"usd": 60.0, "per": per} for per in ("hour", "day", "month")])
    for name in names:
        world.declare_router(name, "p")
    for _ in range(10):
        await world.step()
    assert world.granted(names, "p/day") == pytest.approx(60.0, rel=0.05)
    assert not any(map(world.unlent, names))
    # A report of one member writes the head and that member alone.
    first = len(worker.changelog)
    world.ask("r1")
    await world.step(seconds=11.0)
    written = {key for _, key, _, _, _ in worker.changelog[first:] if key[:1] == keys.POOL}
    assert len(written) <= len(names)
    before = pieces.pack(world.pool("p"))
    await world.kill(0)
    assert pieces.pack(world.pool("p")) == before
