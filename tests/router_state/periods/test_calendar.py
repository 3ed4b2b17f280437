"""When periods begin and end: daylight saving, months of 28 to 31 days, leap days, any time at
all."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from router_state.errors import InvalidConfig
from router_state.periods.calendar import HOUR, Per, local, period_at
from router_state.periods.spending import PeriodBudget

ZONES = (
    *("UTC", "Europe/Berlin", "America/New_York", "America/Sao_Paulo", "Asia/Kathmandu"),
    *("Australia/Lord_Howe", "Pacific/Apia", "Africa/Casablanca"),
)
DAY = 24.0 * HOUR
times = st.floats(1e7, 4e9)
pers = st.sampled_from(["hour", "day", "week", "month"])


def at(*parts: int) -> float:
    return datetime(*parts, tzinfo=UTC).timestamp()  # type: ignore[arg-type]


def period(moment: float, per: Per, zone: str = "UTC", starts: float | None = None) -> Any:
    begin, end = period_at(moment, per=per, zone=zone, starts=starts)
    return datetime.fromtimestamp(begin, UTC), datetime.fromtimestamp(end, UTC)


@given(times, pers, st.sampled_from(ZONES), st.none() | times)
def test_periods_follow_each_other_without_gaps(
    moment: float, per: Per, zone: str, starts: float | None
) -> None:
    begin, end = period_at(moment, per=per, zone=zone, starts=starts)
    assert begin <= moment < end
    assert period_at(begin, per=per, zone=zone, starts=starts) == (begin, end)
    assert period_at(end, per=per, zone=zone, starts=starts)[0] == end
    # Rounded to a float, a moment before the end is the end itself only beyond all calendars.
    assert period_at(end - 0.01, per=per, zone=zone, starts=starts) == (begin, end)


@given(times, pers, st.sampled_from(ZONES))
def test_periods_begin_at_midnight_by_the_wall_clock(moment: float, per: Per, zone: str) -> None:
    begin, end = period_at(moment, per=per, zone=zone, starts=None)
    shortest, longest = {
        "hour": (HOUR, HOUR),
        "day": (0.0, 2 * DAY),
        "week": (6 * DAY, 8 * DAY),
        "month": (27 * DAY, 32 * DAY),
    }[per]
    assert shortest <= end - begin <= longest
    wall = local(begin, zone)
    if per == "week":
        # A zone may skip midnight, or the whole day.
        assert wall.weekday() in (0, 1)
    if per == "month":
        assert wall.day in (1, 2)


@given(times, pers)
def test_a_period_begins_where_it_is_said_to(starts: float, per: Per) -> None:
    # Calendars know microseconds.
    starts = round(starts)
    assert period_at(starts, per=per, zone="UTC", starts=starts)[0] == starts


@pytest.mark.parametrize(
    ("year", "month", "days"),
    [(2026, 1, 31), (2026, 2, 28), (2028, 2, 29), (2100, 2, 28), (2026, 4, 30)],
)
def test_months_have_their_days(year: int, month: int, days: int) -> None:
    begin, end = period_at(at(year, month, 15), per="month", zone="UTC", starts=None)
    assert (end - begin) / DAY == days


def test_a_day_of_daylight_saving_has_23_or_25_hours() -> None:
    for moment, hours in ((at(2026, 3, 29, 12), 23), (at(2026, 10, 25, 12), 25)):
        begin, end = period_at(moment, per="day", zone="Europe/Berlin", starts=None)
        assert (end - begin) / HOUR == hours


def test_a_midnight_that_the_clock_skips_is_the_moment_of_the_skip() -> None:
    begin, end = period(at(2018, 11, 4, 12), "day", "America/Sao_Paulo")
    assert begin == datetime(2018, 11, 4, 3, tzinfo=UTC)
    assert end == datetime(2018, 11, 5, 2, tzinfo=UTC)


def test_a_month_that_lacks_the_day_begins_on_its_last_one() -> None:
    starts = at(2026, 1, 31)
    assert [
        period(at(2026, month, 15), "month", starts=starts)[0].date().isoformat()
        for month in (2, 3, 4, 5)
    ] == ["2026-01-31", "2026-02-28", "2026-03-31", "2026-04-30"]


@pytest.mark.parametrize("moment", [-1e18, -1.0, 0.0, 1e15, 1e300])
@pytest.mark.parametrize("per", ["day", "week", "month"])
def test_a_clock_may_say_anything(moment: float, per: Per) -> None:
    begin, end = period_at(moment, per=per, zone="America/New_York", starts=None)
    assert begin < end


def test_a_budget_between_dates_is_in_force_between_them() -> None:
    budget = PeriodBudget(10.0, None, starts=100.0, until=200.0)
    assert [budget.period(moment) for moment in (99.0, 100.0, 199.0, 200.0)] == [
        None,
        (100.0, 200.0),
        (100.0, 200.0),
        None,
    ]
    assert [budget.is_over(moment) for moment in (99.0, 199.0, 200.0)] == [False, False, True]


@pytest.mark.parametrize(
    "wrong",
    [
        {"usd": -1.0},
        {"usd": float("nan")},
        {"usd": 1.0, "zone": "Nowhere/At_All"},
        {"usd": 1.0, "zone": "../../etc/passwd"},
        {"usd": 1.0, "carry": -1.0},
        {"usd": 1.0, "per": None},
        {"usd": 1.0, "per": "day", "until": 5.0},
        {"usd": 1.0, "per": None, "starts": 5.0, "until": 5.0},
    ],
)
def test_a_budget_that_can_not_be_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidConfig):
        PeriodBudget(**wrong)
