"""What a request may cost by the calendar: traffic that is still to come, accounts, the end of the
money, the floor of rewards."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.played import Played
from router_state.changes import Journal
from router_state.config import Price, RouterConfig
from router_state.errors import BudgetSpent, InvalidConfig, NoAffordableModel
from router_state.pacing.dollar_dual import UNREACHABLE
from router_state.periods.accounts import Account, Accounts
from router_state.periods.floor import Kept, meet
from router_state.periods.hourly_traffic import FLAT, Shape, Traffic
from router_state.periods.period_dual import PeriodDual
from router_state.periods.spending import ExpectedTraffic, PeriodBudget, Spending
from tests.router_state.core_reference import context, declaration, freeze, thaw
from tests.router_state.periods.ledgers import declaring, ledger_of

HOUR, DAY = 3600.0, 86_400.0
MONDAY = datetime(2026, 6, 1, tzinfo=UTC).timestamp()
MEANS = {"cheap": 1e-5, "middle": 3e-4, "dear": 3e-3}
WORTH = {"cheap": 0.6, "middle": 0.75, "dear": 0.9}


def router(spending: Spending, budget: float | None = None, **more: Any) -> Played:
    return Played.start(config(spending, budget, **more))


def config(spending: Spending, budget: float | None = None, **more: Any) -> RouterConfig:
    return declaring(declaration(profile="live", budget=budget, **more), spending)


def serve(
    engine: Played, times: list[float], *, late: int = 20, seed: int = 0
) -> list[tuple[str, float]]:
    """Answer requests at these times, whose bills and rewards come after `late` others; return
    models and bills."""
    rng, served = np.random.default_rng(seed), []
    first = engine.state.seq
    for i, now in enumerate(times):
        record = engine.decide(f"{first + i}", context(*rng.normal(0.0, 0.3, 3)), now=now)
        served.append((record.model, MEANS[record.model] * rng.lognormal(-0.125, 0.5)))
        if i >= late:
            feed(engine, first + i - late, *served[i - late], rng)
    for i in range(max(len(times) - late, 0), len(times)):
        feed(engine, first + i, *served[i], rng)
    return served


def feed(engine: Played, i: int, model: str, bill: float, rng: np.random.Generator) -> None:
    engine.settle(str(i), cost_usd=bill)
    engine.learn(str(i), reward=float(np.clip(WORTH[model] + rng.normal(0, 0.1), 0, 1)))


def evenly(begin: float, end: float, n: int) -> list[float]:
    return [begin + (end - begin) * (i + 0.5) / n for i in range(n)]


# Traffic.


def test_a_steady_traffic_is_foreseen() -> None:
    traffic = Traffic(ExpectedTraffic(), "UTC", Journal())
    for now in evenly(MONDAY, MONDAY + 2 * DAY, 2000):
        traffic.note(now)
    left = traffic.left(MONDAY + 2 * DAY, MONDAY + 7 * DAY, first=0.0)
    assert left == pytest.approx(5000, rel=0.05)
    assert 1.0 < traffic.spread(left, 5 * DAY) < 2.0


def test_the_hours_of_the_week_are_learned() -> None:
    traffic = Traffic(ExpectedTraffic(), "UTC", Journal())
    for day in range(14):
        if day % 7 < 5:
            for now in evenly(MONDAY + day * DAY + 9 * HOUR, MONDAY + day * DAY + 17 * HOUR, 400):
                traffic.note(now)
    friday = MONDAY + 18 * DAY
    # Of the rest of this week the weekend, of which next to nothing is expected.
    assert traffic.left(friday + 18 * HOUR, friday + 3 * DAY, first=0.0) < 300
    monday = traffic.left(friday + 3 * DAY, friday + 4 * DAY, first=0.0)
    assert monday == pytest.approx(400, rel=0.4)


def test_a_launch_is_believed_within_two_days_and_an_outage_is_not() -> None:
    traffic = Traffic(ExpectedTraffic(hours=(1.0,) * 168), "UTC", Journal())
    for now in evenly(MONDAY, MONDAY + 7 * DAY, 7000):
        traffic.note(now)
    after = MONDAY + 9 * DAY
    assert traffic.left(after, after + DAY, first=0.0) == pytest.approx(1000, rel=0.1)
    for now in evenly(after, after + 2 * DAY, 6000):
        traffic.note(now)
    assert traffic.left(after + 2 * DAY, after + 3 * DAY, first=0.0) > 2500


def test_a_burst_of_first_requests_is_paced_for_a_while() -> None:
    """Each may cost what is left ÷ those that are expected, so that they together spend little."""
    traffic = Traffic(ExpectedTraffic(), "UTC", Journal())
    shares = 0.0
    for k in range(5000):
        now = MONDAY + k * 1e-3
        shares += 1.0 / (1.0 + traffic.left(now, MONDAY + 30 * DAY, first=30 * DAY / 1000))
        traffic.note(now)
    assert shares < 0.02


def test_declared_traffic_is_expected_from_the_first_request_on() -> None:
    hours = tuple(2.0 if k % 24 < 12 else 0.0 for k in range(168))
    traffic = Traffic(ExpectedTraffic(7000.0, hours), "UTC", Journal())
    assert traffic.left(MONDAY, MONDAY + 7 * DAY, first=0.0) == pytest.approx(7000)
    assert traffic.left(MONDAY + 12 * HOUR, MONDAY + DAY, first=0.0) == 0.0


@given(
    st.lists(st.floats(0.0, 1.0), min_size=168, max_size=168).filter(any),
    st.floats(0.0, 400_000.0),
    st.floats(0.0, 1000.0),
)
def test_shares_add_up(shares: list[float], begin: float, hours: float) -> None:
    shape = Shape(shares)
    middle = begin + hours / 3.0
    parts = shape.until(middle) - shape.until(begin) + shape.until(begin + hours)
    assert parts - shape.until(middle) == pytest.approx(
        shape.until(begin + hours) - shape.until(begin), abs=1e-6
    )
    assert shape.until(begin + 168.0) - shape.until(begin) == pytest.approx(168.0, abs=1e-6)
    assert FLAT.until(begin) == pytest.approx(begin)


@given(st.lists(st.floats(-1e12, 1e12), max_size=30), st.floats(0.0, 3e9))
def test_clocks_may_jump(times: list[float], now: float) -> None:
    traffic = Traffic(ExpectedTraffic(), "America/New_York", Journal())
    for moment in times:
        traffic.note(moment)
        left = traffic.left(now, now + DAY, first=60.0)
        assert 0.0 <= left < math.inf
    other = Traffic(ExpectedTraffic(), "America/New_York", Journal())
    other.restore(traffic.numbers(), traffic.week())
    assert other.left(now, now + DAY, first=60.0) == traffic.left(now, now + DAY, first=60.0)


# Accounts.


def test_what_is_carried_is_what_was_left() -> None:
    for carry, carried in ((0.0, 0.0), (math.inf, 7.0), (5.0, 5.0)):
        accounts = Accounts(PeriodBudget(10.0, "day", carry=carry))
        accounts.open(Account(MONDAY, MONDAY + DAY, charged_usd=3.0))
        found = accounts.at(MONDAY + DAY, seq=1)
        assert found is not None
        assert found.carried_usd == carried


def test_a_router_that_comes_back_after_two_periods_gets_what_they_left() -> None:
    for carry, carried in ((0.0, 0.0), (math.inf, 27.0), (15.0, 15.0)):
        accounts = Accounts(PeriodBudget(10.0, "day", carry=carry))
        accounts.open(Account(MONDAY, MONDAY + DAY, charged_usd=3.0))
        found = accounts.at(MONDAY + 3.5 * DAY, seq=1)
        assert found is not None
        assert found.carried_usd == carried
    never = Accounts(PeriodBudget(1.0, "hour", carry=math.inf))
    never.open(Account(0.0, HOUR))
    found = never.at(MONDAY, seq=1)
    assert found is not None
    assert found.carried_usd <= 1001.0


# A router.


@pytest.mark.parametrize("late", [0, 30, 300])
def test_a_day_ends_with_its_money_spent(late: int) -> None:
    engine = router(Spending((PeriodBudget(2.0, "day"),)))
    serve(engine, evenly(MONDAY, MONDAY + DAY, 4000), late=late)
    served = serve(engine, evenly(MONDAY + DAY, MONDAY + 2 * DAY, 4000), late=late, seed=1)
    assert 0.97 < sum(bill for _, bill in served) / 2.0 <= 1.005
    # No cliff: the last tenth is served as the others are.
    shares = [
        sum(model == "cheap" for model, _ in part) / len(part)
        for part in (served[:3600], served[3600:])
    ]
    assert shares[1] - shares[0] < 0.3


def test_the_tightest_budget_binds() -> None:
    engine = router(Spending((PeriodBudget(100.0, "month"), PeriodBudget(1.0, "day"))))
    served = serve(engine, evenly(MONDAY, MONDAY + DAY, 2000))
    assert sum(bill for _, bill in served) == pytest.approx(1.0, rel=0.1)
    ledger = ledger_of(engine)
    standings = ledger.standings(MONDAY + DAY + HOUR, seq=engine.state.seq + 1)
    assert standings[0].per_request_usd > standings[1].per_request_usd


def test_the_end_of_the_money_is_as_declared() -> None:
    times = evenly(MONDAY, MONDAY + HOUR, 300)
    cheapest = router(Spending((PeriodBudget(0.0, "day"),)))
    serve(cheapest, times)
    later = serve(cheapest, evenly(MONDAY + HOUR, MONDAY + 2 * HOUR, 100), seed=1)
    assert {model for model, _ in later} == {"cheap"}
    assert cheapest.state.lambda_t == UNREACHABLE
    alerts = cheapest.take_alerts()
    assert [alert.kind for alert in alerts].count("budget_spent") == 1
    refusing = router(Spending((PeriodBudget(0.0, "day"),), "refuse"))
    with pytest.raises(BudgetSpent):
        refusing.decide("a", context(0, 0, 0), now=MONDAY)
    assert refusing.state.seq == 0
    # Another day, another budget; of nothing too.
    overrunning = router(Spending((PeriodBudget(0.3, "day"),), "overrun"))
    serve(overrunning, evenly(MONDAY, MONDAY + 12 * HOUR, 1000))
    rush = serve(overrunning, evenly(MONDAY + DAY - HOUR, MONDAY + DAY, 2000), seed=1)
    assert {model for model, _ in rush[-200:]} > {"cheap"}


def test_a_budget_that_is_over_leaves_nothing() -> None:
    budget = PeriodBudget(1.0, None, starts=MONDAY, until=MONDAY + DAY)
    engine = router(Spending((budget,)))
    serve(engine, evenly(MONDAY, MONDAY + DAY, 300))
    after = serve(engine, evenly(MONDAY + DAY, MONDAY + 2 * DAY, 100), seed=1)
    assert {model for model, _ in after[-50:]} == {"cheap"}
    before = router(Spending((budget,)))
    serve(before, evenly(MONDAY - DAY, MONDAY, 300))
    assert before.state.lambda_t == 0.0


def test_another_budget_in_mid_period_keeps_what_was_charged() -> None:
    engine = router(Spending((PeriodBudget(2.0, "day"),)))
    first = serve(engine, evenly(MONDAY, MONDAY + 12 * HOUR, 2000))
    engine.configure(config(Spending((PeriodBudget(1.5, "day"),))), now=MONDAY + 12 * HOUR)
    then = serve(engine, evenly(MONDAY + 12 * HOUR, MONDAY + DAY, 2000), seed=1)
    assert sum(bill for _, bill in first) < 1.5
    assert sum(bill for _, bill in [*first, *then]) == pytest.approx(1.5, rel=0.04)


def test_a_bill_of_the_period_before_is_charged_to_that_one() -> None:
    engine = router(Spending((PeriodBudget(2.0, "day"),)))
    engine.decide("a", context(0, 0, 0), now=MONDAY + DAY - 1.0)
    engine.decide("b", context(0, 0, 0), now=MONDAY + DAY + 1.0)
    ledger = ledger_of(engine)
    before, after = ledger.budgets[0].kept
    charged = after.charged_usd
    engine.settle("a", cost_usd=0.5)
    assert (before.charged_usd, before.waiting, after.charged_usd) == (0.5, 0, charged)


def test_a_bill_under_a_clock_before_the_calendar_is_settled() -> None:
    engine = router(Spending((PeriodBudget(2.0, "day"),)))
    engine.decide("a", context(0, 0, 0), now=-30.0 * HOUR)
    engine.settle("a", cost_usd=0.5)
    ledger = ledger_of(engine)
    (account,) = ledger.budgets[0].kept
    assert (account.charged_usd, account.waiting) == (0.5, 0)


def test_a_call_may_cost_so_much_at_most() -> None:
    spending = Spending(max_cost_per_request_usd=1e-3)
    engine = router(spending)
    serve(engine, evenly(MONDAY, MONDAY + HOUR, 300))
    served = serve(engine, evenly(MONDAY + HOUR, MONDAY + DAY, 200), seed=1)
    models = [model for model, _ in served]
    # The dear one is the best, and would be called without a limit: a dollar is worth nothing here.
    assert "dear" not in models
    assert models.count("middle") > 150
    nothing = router(Spending(max_cost_per_request_usd=1e-12))
    with pytest.raises(NoAffordableModel, match="max_cost_per_request_usd"):
        nothing.decide("a", context(0, 0, 0), now=MONDAY)


def test_a_budget_per_request_beside_a_period_s_binds_where_it_is_tighter() -> None:
    engine = router(Spending((PeriodBudget(1e6, "month"),)), budget=3e-4)
    serve(engine, evenly(MONDAY, MONDAY + DAY, 1500))
    served = serve(engine, evenly(MONDAY + DAY, MONDAY + 2 * DAY, 1500), seed=1)
    assert sum(bill for _, bill in served) / 1500 == pytest.approx(3e-4, rel=0.1)


def test_a_router_goes_on_to_the_bit_from_what_is_stored() -> None:
    engine = router(Spending((PeriodBudget(1.0, "day"),), min_of_best=0.95))
    serve(engine, evenly(MONDAY, MONDAY + DAY, 400))
    other = thaw(freeze(engine), {k: r.x for k, r in engine.records.items() if r.x is not None})
    for one in (engine, other):
        serve(one, evenly(MONDAY + DAY, MONDAY + 2 * DAY, 400), seed=1)
    assert freeze(other) == freeze(engine)


def test_without_budgets_of_a_period_nothing_of_them_is_stored() -> None:
    engine = Played.start(declaration(profile="live"))
    assert not [name for name in freeze(engine) if "periods" in name or "hours" in name]
    engine.configure(config(Spending((PeriodBudget(1.0, "day"),))), now=MONDAY)
    engine.decide("a", context(0, 0, 0), now=MONDAY)
    assert isinstance(engine.state.pacer, PeriodDual)
    engine.configure(declaration(profile="live"), now=MONDAY)
    assert not isinstance(engine.state.pacer, PeriodDual)
    assert not [name for name in freeze(engine) if "periods" in name or "hours" in name]


# The floor of rewards.


def test_a_floor_takes_the_cheapest_choice_above_it() -> None:
    costs = np.array([[1.0, 2.0, 10.0]] * 4)
    means = np.array([[0.5, 0.7, 0.8], [0.5, 0.6, 0.8], [0.7, 0.7, 0.9], [0.2, 0.9, 0.9]])
    for floor in (0.0, 0.5, 0.6, 0.7, 0.75, 0.8):
        met = meet(Spending(min_reward=floor), Kept(0.0, 0.0), means, means, costs)
        assert met.reward >= floor
        # The best of all choices by brute force, on the hull that prices reach.
        cheaper = [
            (won, paid)
            for price in np.geomspace(1e-4, 10.0, 2000)
            for rows in [(means - price * costs).argmax(1)]
            for won in [means[range(4), rows].mean()]
            for paid in [costs[range(4), rows].mean()]
            if won >= floor
        ]
        assert met.usd == pytest.approx(min(paid for _, paid in cheaper))


def test_a_floor_is_held_on_average_and_costs_little() -> None:
    engine = router(Spending(min_reward=0.7))
    serve(engine, evenly(MONDAY, MONDAY + DAY, 1000))
    served = serve(engine, evenly(MONDAY + DAY, MONDAY + 2 * DAY, 1000), seed=1)
    assert np.mean([WORTH[model] for model, _ in served]) == pytest.approx(0.7, abs=0.02)
    assert sum(bill for _, bill in served) / 1000 < 2.0 * MEANS["middle"]


def test_a_budget_wins_over_a_floor_and_says_what_it_would_take() -> None:
    engine = router(Spending((PeriodBudget(5.0, "day"),), min_reward=0.72))
    serve(engine, evenly(MONDAY, MONDAY + DAY, 1500))
    # All models are known by now.
    short = Spending((PeriodBudget(0.05, "day"),), min_reward=0.72)
    engine.configure(config(short), now=MONDAY + DAY)
    served = serve(engine, evenly(MONDAY + DAY, MONDAY + 2 * DAY, 1500), seed=1)
    assert sum(bill for _, bill in served) <= 0.0505
    found = [alert for alert in engine.take_alerts() if alert.kind == "goals_contradict"]
    assert found
    assert found[-1].size > 0.03
    needed = found[-1].evidence["needed_budget_usd"]
    assert isinstance(needed, float)
    assert 0.2 < needed < 1.0


def test_a_floor_that_no_model_reaches_calls_the_best() -> None:
    engine = router(Spending(min_reward=1.0))
    serve(engine, evenly(MONDAY, MONDAY + DAY, 600))
    served = serve(engine, evenly(MONDAY + DAY, MONDAY + 2 * DAY, 300), seed=1)
    assert sum(model == "dear" for model, _ in served) > 270
    found = [alert for alert in engine.take_alerts() if alert.kind == "goals_contradict"]
    assert found[0].evidence["needed_budget_usd_per_request"] is None


def test_what_contradicts_itself_is_refused() -> None:
    day = PeriodBudget(1.0, "day")
    with pytest.raises(InvalidConfig, match="same period"):
        Spending((day, PeriodBudget(2.0, "day")))
    with pytest.raises(InvalidConfig, match="profile 'paper'"):
        declaring(declaration(prices={"a": Price(1.0, 1.0)}), Spending((day,)))
    for hours in ((1.0,) * 5, (0.0,) * 168, (math.nan,) * 168):
        with pytest.raises(InvalidConfig, match="hours"):
            ExpectedTraffic(hours=hours)
