"""Pools lend to routers on other workers: what is lent is never more than there is, whatever comes
late, twice, or after a crash."""

from __future__ import annotations

import pytest

from tests.lending_world import World

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
    assert found.lent(ROUTERS, "org/day") == pytest.approx(30.0, rel=0.05)


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
        assert found.lent(ROUTERS, "org/day") <= 30.0 + 1e-6
    spent = sum(found.spent.values())
    print(spent, found.pool("org").pack())
