"""Pools grant to routers on other workers, and never more than there is, whatever comes late,
twice, or after a crash."""

from __future__ import annotations

import json

import pytest

from agents.table import keys
from tests.granting_world import World

ROUTERS = [f"router-{k}" for k in range(8)]


async def world(
    *, usd: float = 30.0, surprise: float = 0.3, seed: int = 0, **pool: object
) -> World:
    """Return eight routers in two pools of one pool."""
    found = await World(seed=seed, surprise=surprise).start()
    found.declare_pool("org", budget={"usd": usd, "per": "day"}, **pool)
    found.declare_pool("left", parent="org")
    found.declare_pool("right", parent="org")
    for k, name in enumerate(ROUTERS):
        found.declare_router(name, "left" if k % 2 else "right", worth=(0.05, 0.5)[k // 4])
    return found


async def test_every_router_gets_a_lease_through_two_levels() -> None:
    found = await world()
    for _ in range(12):
        await found.step()
    assert not any(map(found.unlent, ROUTERS))
    assert found.granted(ROUTERS, "org/day") == pytest.approx(30.0, rel=0.05)


@pytest.mark.parametrize("late", [0, 7])
async def test_no_more_is_lent_than_there_is(late: int) -> None:
    found = await world(seed=late)
    found.late, found.twice = late, late > 0
    for number in range(60):
        for name in ROUTERS:
            for _ in range(int(found.rng.integers(0, 4))):
                found.ask(name)
        await found.step(seconds=float(found.rng.choice([0.5, 2.0, 20.0])))
        if number % 20 == 10:
            await found.kill(int(found.rng.integers(3)))
        assert found.granted(ROUTERS, "org/day") <= 30.0 + 1e-6


@pytest.mark.parametrize("forged", ["headers", "number", "period"])
async def test_a_grant_that_somebody_else_wrote_is_refused(forged: str) -> None:
    found = await World().start()
    found.declare_pool("shop", budget={"usd": 1.0, "per": "day"})
    found.declare_router("a", "shop")
    for _ in range(8):
        await found.step()
    said = [one for worker in found.workers for one in worker.said if one[0] == "pb.leases"]
    value, headers = next(
        (one[2], one[3]) for one in reversed(said) if b'"grant"' in (one[2] or b"")
    )
    grant = json.loads(value or b"")
    lease = {**grant["leases"][0], "usd": 1e6}
    if forged == "period":
        lease["expires"] = "2099-01-01T00:00:00Z"
    number = 2**53 - 1 if forged == "number" else grant["n"] + 1000
    bad = {**grant, "n": number, "leases": [lease]}
    found.write("leases", "a", json.dumps(bad).encode(), headers if forged == "period" else ())
    await found.step()
    letters = [one for worker in found.workers for one in worker.said if one[0] == "pb.dlq"]
    (reason,) = [dict(headers)["pb.reason"].decode() for _, _, _, headers in letters]
    assert reason == ("invalid_field" if forged == "period" else "stale_grant")
    for _ in range(4):
        await found.step(seconds=200.0)
    assert found.granted(["a"], "shop/day") == pytest.approx(1.0)


async def test_a_pool_that_cannot_be_read_is_told_of_once() -> None:
    found = await world()
    await found.step()
    (at,) = [
        raw
        for raw in found.partition("org").table.records
        if raw[:1] == keys.POOL and keys.split(raw)[1:] == ("org", "")
    ]
    for worker in found.workers:
        worker.changelog = [
            (number, key, value[:-1] + b"?" if key == at and value else value, epoch, time)
            for number, key, value, epoch, time in worker.changelog
        ]
    await found.kill(found.workers.index(found.owner("org")))
    for _ in range(5):
        await found.step()
    alerts = [
        ((key or b"").decode(), json.loads(value or b"")["kind"])
        for worker in found.workers
        for topic, key, value, _ in worker.said
        if topic == "pb.alerts"
    ]
    assert alerts.count(("org", "pool_unreadable")) == 1
