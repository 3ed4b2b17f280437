"""Pools: leases add up, go where a dollar earns most, and are never more than the pool."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from doors.pools.pool_lines import lines_of
from ground.json_values import Document
from router_state.errors import ImplausibleNumber, InvalidConfig, TooManyMembers
from router_state.periods.holdings import Grant, Granted, Holdings
from router_state.periods.reporting import MOST_REPORTED_USD, Curve, Held, Reported
from router_state.periods.spending import PeriodBudget
from router_state.pools import pieces
from router_state.pools.pool import LINES_KEPT, MOST_LINES, Pool
from router_state.pools.pool_config import PoolConfig, Share
from router_state.pools.pool_member import MOST_MEMBERS, Member
from router_state.pools.sharing import Demand, share, spent_at, together
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
def demands(draw: st.DrawFn) -> Demand:
    low, high = sorted((draw(amounts), draw(amounts)))
    return Demand(draw(curves()), draw(st.sampled_from([0.0, low])), high)


@given(amounts, st.lists(demands(), min_size=1, max_size=8))
def test_no_more_is_shared_than_there_is(usd: float, wanted: list[Demand]) -> None:
    found = share(usd, wanted)
    assert math.fsum(found) <= usd * (1.0 + 1e-9) + 1e-9
    enough = math.fsum(demand.least for demand in wanted) < usd
    for dollars, demand in zip(found, wanted, strict=True):
        assert dollars >= 0.0
        if enough:
            assert dollars <= demand.most * (1.0 + 1e-9)
            assert dollars >= demand.least * (1.0 - 1e-6) - 1e-9


@given(curves(), prices, prices)
def test_a_higher_price_never_sells_more(curve: Curve, one: float, other: float) -> None:
    low, high = sorted((one, other))
    assert spent_at(curve, high) <= spent_at(curve, low) * (1.0 + 1e-9) + 1e-9
    assert spent_at(curve, 0.0) == curve[0][1]


def test_a_dollar_earns_the_same_at_every_member() -> None:
    """Two members spend 1/p and 4/p: of 100 dollars 20 and 80."""
    grid = [10.0 ** (k / 10) for k in range(-60, 61)]
    one, four = (
        Demand(tuple((p, weight / p) for p in [1e-7, *grid]), 0.0, 1e9) for weight in (1.0, 4.0)
    )
    assert share(100.0, [one, four]) == pytest.approx([20.0, 80.0], rel=0.02)


def test_what_nobody_wants_is_lent_all_the_same_in_even_shares() -> None:
    none = Demand(((0.0, 0.0),), 0.0, 1e9)
    ten, thirty = (Demand(((0.0, usd), (1.0, 0.0)), 0.0, 1e9) for usd in (10.0, 30.0))
    assert share(80.0, [none, ten, thirty]) == pytest.approx([25.0, 25.0, 30.0])
    assert share(80.0, [none, none]) == pytest.approx([40.0, 40.0])
    at_most = Demand(((0.0, 5.0), (1.0, 0.0)), 0.0, 8.0)
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
        found.take_report(report(name), now=0.0)
    return found


def granted(found: list[tuple[str, Granted]], begin: float = 0.0) -> dict[str, float]:
    """Return the dollars of each grant of a period."""
    return {
        name.removeprefix("router:"): one.usd
        for name, grant in found
        for one in grant.lines
        if one.begin == begin
    }


def test_of_members_that_said_nothing_all_get_the_same() -> None:
    assert granted(pool("a", "b", "c").grant_all(now=0.0)) == {"a": 10.0, "b": 10.0, "c": 10.0}


def test_a_newcomer_waits_until_others_have_confirmed_that_they_have_less() -> None:
    shop = pool("a", "b")
    assert granted(shop.grant_all(now=0.0)) == {"a": 15.0, "b": 15.0}
    for name in ("a", "b"):
        shop.take_report(report(name, n=1, moves=1, holds=15.0), now=1.0)
    shop.take_report(report("c"), now=1.0)
    less = granted(shop.grant_all(now=1.0))
    assert less["a"] == less["b"] == pytest.approx(10.0)
    assert less.get("c", 0.0) == 0.0
    shop.take_report(report("a", n=2, moves=2, holds=10.0), now=2.0)
    assert granted(shop.grant_all(now=2.0))["c"] == pytest.approx(5.0)
    # A report that comes again, or late, changes nothing.
    assert not shop.take_report(report("a", n=1, moves=1, holds=15.0), now=3.0)


def test_a_silent_member_keeps_its_lease_and_gets_no_longer_one() -> None:
    shop = pool("a", "b")
    shop.grant_all(now=0.0)
    shop.take_report(report("a", n=1, moves=1, holds=15.0), now=1.0)
    for number, now in enumerate((400.0, 800.0, 1390.0)):
        shop.take_report(
            report("a", n=shop.members["router:a"].n, moves=2 + number, holds=15.0), now=now
        )
        found = dict(shop.grant_all(now=now))
        assert [one.until for one in found["router:a"].lines] == [now + 600.0]
        (line,) = shop.lines.values()
        assert line.grants["router:b"].until == 600.0
        assert line.exposed_usd == 30.0
    # It says that its lease has ended, and what it has spent: the rest is there for others.
    shop.take_report(report("b", n=1, moves=5, holds=4.0, spent=4.0), now=1501.0)
    assert sum(granted(shop.grant_all(now=1501.0)).values()) > 0.0
    assert line.exposed_usd <= 30.0


def test_a_router_that_comes_back_counts_with_what_it_spent_before() -> None:
    shop = pool("a", "b")
    shop.grant_all(now=0.0)
    shop.take_report(report("a", n=1, moves=9, left=True, holds=6.0, spent=6.0), now=1.0)
    shop.take_report(report("a", born=7), now=2.0)
    # What is late of the membership before changes nothing.
    assert not shop.take_report(report("a", n=1, moves=10, holds=15.0), now=2.0)
    found = dict(shop.grant_all(now=2.0))
    assert found["router:a"].born == 7
    (line,) = shop.lines.values()
    assert line.charged_usd == 6.0
    assert line.exposed_usd <= 30.0


def test_bounds_hold_and_must_not_contradict_each_other() -> None:
    config = PoolConfig((HOUR,), shares={"a": Share(0.5, 1.0), "b": Share(0.0, 0.1)})
    found = granted(pool("a", "b", "c", config=config).grant_all(now=0.0))
    assert found["a"] >= 15.0 - 1e-6
    assert found["b"] <= 3.0 + 1e-6
    with pytest.raises(InvalidConfig, match="at least"):
        PoolConfig((HOUR,), shares={"a": Share(0.6), "b": Share(0.6)})
    with pytest.raises(InvalidConfig, match="same period"):
        PoolConfig((HOUR, HOUR))


def test_the_next_period_is_lent_before_it_begins_and_old_ones_are_forgotten() -> None:
    shop = pool("a")
    shop.take_report(report("a"), now=3500.0)
    assert granted(shop.grant_all(now=3500.0)) == {"a": 30.0}
    assert granted(shop.grant_all(now=3550.0), 3600.0) == {"a": 30.0}
    for hour in range(2, 12):
        shop.take_report(report("a", n=shop.members["router:a"].n, moves=hour), now=3600.0 * hour)
        shop.grant_all(now=3600.0 * hour + 1.0)
    assert len(shop.lines) <= LINES_KEPT


def test_unspent_money_is_carried() -> None:
    shop = pool("a", config=PoolConfig((PeriodBudget(30.0, "hour", carry=5.0),)))
    shop.grant_all(now=0.0)
    shop.take_report(report("a", n=1, moves=1, holds=12.0, spent=12.0), now=3590.0)
    shop.take_report(report("a", n=2, moves=2, holds=12.0, spent=12.0), now=3601.0)
    assert granted(shop.grant_all(now=3602.0), 3600.0) == {"a": 35.0}


def test_a_pool_that_is_let_go_lends_nothing_and_a_budget_that_is_gone_limits_nobody() -> None:
    shop = pool("a")
    shop.grant_all(now=0.0)
    shop.take_report(report("a", n=1, moves=1, holds=30.0, spent=3.0), now=1.0)
    shop.declare(PoolConfig((HOUR, PeriodBudget(9.0, "day"))))
    assert {one.line for _, grant in shop.grant_all(now=2.0) for one in grant.lines} == {
        "shop/hour",
        "shop/day",
    }
    shop.declare(PoolConfig((PeriodBudget(9.0, "day"),)))
    assert {one.line for _, grant in shop.grant_all(now=3.0) for one in grant.lines} == {"shop/day"}
    shop.declare(None)
    assert granted(shop.grant_all(now=4.0))["a"] < 9.0


@pytest.mark.parametrize("spent", [0.0, 3.0])
def test_of_a_pool_that_is_let_go_nothing_stays_lent_that_is_not_spent(spent: float) -> None:
    shop = pool("a")
    usd = granted(shop.grant_all(now=0.0))["a"]
    shop.declare(None)
    for n in range(1, 60):
        shop.take_report(report("a", n=n, moves=n, holds=usd, spent=spent), now=float(n))
        if not (grants := shop.grant_all(now=float(n))):
            break
        usd = granted(grants)["a"]
    assert usd == spent


def test_money_that_comes_round_in_a_circle_is_not_lent_again() -> None:
    shop = pool("a", config=PoolConfig((HOUR,), parent="top", offset=3))
    (grant,) = (grant for _, grant in shop.grant_all(now=0.0))
    assert shop.take(Granted("top", 3, 1, grant.lines))
    assert shop.reported(now=1.0) == Reported("top", "pool:shop", 3, 1, shop.moves)


def test_a_pool_is_kept_to_the_bit() -> None:
    shop = pool("a", "b", config=PoolConfig((HOUR,), "top", {"a": Share(0.1, 0.9)}, 60.0, 4))
    shop.grant_all(now=0.0)
    shop.take_report(
        Reported(
            "shop", "router:a", 0, 1, 3, False, (Held("shop/hour", 0.0, 15.0, 0.1, ((0.0, 1.0),)),)
        ),
        now=1.0,
    )
    again = pieces.unpack("shop", pieces.pack(shop))
    assert pieces.pack(again) == pieces.pack(shop)
    assert again.grant_all(now=9.0) == shop.grant_all(now=9.0)


ZONES = ("UTC", "Europe/Berlin", "Asia/Tokyo", "America/New_York", "Asia/Kolkata")


class Tower:
    """A router in pools one above the other, all of which speak to each other at once."""

    def __init__(self, *budgets: tuple[PeriodBudget, ...]) -> None:
        self.pools = [Pool(f"p{k}") for k in range(len(budgets))]
        for k, (one, own) in enumerate(zip(self.pools, budgets, strict=True)):
            one.declare(PoolConfig(own, f"p{k - 1}" if k else None, offset=k))
        self.leases = Holdings.none(self.pools[-1].pool_id, born=5)

    def step(self, now: float, *, silent: Sequence[int] = ()) -> None:
        """Let everybody speak, but for the pools that are silent."""
        held = tuple(
            Held(line.line, begin, holding.usd if now < holding.until else 0.0, 0.0, ((0.0, 1.0),))
            for line in self.leases.lines
            if line.line
            for begin, holding in line.holdings.items()
        )
        self.leases.moves += 1
        n, moves = self.leases.n, self.leases.moves
        own = Reported(self.leases.pool_id, "router:r", 5, n, moves, False, held)
        self.pools[-1].take_report(own, now=now)
        for above, below in pairwise(self.pools):
            report = below.reported(now=now)
            assert report is not None
            above.take_report(report, now=now)
        for k, one in enumerate(self.pools):
            for _, grant in () if k in silent else one.grant_all(now=now):
                (self.pools[k + 1] if k + 1 < len(self.pools) else self.leases).take(grant)

    def bound(self, now: float) -> dict[str, float]:
        """Return what each pool leaves the router at a time, of the tightest of its budgets."""
        found: dict[str, float] = {}
        for line in self.leases.lines:
            account = line.at(now, seq=0)
            if line.line and account is not None:
                name = line.line.partition("/")[0]
                found[name] = min(found.get(name, math.inf), line.usd(account, now))
        return found


def test_a_budget_above_binds_in_every_period_however_many_budgets_there_are() -> None:
    every = tuple(PeriodBudget(1.0, "hour", zone) for zone in ZONES)
    wide = tuple(PeriodBudget(1e6, "hour", zone) for zone in ZONES)
    tower, start = Tower(every, wide, wide, wide), 1.8e9
    for minute in range(8 * 60):
        now = start + 60.0 * minute
        tower.step(now)
        if minute > 5:
            assert tower.bound(now)["p0"] <= 1.0 + 1e-6
            assert len(tower.pools[-1].lines) <= 2 * MOST_LINES


def test_a_budget_above_binds_though_its_pool_says_nothing_when_a_period_begins() -> None:
    tower, start = Tower((PeriodBudget(1.0, "hour"),), (PeriodBudget(1e6, "day"),)), 1.8e9
    for minute in range(150):
        tower.step(start + 60.0 * minute, silent=(0,) if minute > 30 else ())
        if minute > 5:
            assert tower.bound(start + 60.0 * minute)["p0"] <= 1.0
    assert tower.bound(start + 60.0 * 149)["p0"] == 0.0
    tower.step(start + 60.0 * 150)
    tower.step(start + 60.0 * 150 + 1.0)
    assert tower.bound(start + 60.0 * 150 + 1.0)["p0"] > 0.0


def test_a_budget_above_that_is_gone_limits_nobody_once_its_period_has_ended() -> None:
    tower, start = Tower((HOUR, PeriodBudget(9.0, "day")), (PeriodBudget(1e6, "day"),)), 1.8e9
    for minute in range(180):
        if minute == 10:
            tower.pools[0].declare(PoolConfig((PeriodBudget(9.0, "day"),), offset=7))
        tower.step(start + 60.0 * minute)
    assert {line.line for line in tower.leases.lines} == {"p0/day", "p1/day"}


def test_more_budgets_than_a_pool_can_count_are_refused_and_none_is_left_out() -> None:
    own = tuple(
        PeriodBudget(1.0, per, zone) for zone in ZONES for per in ("hour", "day", "week", "month")
    )[:17]
    low = Pool("low")
    low.declare(PoolConfig(own, parent="top", offset=1))
    lines = tuple(
        Grant("top/day", "day", "UTC", float(k), None, 0.0, 86_400.0, 1.0, 600.0) for k in range(16)
    )
    before = pieces.pack(low)
    with pytest.raises(InvalidConfig, match="33 budgets"):
        low.take(Granted("top", 1, 1, lines))
    assert pieces.pack(low) == before
    assert low.take(Granted("top", 1, 1, lines[1:]))
    with pytest.raises(InvalidConfig, match="33 budgets"):
        low.declare(PoolConfig((*own, PeriodBudget(2.0, "day", "Asia/Seoul")), "top", offset=2))
    assert low.config is not None and low.config.offset == 1


def test_a_router_that_left_a_spent_pool_and_comes_back_has_a_lease_of_nothing() -> None:
    shop = pool("a")
    shop.grant_all(now=0.0)
    spent = 30.0000007
    shop.take_report(report("a", n=1, moves=1, left=True, holds=spent, spent=spent), now=1.0)
    shop.grant_all(now=1.0)
    shop.take_report(report("a", born=9), now=2.0)
    for second in range(2, 9):
        assert all(usd == 0.0 for usd in granted(shop.grant_all(now=float(second))).values())
    assert shop.members["router:a"].n <= 2


def test_a_member_too_many_and_a_grant_beyond_all_numbers_are_refused() -> None:
    shop = pool("a")
    with pytest.raises(ImplausibleNumber):
        shop.take_report(report("ghost", n=2**53 - 1), now=0.0)
    shop.members |= {f"router:{k}": Member(0, left=True) for k in range(MOST_MEMBERS - 1)}
    with pytest.raises(TooManyMembers, match="a pool of their own"):
        shop.take_report(report("b"), now=0.0)
    assert shop.take_report(report("a", moves=1), now=1.0)


@given(st.lists(st.tuples(st.floats(0, 1e12), st.floats(0, 1e12)), min_size=1, max_size=5))
def test_a_curve_that_somebody_made_up_is_read(points: list[tuple[float, float]]) -> None:
    found = share(10.0, [Demand(tuple(points), 0.0, 1e9), Demand(((0.0, 1.0),), 0.0, 1e9)])
    assert all(map(math.isfinite, found)) and math.fsum(found) <= 10.0 * (1.0 + 1e-9)
    assert all(0.0 <= usd <= MOST_REPORTED_USD for _, usd in together([tuple(points)]))


def lease(router_id: str, usd: float, *, decided: int = 5, month: int = 12) -> LambdaUpdated:
    """Return what a router says of its lease, of which it expects to spend two thirds."""
    dates = {"begins": f"2026-{month - 1}-01T00:00:00Z", "ends": f"2026-{month}-01T00:00:00Z"}
    names = ("left_usd", "reserved_usd", "requests_left", "requests_low", "requests_high")
    money = {"usd": usd, "charged_usd": usd / 3, "per_request_usd": 0.1, "binds": True}
    ends = {"forecast_usd": usd * 2 / 3, "forecast_low_usd": usd / 2, "forecast_high_usd": usd}
    of_pool = {"period": "month", "pool": "shop", "line": "shop/month"}
    budget = {**dict.fromkeys(names, 1.0), **dates, **money, **ends, **of_pool}
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


def test_members_that_left_are_forgotten_and_what_they_spent_is_not() -> None:
    month = PeriodBudget(30.0, "month")
    shop = pool(config=PoolConfig((month,), shares={"named": Share(0.0, 0.5)}))
    names = [*(f"t{k}" for k in range(20)), "named"]
    for second, name in enumerate(names):
        at = float(second)
        shop.take_report(report(name), now=at)
        shop.grant_all(now=at)
        held = (Held("shop/month", 0.0, 1.0, 1.0),)
        n = shop.members[f"router:{name}"].n
        shop.take_report(Reported("shop", f"router:{name}", 0, n, 1, True, held), now=at)
    shop.take_report(report("silent"), now=30.0)
    shop.grant_all(now=500.0)
    assert len(shop.members) == 22
    shop.grant_all(now=700.0)
    # One that said nothing more keeps its lease, so it stays until that is over.
    assert shop.members.keys() == {"router:named", "router:silent"}
    (line,) = shop.lines.values()
    assert line.charged_usd == pytest.approx(21.0)
    again = pieces.unpack("shop", pieces.pack(shop))
    assert pieces.pack(again) == pieces.pack(shop) and again.lines.keys() == shop.lines.keys()
    # Who comes back is a new member, beside what it has spent.
    shop.take_report(report("t3", born=9), now=701.0)
    assert sum(granted(shop.grant_all(now=701.0)).values()) <= 9.0 + 1e-6
    shop.declare(None)
    for day in range(1, 200):
        shop.grant_all(now=day * 86_400.0)
    assert shop.is_done


def test_a_pool_of_many_that_come_and_go_stays_small() -> None:
    shop = pool(config=PoolConfig((HOUR,)))
    for k in range(3_000):
        now = 10.0 * k
        shop.take_report(report(f"t{k}"), now=now)
        shop.grant_all(now=now)
        n = shop.members[f"router:t{k}"].n
        shop.take_report(report(f"t{k}", n=n, moves=1, left=True), now=now + 1.0)
    assert len(shop.members) < 100
    assert all(len(line.grants) < 100 for line in shop.lines.values())
