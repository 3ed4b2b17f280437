"""The forecast of a period's traffic: its interval holds as many counts as it says, on months drawn
as `benchmarks.periods` draws them.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.periods.histories import MONTHS, _arrivals, _epoch
from benchmarks.periods.shapes import SYNTHETIC
from router_state.changes import Journal
from router_state.periods.hourly_traffic import FIRST, Traffic
from router_state.periods.spending import ExpectedTraffic

DAY = 86_400.0
SEEDS = range(24)
"""Months; the constants of the interval were looked at on others."""


def held(event: str, seed: int, *, requests: float = 5000.0) -> Iterator[bool]:
    """Yield, every other day of a month, whether what is still to come was within the interval."""
    rng = np.random.default_rng([361, seed])
    year, month = MONTHS[seed % len(MONTHS)]
    begin, end = _epoch(year, month), _epoch(year, month + 1)
    shape = SYNTHETIC[sorted(SYNTHETIC)[seed % len(SYNTHETIC)]]
    times = _arrivals(event, begin, end, shape, requests * 3600.0 / (end - begin), rng)
    traffic, marks = Traffic(ExpectedTraffic(), "UTC", Journal()), begin + np.arange(1, 27, 2) * DAY
    waiting = marks.tolist()
    for at in times.tolist():
        while waiting and waiting[0] <= at:
            now = waiting.pop(0)
            left = traffic.left(now, end, first=FIRST * (end - begin))
            factor = traffic.spread(left, end - now)
            yield left / factor <= (times >= now).sum() <= left * factor
        traffic.note(at)


def share(event: str) -> float:
    """Return the share of counts that were within the interval."""
    return float(np.mean([one for seed in SEEDS for one in held(event, seed)]))


def test_nine_of_ten_counts_are_within_the_interval() -> None:
    assert 0.87 <= share("nothing") <= 0.98


def test_an_outage_widens_it_as_far_as_it_can() -> None:
    assert 0.75 <= share("outage") <= 0.98


def test_a_launch_is_not_foreseen_and_is_followed_within_days() -> None:
    """No interval told before a launch can hold it: the interval is of traffic as it is."""
    assert share("launch") <= 0.7
