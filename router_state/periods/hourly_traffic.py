"""Forecast the requests still to come: a decayed level of traffic times the shares of the remaining
hours of the week.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate

import numpy as np

from router_state.changes import Journal
from router_state.config import Vector
from router_state.kernel import exp_of, log_of
from router_state.periods.calendar import HOUR, bounded, utc_offset
from router_state.periods.spending import HOURS, ExpectedTraffic

SHAPE = "\x1fhours"
"""The piece of the state that holds the hours of the week; an hour writes it once."""
MONDAY_HOURS = 72.0
"""Hours from a Monday at midnight to the epoch, which was a Thursday."""
DAY_HOURS, WEEK_HOURS = 24.0, float(HOURS)
"""Time constants of the two levels, in hours."""
LEVEL_AHEAD = 48.0
"""Hours ahead for which the level of the last day is used. Beyond them a fall of traffic counts
only once the level of the last week has followed: money that was saved can still be spent.
"""
FIRST = 1e-3
"""Share of a period for which the traffic counts as watched before the first request: however fast
the first requests come, they are paced for at least this long.
"""
GAP, SHORT = 10.0, 1.0
"""Longest pause that counts: the time of 10 requests, or one mean hour. A longer pause is an
outage, which says nothing of the level.
"""
HOUR_KEPT = 0.75
"""Factor by which the weight of earlier weeks falls each week, in an hour of the week: four weeks
count.
"""
SHRUNK = 0.5
"""Number of weeks that a usual day's shape counts for in the week's shape, and that a flat day
counts for in a usual day's shape.
"""
WEEK_KEPT = exp_of(-1.0 / HOURS)
"""Factor by which the weight of earlier hours in the mean count falls each hour."""
FIRST_DRIFT = 0.01
"""Variance of one day's step of the level's logarithm, before any step was seen."""
DAYS_KEPT = 0.9
"""Factor by which the weight of earlier steps in that variance falls each day."""
MOST_DRIFT = 4.0
"""Largest square of one day's step: a launch says nothing of ordinary days."""
WALK = 72.0 * HOUR
"""Seconds over which the level wanders as far as a day's step; the interval then holds nine of ten
counts of drawn months (lab/tests/test_period_forecast.py)."""
Z95 = 1.645
"""Number of deviations below which a normal variable stays in 95 of 100 cases: nine in ten values
lie within it on either side.
"""


class Shape:
    """Traffic of each hour of the week, relative to the mean hour.

    Attributes:
        shares: (168,), Monday 0:00 first; their mean is 1.
    """

    __slots__ = ("_until", "shares")

    def __init__(self, shares: Sequence[float]) -> None:
        # The mean of the smallest numbers there are is 0.
        most = max(shares)
        mean = math.fsum(share / most for share in shares) / HOURS
        self.shares = [share / most / mean for share in shares]
        self._until = [0.0, *accumulate(self.shares)]

    def until(self, hours: float) -> float:
        """Return the sum of the shares of `hours` hours from Monday 0:00 of week 0 on; a part of
        an hour counts in proportion.
        """
        weeks, within = divmod(hours, HOURS)
        whole = min(int(within), HOURS - 1)
        return weeks * HOURS + self._until[whole] + (within - whole) * self.shares[whole]


FLAT = Shape([1.0] * HOURS)
"""The shape of an unknown week: flat."""


class Traffic:
    """The traffic of one router, learned from the times of its decisions.

    Attributes:
        zone: time zone of the hours.
        requests, hours: number of requests, and sum of the shares of the hours in which they came,
            both decayed over a day; week_requests, week_hours: the same decayed over a week.
        last: time of the last request, seconds since the epoch; −1: none has come.
        hour, count: the present hour, counted from Monday 0:00 of week 0, and its number of
            requests.
        mean, seen: decayed sum of the counts of hours, and decayed number of hours.
        day, day_level: day of the last comparison of levels, and the level then.
        drift: mean square of the daily steps of the level's logarithm.
        sums, weights: (168,), by hour of the week, decayed sum of count ÷ mean count, and decayed
            number of weeks.
    """

    __slots__ = (
        "_journal",
        "_offset",
        "_offset_hour",
        "_shape",
        "count",
        "day",
        "day_level",
        "declared",
        "drift",
        "hour",
        "hours",
        "last",
        "mean",
        "requests",
        "seen",
        "sums",
        "week_hours",
        "week_requests",
        "weights",
        "zone",
    )
    NUMBERS = (
        *(
            "requests",
            "hours",
            "week_requests",
            "week_hours",
            "last",
            "hour",
            "count",
            "mean",
            "seen",
            "day",
            "day_level",
        ),
        "drift",
    )

    def __init__(self, declared: ExpectedTraffic, zone: str, journal: Journal) -> None:
        self._journal = journal
        self.requests = self.hours = self.week_requests = self.week_hours = 0.0
        self.mean = self.seen = 0.0
        self.last = -1.0
        self.hour = self.count = 0
        self.day, self.day_level, self.drift = 0.0, 0.0, FIRST_DRIFT
        self.sums: Vector = np.zeros(HOURS)
        self.weights: Vector = np.zeros(HOURS)
        self.declared = ExpectedTraffic()
        self.declare(declared, zone)

    @property
    def shape(self) -> Shape:
        """The expected shape of the week."""
        return self._shape

    def declare(self, declared: ExpectedTraffic, zone: str) -> None:
        """Put declared traffic in force; learned traffic stays."""
        per_week = declared.per_week
        if per_week is not None and per_week != self.declared.per_week:
            self.requests, self.hours = per_week / 7.0, DAY_HOURS
            self.week_requests, self.week_hours = per_week, WEEK_HOURS
        self.declared, self.zone = declared, zone
        self._offset_hour, self._offset = -1, 0.0
        self._shape = self._shaped()

    def _shaped(self) -> Shape:
        """Return the week's shape: the counts of each hour of the week, shrunk to those of the
        same hour on all days, which are shrunk to a flat day.
        """
        if self.declared.hours is not None:
            return Shape(self.declared.hours)
        if not self.weights.any():
            return FLAT
        by_day, weights = self.sums.reshape(7, 24), self.weights.reshape(7, 24)
        usual = (by_day.sum(0) + SHRUNK) / (weights.sum(0) + SHRUNK)
        shares = (by_day + SHRUNK * usual) / (weights + SHRUNK)
        return Shape(shares.ravel().tolist())

    def _place(self, at: float) -> float:
        """Return a time in hours since Monday 0:00 of week 0, by the wall clock."""
        at = bounded(at)
        if int(at // HOUR) != self._offset_hour:
            self._offset_hour, self._offset = int(at // HOUR), utc_offset(at, self.zone)
        return (at + self._offset) / HOUR + MONDAY_HOURS

    def left(self, at: float, until: float, *, first: float) -> float:
        """Return the expected number of requests from one time until another.

        Args:
            first: seconds without requests that are assumed before the first request, so that the
                rate of few requests is not overestimated.
        """
        here = self._place(at)
        # The wall clock may change until then, so the present offset may be wrong by an hour.
        ahead = max(until - at, 0.0) / HOUR
        begin, end = self._shape.until(here), self._shape.until(here + ahead)
        middle = end if ahead <= LEVEL_AHEAD else self._shape.until(here + LEVEL_AHEAD)
        pause = first / HOUR + (self._since(here) if self.last >= 0.0 else 0.0)
        day = max(self.requests, 1.0) / (self.hours + pause)
        week = max(self.week_requests, 1.0) / (self.week_hours + pause)
        return max(day * (middle - begin) + max(day, week) * (end - middle), 0.0)

    def _since(self, here: float) -> float:
        """Return the sum of the shares since the last request, at most that of `GAP` requests or
        `SHORT` hours.
        """
        last = (bounded(self.last) + self._offset) / HOUR + MONDAY_HOURS
        since = self._shape.until(here) - self._shape.until(last)
        return min(max(since, 0.0), max(GAP * self.hours / max(self.requests, 1.0), SHORT))

    def note(self, at: float) -> None:
        """Count a request.

        If the clock has stepped back a little, the request counts in the present hour. After a
        larger step, the present hour begins anew.
        """
        here = self._place(at)
        if at < self.last - 2.0 * HOUR:
            self.last, self.hour, self.count, self.day = at, int(here), 0, here
        if self.last >= 0.0:
            since = self._since(here)
            kept = exp_of(-since / DAY_HOURS)
            self.hours, self.requests = self.hours * kept + since, self.requests * kept
            kept = exp_of(-since / WEEK_HOURS)
            self.week_hours = self.week_hours * kept + since
            self.week_requests *= kept
        else:
            self.hour, self.day = int(here), here
        self.requests += 1.0
        self.week_requests += 1.0
        self._end_hours(int(here))
        self.count += 1
        self.last = max(self.last, at)
        if here >= self.day + 24.0:
            self._end_day(here)

    def _end_hours(self, hour: int) -> None:
        """Add the hours that have ended to the week's shape, unless the pause was a week or
        longer.
        """
        if hour <= self.hour:
            return
        for ended in range(self.hour, hour if hour - self.hour < HOURS else self.hour + 1):
            count = self.count if ended == self.hour else 0
            self.mean = self.mean * WEEK_KEPT + count
            self.seen = self.seen * WEEK_KEPT + 1.0
            if self.mean > 0.0:
                k = ended % HOURS
                self.sums[k] = HOUR_KEPT * self.sums[k] + count * self.seen / self.mean
                self.weights[k] = HOUR_KEPT * self.weights[k] + 1.0
        self.hour, self.count = hour, 0
        self._shape = self._shaped()
        self._journal.pieces.add(SHAPE)

    def _end_day(self, here: float) -> None:
        level = self.requests / self.hours if self.hours > 0.0 else 0.0
        if level > 0.0 and self.day_level > 0.0:
            days = max((here - self.day) / 24.0, 1.0)
            step = min(log_of(level / self.day_level) ** 2 / days, MOST_DRIFT)
            self.drift = DAYS_KEPT * self.drift + (1.0 - DAYS_KEPT) * step
        self.day, self.day_level = here, level

    def spread(self, left: float, seconds: float) -> float:
        """Return the factor f of an interval from left ÷ f to left · f, which holds the number of
        requests in the next `seconds` in nine of ten cases.

        The level scatters from day to day more than it drifts. So the usual step between two days
        is the error of the present level, however far ahead. For less than `WALK` seconds ahead,
        the variance of this error is smaller in proportion.
        """
        variance = self.drift * min(seconds / WALK, 1.0) + 1.0 / max(left, 1.0)
        return exp_of(min(Z95 * math.sqrt(variance), 10.0))

    def numbers(self) -> list[float]:
        """Return the numbers that a request changes."""
        return [getattr(self, name) for name in self.NUMBERS]

    def restore(self, numbers: Sequence[float], week: Vector) -> None:
        """Invert `numbers` and `week`."""
        for name, value in zip(self.NUMBERS, numbers, strict=True):
            setattr(self, name, value)
        self.sums, self.weights = week[:HOURS].copy(), week[HOURS:].copy()
        self._offset_hour = -1
        self._place(self.last)
        self._shape = self._shaped()

    def week(self) -> Vector:
        """Return the numbers that the end of an hour changes, shape (336,)."""
        return np.concatenate([self.sums, self.weights])
