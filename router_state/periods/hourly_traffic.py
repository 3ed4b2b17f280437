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
"""Hours by which the epoch, a Thursday, comes after a Monday at midnight."""
DAY_HOURS, WEEK_HOURS = 24.0, float(HOURS)
"""Mean hours over which the two levels forget."""
LEVEL_AHEAD = 48.0
"""Hours ahead that the level of the last day is right for. Beyond them a fall is believed when the
level of the last week has followed: money that was saved can still be spent."""
FIRST = 1e-3
"""Share of a period that the traffic counts as watched before the first request: however fast the
first ones come, they are paced for at least so long."""
GAP, SHORT = 10.0, 1.0
"""Most that a pause counts for: the time of so many requests, or so many mean hours. An outage
says nothing of the level."""
HOUR_KEPT = 0.75
"""Share of an hour of the week that a week leaves of the ones before: four weeks count."""
SHRUNK = 0.5
"""Weeks that the shape of a usual day counts for in that of the week, and that a flat day counts
for in that of a usual day."""
WEEK_KEPT = exp_of(-1.0 / HOURS)
"""Share of the mean count of an hour that one hour leaves."""
FIRST_DRIFT = 0.01
"""Variance of the logarithm of the level from one day to the next before any was seen."""
DAYS_KEPT = 0.9
"""Share of that variance that a day leaves."""
MOST_DRIFT = 4.0
"""Largest square of one day's step: a launch says nothing of ordinary days."""
WALK = 72.0 * HOUR
"""Seconds over which the level wanders as far as a day's step; the interval then holds nine of ten
counts of drawn months (lab/tests/test_period_forecast.py)."""
Z95 = 1.645
"""Deviations of a normal distribution that 95 values in a hundred stay below: nine in ten are
within as many on either side."""


class Shape:
    """Traffic of each hour of the week, compared with the mean hour.

    Attributes:
        shares: (168,), Monday 0:00 first; their mean is 1.
    """

    __slots__ = ("_until", "shares")

    def __init__(self, shares: Sequence[float]) -> None:
        mean = math.fsum(shares) / HOURS
        self.shares = [share / mean for share in shares]
        self._until = [0.0, *accumulate(self.shares)]

    def until(self, hours: float) -> float:
        """Return the sum of the shares from Monday 0:00 of week 0 on; of part of an hour, part of
        its share."""
        weeks, within = divmod(hours, HOURS)
        whole = min(int(within), HOURS - 1)
        return weeks * HOURS + self._until[whole] + (within - whole) * self.shares[whole]


FLAT = Shape([1.0] * HOURS)
"""The shape of an unknown week: flat."""


class Traffic:
    """The traffic of one router, learned from the times of its decisions.

    Attributes:
        zone: time zone of the hours.
        requests, hours: count of requests, and the shares of the hours in which they came, decayed
            over a day; week_requests, week_hours: over a week.
        last: time of the last request, seconds since the epoch; −1: none has come.
        hour, count: the hour that goes on, counted from Monday 0:00 of week 0, and its requests.
        mean, seen: decayed sum of the counts of hours, and their number.
        day, day_level: when the level was last compared with itself, and what it was.
        drift: mean square of its logarithm's steps from day to day.
        sums, weights: (168,), decayed sums of an hour's count ÷ the mean one, and their number.
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
        """The week's shape as it is expected."""
        return self._shape

    def declare(self, declared: ExpectedTraffic, zone: str) -> None:
        """Put declared traffic in force; what was learned stays."""
        per_week = declared.per_week
        if per_week is not None and per_week != self.declared.per_week:
            self.requests, self.hours = per_week / 7.0, DAY_HOURS
            self.week_requests, self.week_hours = per_week, WEEK_HOURS
        self.declared, self.zone = declared, zone
        self._offset_hour, self._offset = -1, 0.0
        self._shape = self._shaped()

    def _shaped(self) -> Shape:
        """Return the week's shape: an hour's own counts, shrunk to those of the same hour of all
        days, and these to a flat day."""
        if self.declared.hours is not None:
            return Shape(self.declared.hours)
        if not self.weights.any():
            return FLAT
        by_day, weights = self.sums.reshape(7, 24), self.weights.reshape(7, 24)
        usual = (by_day.sum(0) + SHRUNK) / (weights.sum(0) + SHRUNK)
        shares = (by_day + SHRUNK * usual) / (weights + SHRUNK)
        return Shape(shares.ravel().tolist())

    def _place(self, at: float) -> float:
        """Return a time as hours since Monday 0:00 of week 0 by the wall clock."""
        at = bounded(at)
        if int(at // HOUR) != self._offset_hour:
            self._offset_hour, self._offset = int(at // HOUR), utc_offset(at, self.zone)
        return (at + self._offset) / HOUR + MONDAY_HOURS

    def left(self, at: float, until: float, *, first: float) -> float:
        """Return how many requests are expected from one time until another.

        Args:
            first: seconds that the traffic counts as having been watched before the first request.
        """
        here = self._place(at)
        # The wall clock may change until then; the present offset is an hour off at most.
        ahead = max(until - at, 0.0) / HOUR
        begin, end = self._shape.until(here), self._shape.until(here + ahead)
        middle = end if ahead <= LEVEL_AHEAD else self._shape.until(here + LEVEL_AHEAD)
        pause = first / HOUR + (self._since(here) if self.last >= 0.0 else 0.0)
        day = max(self.requests, 1.0) / (self.hours + pause)
        week = max(self.week_requests, 1.0) / (self.week_hours + pause)
        return max(day * (middle - begin) + max(day, week) * (end - middle), 0.0)

    def _since(self, here: float) -> float:
        """Return the shares of the time since the last request, of a pause no more than a few
        requests' worth."""
        last = (bounded(self.last) + self._offset) / HOUR + MONDAY_HOURS
        since = self._shape.until(here) - self._shape.until(last)
        return min(max(since, 0.0), max(GAP * self.hours / max(self.requests, 1.0), SHORT))

    def note(self, at: float) -> None:
        """Count a request.

        A clock that steps back a little counts it in the hour that goes on; by more, and what goes
        on is begun anew.
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
        """Take the hours that have ended into the week's shape; a pause of a week or more says
        nothing of it."""
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
        """Return the factor within which the requests of so many seconds are in nine of ten cases.

        Days scatter more than they drift: a step from one day to the next says how far off the
        present level is, however long it is asked for. Over less than `WALK` it is still near.
        """
        variance = self.drift * min(seconds / WALK, 1.0) + 1.0 / max(left, 1.0)
        return exp_of(min(Z95 * math.sqrt(variance), 10.0))

    def numbers(self) -> list[float]:
        """Return what a request changes."""
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
        """Return what an hour changes, shape (336,)."""
        return np.concatenate([self.sums, self.weights])
