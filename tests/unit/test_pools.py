"""Pools: leases add up, go where a dollar earns most, and are never more than the pool."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from doors.pools.standing import lines_of
from ground.json_values import Document
from router_state.errors import InvalidConfig
from router_state.periods.declared import PeriodBudget
from router_state.periods.leases import Granted
from router_state.periods.reporting import Curve, Held, Reported
from router_state.pools.declared import PoolConfig, Share
from router_state.pools.pool import KEPT, Pool
from router_state.pools.sharing import Wish, share, spent_at, together
from schemas import LambdaUpdated

HOUR = PeriodBudget(30.0, "hour")

prices = st.floats(1e-6, 1e6)
amounts = st.floats(0.0, 1e6)


@st.composite
def curves(draw: st.DrawFn) -> Curve:
    points = sorted(draw(st.sets(prices, min_size=1, max_size=6)))
    usd = sorted(draw(st.lists(amounts, min_size=len(points) + 1, max_size=len(points) + 1)))
    return tuple(zip([0.0, *points], reversed(usd), strict=True))


@st.composite
def wishes(draw: st.DrawFn) -> Wish:
    low, high = sorted((draw(amounts), draw(amounts)))
    return Wish(draw(curves()), draw(st.sampled_from([0.0, low])), high)


@given(amounts, st.lists(wishes(), min_size=1, max_size=8))
def test_no_more_is_shared_than_there_is(usd: float, wanted: list[Wish]) -> None:
    found = share(usd, wanted)
    assert math.fsum(found) <= usd * (1.0 + 1e-9) + 1e-9
    enough = math.fsum(wish.least for wish in wanted) < usd
    for dollars, wish in zip(found, wanted, strict=True):
        assert dollars >= 0.0
        if enough:
            assert dollars <= wish.most * (1.0 + 1e-9)
            assert dollars >= wish.least * (1.0 - 1e-6) - 1e-9


@given(curves(), prices, prices)
def test_a_higher_price_never_sells_more(curve: Curve, one: float, other: float) -> None:
    low, high = sorted((one, other))
    assert spent_at(curve, high) <= spent_at(curve, low) * (1.0 + 1e-9) + 1e-9
    assert spent_at(curve, 0.0) == curve[0][1]


def test_a_dollar_earns_the_same_at_every_member() -> None:
    """Two members spend 1/p and 4/p: of 100 dollars 20 and 80."""
    grid = [10.0 ** (k / 10) for k in range(-60, 61)]
    one, four = (
        Wish(tuple((p, weight / p) for p in [1e-7, *grid]), 0.0, 1e9) for weight in (1.0, 4.0)
    )
    assert share(100.0, [one, four]) == pytest.approx([20.0, 80.0], rel=0.02)


def test_what_nobody_wants_is_lent_all_the_same_in_even_shares() -> None:
    none = Wish(((0.0, 0.0),), 0.0, 1e9)
    ten, thirty = (Wish(((0.0, usd), (1.0, 0.0)), 0.0, 1e9) for usd in (10.0, 30.0))
    assert share(80.0, [none, ten, thirty]) == pytest.approx([25.0, 25.0, 30.0])
    assert share(80.0, [none, none]) == pytest.approx([40.0, 40.0])
    at_most = Wish(((0.0, 5.0), (1.0, 0.0)), 0.0, 8.0)
    assert share(80.0, [none, at_most]) == pytest.approx([72.0, 8.0])


def test_curves_together_say_what_each_says() -> None:
    low = ((0.0, 8.0), (1.0, 4.0), (100.0, 0.0))
    high = ((0.0, 6.0), (10.0, 6.0), (1000.0, 0.0))
    found = together([low, high])
    assert found[0] == (0.0, 14.0)
    assert spent_at(found, 1.0) == pytest.approx(10.0, rel=0.02)
    assert together([]) == ()


def report(
    name: str, *, n: int = 0, moves: int = 0, born: int = 0, left: bool = False, **lines: float
) -> Reported:
    held = tuple(
        Held("shop/hour", begin, lines["holds"], lines.get("spent", 0.0))
        for begin in (0.0,)
        if lines
    )
    return Reported("shop", f"router:{name}", born, n, moves, left, held)


def pool(*names: str, config: PoolConfig | None = None) -> Pool:
    """Return a pool of $30 an hour whose members have just joined."""
    found = Pool("shop")
    found.declare(config or PoolConfig((HOUR,)))
    for name in names:
        found.hear(report(name), now=0.0)
    return found


def lent(found: list[tuple[str, Granted]], begin: float = 0.0) -> dict[str, float]:
    """Return what each grant lends of a period."""
    return {
        name.removeprefix("router:"): one.usd
        for name, grant in found
        for one in grant.lines
        if one.begin == begin
    }


def test_of_members_that_said_nothing_all_get_the_same() -> None:
    assert lent(pool("a", "b", "c").lend(now=0.0)) == {"a": 10.0, "b": 10.0, "c": 10.0}


def test_a_newcomer_waits_until_others_have_confirmed_that_they_have_less() -> None:
    shop = pool("a", "b")
    assert lent(shop.lend(now=0.0)) == {"a": 15.0, "b": 15.0}
    for name in ("a", "b"):
        shop.hear(report(name, n=1, moves=1, holds=15.0), now=1.0)
    shop.hear(report("c"), now=1.0)
    less = lent(shop.lend(now=1.0))
    assert less["a"] == less["b"] == pytest.approx(10.0)
    assert less.get("c", 0.0) == 0.0
    shop.hear(report("a", n=2, moves=2, holds=10.0), now=2.0)
    assert lent(shop.lend(now=2.0))["c"] == pytest.approx(5.0)
    # A report that comes again, or late, changes nothing.
    assert not shop.hear(report("a", n=1, moves=1, holds=15.0), now=3.0)


def test_a_silent_member_keeps_its_lease_and_gets_no_longer_one() -> None:
    shop = pool("a", "b")
    shop.lend(now=0.0)
    shop.hear(report("a", n=1, moves=1, holds=15.0), now=1.0)
    for number, now in enumerate((400.0, 800.0, 1390.0)):
        shop.hear(report("a", n=shop.members["router:a"].n, moves=2 + number, holds=15.0), now=now)
        found = dict(shop.lend(now=now))
        assert [one.until for one in found["router:a"].lines] == [now + 600.0]
        (line,) = shop.lines.values()
        assert line.parts["router:b"].until == 600.0
        assert line.exposed_usd == 30.0
    # It says that its lease has ended, and what it has spent: the rest is there for others.
    shop.hear(report("b", n=1, moves=5, holds=4.0, spent=4.0), now=1501.0)
    assert sum(lent(shop.lend(now=1501.0)).values()) > 0.0
    assert line.exposed_usd <= 30.0


def test_a_router_that_comes_back_counts_with_what_it_spent_before() -> None:
    shop = pool("a", "b")
    shop.lend(now=0.0)
    shop.hear(report("a", n=1, moves=9, left=True, holds=6.0, spent=6.0), now=1.0)
    shop.hear(report("a", born=7), now=2.0)
    # What is late of the membership before changes nothing.
    assert not shop.hear(report("a", n=1, moves=10, holds=15.0), now=2.0)
    found = dict(shop.lend(now=2.0))
    assert found["router:a"].born == 7
    (line,) = shop.lines.values()
    assert line.charged_usd == 6.0
    assert line.exposed_usd <= 30.0


def test_bounds_hold_and_must_not_contradict_each_other() -> None:
    config = PoolConfig((HOUR,), shares={"a": Share(0.5, 1.0), "b": Share(0.0, 0.1)})
    found = lent(pool("a", "b", "c", config=config).lend(now=0.0))
    assert found["a"] >= 15.0 - 1e-6
    assert found["b"] <= 3.0 + 1e-6
    with pytest.raises(InvalidConfig, match="at least"):
        PoolConfig((HOUR,), shares={"a": Share(0.6), "b": Share(0.6)})
    with pytest.raises(InvalidConfig, match="same period"):
        PoolConfig((HOUR, HOUR))


def test_the_next_period_is_lent_before_it_begins_and_old_ones_are_forgotten() -> None:
    shop = pool("a")
    shop.hear(report("a"), now=3500.0)
    assert lent(shop.lend(now=3500.0)) == {"a": 30.0}
    assert lent(shop.lend(now=3550.0), 3600.0) == {"a": 30.0}
    for hour in range(2, 12):
        shop.hear(report("a", n=shop.members["router:a"].n, moves=hour), now=3600.0 * hour)
        shop.lend(now=3600.0 * hour + 1.0)
    assert len(shop.lines) <= KEPT


def test_unspent_money_is_carried() -> None:
    shop = pool("a", config=PoolConfig((PeriodBudget(30.0, "hour", carry=5.0),)))
    shop.lend(now=0.0)
    shop.hear(report("a", n=1, moves=1, holds=12.0, spent=12.0), now=3590.0)
    shop.hear(report("a", n=2, moves=2, holds=12.0, spent=12.0), now=3601.0)
    assert lent(shop.lend(now=3602.0), 3600.0) == {"a": 35.0}


def test_a_pool_that_is_let_go_lends_nothing_and_a_budget_that_is_gone_limits_nobody() -> None:
    shop = pool("a")
    shop.lend(now=0.0)
    shop.hear(report("a", n=1, moves=1, holds=30.0, spent=3.0), now=1.0)
    shop.declare(PoolConfig((HOUR, PeriodBudget(9.0, "day"))))
    assert {one.line for _, grant in shop.lend(now=2.0) for one in grant.lines} == {
        "shop/hour",
        "shop/day",
    }
    shop.declare(PoolConfig((PeriodBudget(9.0, "day"),)))
    assert {one.line for _, grant in shop.lend(now=3.0) for one in grant.lines} == {"shop/day"}
    shop.declare(None)
    assert lent(shop.lend(now=4.0))["a"] < 9.0


@pytest.mark.parametrize("spent", [0.0, 3.0])
def test_of_a_pool_that_is_let_go_nothing_stays_lent_that_is_not_spent(spent: float) -> None:
    shop = pool("a")
    usd = lent(shop.lend(now=0.0))["a"]
    shop.declare(None)
    for n in range(1, 60):
        shop.hear(report("a", n=n, moves=n, holds=usd, spent=spent), now=float(n))
        if not (grants := shop.lend(now=float(n))):
            break
        usd = lent(grants)["a"]
    assert usd == spent


def test_money_that_comes_round_in_a_circle_is_not_lent_again() -> None:
    shop = pool("a", config=PoolConfig((HOUR,), parent="top", offset=3))
    (grant,) = (grant for _, grant in shop.lend(now=0.0))
    assert shop.take(Granted("top", 3, 1, grant.lines))
    assert shop.reported(now=1.0) == Reported("top", "pool:shop", 3, 1, shop.moves)


def test_a_pool_is_kept_to_the_bit() -> None:
    shop = pool("a", "b", config=PoolConfig((HOUR,), "top", {"a": Share(0.1, 0.9)}, 60.0, 4))
    shop.lend(now=0.0)
    shop.hear(
        Reported(
            "shop", "router:a", 0, 1, 3, False, (Held("shop/hour", 0.0, 15.0, 0.1, ((0.0, 1.0),)),)
        ),
        now=1.0,
    )
    again = Pool.unpack("shop", shop.pack())
    assert again.pack() == shop.pack()
    assert again.lend(now=9.0) == shop.lend(now=9.0)


def lease(router_id: str, usd: float, *, decided: int = 5, month: int = 12) -> LambdaUpdated:
    """Return what a router says of its lease, of which it expects to spend two thirds."""
    dates = {"begins": f"2026-{month - 1}-01T00:00:00Z", "ends": f"2026-{month}-01T00:00:00Z"}
    names = ("left_usd", "reserved_usd", "requests_left", "requests_low", "requests_high")
    money = {"usd": usd, "charged_usd": usd / 3, "per_request_usd": 0.1, "binds": True}
    ends = {"forecast_usd": usd * 2 / 3, "forecast_low_usd": usd / 2, "forecast_high_usd": usd}
    lent = {"period": "month", "pool": "shop", "line": "shop/month"}
    budget = {**dict.fromkeys(names, 1.0), **dates, **money, **ends, **lent}
    example: Any = LambdaUpdated.model_config["json_schema_extra"]["examples"][0]  # type: ignore[index]
    given = {**example, "router_id": router_id, "decided": decided, "budgets": [budget]}
    return LambdaUpdated.model_validate_json(json.dumps(given))


def test_a_line_says_what_will_be_spent_and_why_leases_are_as_they_are() -> None:
    shop: Document = {"shop": {"budget": {"usd": 100, "per": "month"}}}
    (line,) = lines_of(shop, [lease("a", 50.0, decided=0), lease("b", 50.0, decided=0)]).values()
    assert line.forecast_usd is None and "even: no traffic" in (line.why or "")
    asked = [lease("a", 30.0), lease("b", 60.0, decided=0), lease("gone", 90.0, month=11)]
    (line,) = lines_of(shop, asked).values()
    # What a router says of a period that has ended is not of this one.
    assert line.routers.keys() == {"a", "b"} and line.charged_usd == pytest.approx(30.0)
    assert line.forecast_usd == pytest.approx((60.0, 45.0, 90.0))
    assert "shares are even" in (line.why or "") and line.unasked == {"b"}
    (line,) = lines_of(shop, [lease("a", 130.0), lease("b", 150.0)]).values()
    assert "where a dollar earns most" in (line.why or "")
    (line,) = lines_of(shop, [lease("a", 330.0)]).values()
    assert line.forecast_usd is None and "nothing is left" in (line.why or "")
    (line,) = lines_of(shop, []).values()
    assert (line.why, line.ends, line.forecast_usd) == (None, None, None)
