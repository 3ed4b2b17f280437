"""The charts of one router's page."""

from __future__ import annotations

from watching.dashboard.router_charts import Charts

NOW = 1_760_000_000.0


def test_the_path_is_that_of_the_last_week_and_the_newest_comes_last() -> None:
    charts = Charts()
    assert charts.path() == []
    for hour in range(14 * 24):
        at = NOW + 3600.0 * hour
        for name, value in (("spend_usd", hour), ("settled", 10), ("reward", 5), ("rewarded", 10)):
            charts.bins.add(at, name, float(value))
    costs = [cost for cost, quality in charts.path() if quality == 0.5]
    assert len(costs) == len(charts.path()) <= 48
    # Dollars rise by the hour: a tenth of the hour's number is the mean bill of that hour.
    assert costs == sorted(costs) and costs[0] > 0.6 * 33.6 * 0.5
    assert 28.0 < costs[-1] < 33.6


def test_the_shares_are_those_of_the_last_decisions_by_model() -> None:
    charts = Charts()
    assert charts.shares() == {}
    for number in range(400):
        charts.decide("small" if number < 200 or number % 4 else "large", at=NOW + 60.0 * number)
    assert list(charts.shares()) == ["small", "large"]
    assert abs(charts.shares()["large"] - 0.25) < 0.05
