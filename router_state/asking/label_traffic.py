"""Estimate how many requests are still to come in a period.

No number of requests is assumed. In the first period the rate of requests so far is taken to last.
In later periods the estimate uses how many requests each part of a period usually has, and how the
present period compares with that so far. Within a part, requests come evenly or bunched, as those
of a nightly batch do. If they come bunched, the share of the part that is over follows from the
number of requests so far, and not from the time.
"""

from __future__ import annotations

from math import inf, sqrt

from msgspec import Struct

PERIOD_PARTS = 24
"""Parts of a period that are counted apart: a day's are its hours."""
LATEST_WEIGHT = 0.5
"""Weight of the latest period among all that were counted."""
SURE_AFTER = 0.1
"""Share of a usual period's requests after which half of a surprise is taken for the whole
period's.
"""
EVEN = 0.1
"""Share of a usual period's requests that may come at any time, also when none has come before."""
KEPT_BACK = 0.5
"""Share of the first period's labels that is spread over its time, not over its requests."""
SURE_DEVIATIONS = 2.0
"""Deviations of a Poisson count by which a rate may be below what was seen. Three requests in the
first minute of a day need not be four thousand a day: while so few are known, all are asked about.
"""
BUNCHED = 0.5
"""Share of a part's time between its first and its last request below which they come bunched."""


class LabelTraffic(Struct, gc=False):
    """Numbers of requests in the present period and in a usual period.

    Attributes:
        begins: the present period's begin, seconds since the epoch.
        since: time at which counting began: that of the first request, or the period's begin.
        at: time of the last request.
        seen: number of requests in each part of the present period.
        usual: number of requests in each part of a usual period; empty: not known yet.
        first: time of the first request of the present part.
        spans: for each part of a usual period the share of its time between its first and its last
            request, to two digits; empty: not known yet.
    """

    begins: float
    since: float
    at: float
    seen: list[int]
    usual: list[float]
    first: float = 0.0
    spans: list[float] = []

    @classmethod
    def start(cls, begins: float, at: float) -> LabelTraffic:
        """Return the traffic of a router whose first request comes now."""
        return cls(begins, at, at, [0] * PERIOD_PARTS, [], at)

    def turn(self, begins: float, seconds: float) -> None:
        """Begin another period, and learn from the one that has ended.

        Periods without any request teach nothing: a service that rests on Sunday is on Monday what
        it was on Friday.
        """
        self._learn(seconds)
        self._learn_span(seconds)
        self.begins = self.since = begins
        self.seen = [0] * PERIOD_PARTS

    def _learn(self, seconds: float) -> None:
        part = seconds / PERIOD_PARTS
        first = 0 if self.since <= self.begins else int((self.since - self.begins) / part) + 1
        whole = self.seen[first:]
        if not whole or not sum(self.seen):
            return
        # What was not counted in whole is taken for the mean of the rest.
        seen = [sum(whole) / len(whole)] * first + [float(n) for n in whole]
        usual = self.usual or seen
        found = [u + LATEST_WEIGHT * (n - u) for u, n in zip(usual, seen, strict=True)]
        self.usual = found if sum(found) > 0.0 else []

    def count(self, at: float, seconds: float) -> None:
        """Count a request of the present period."""
        k = self._part(at, seconds)
        if not self.seen[k]:
            self._learn_span(seconds)
            self.first = at
        self.at = at
        self.seen[k] += 1

    def _learn_span(self, seconds: float) -> None:
        """Learn from the part of the last request, which has ended, how its requests came."""
        if self.at < self.begins or self.first < self.begins:
            return  # it was learned when its period ended
        k, part = self._part(self.at, seconds), seconds / PERIOD_PARTS
        span = min(max((self.at - self.first) / part, 0.0), 1.0)
        # Other parts are taken for like the first one that is known.
        self.spans = self.spans or [round(span, 2)] * PERIOD_PARTS
        before = self.spans[k]
        self.spans[k] = round(before + LATEST_WEIGHT * (span - before), 2)

    def _part(self, at: float, seconds: float) -> int:
        return min(max(int((at - self.begins) / seconds * PERIOD_PARTS), 0), PERIOD_PARTS - 1)

    def left(self, seconds: float) -> float:
        """Return the expected number of requests between the last one and the period's end."""
        if not self.usual:
            passed = self.at - self.since
            return _later(sum(self.seen) - 1, passed, seconds - (self.at - self.begins))
        k, total = self._part(self.at, seconds), sum(self.usual)
        even = EVEN * total / PERIOD_PARTS
        usual = [(1.0 - EVEN) * n + even for n in self.usual]
        passed = min(max((self.at - self.begins) / seconds * PERIOD_PARTS - k, 0.0), 1.0)
        seen, over = sum(self.seen), passed
        if bunched := self.spans and self.spans[k] < BUNCHED:
            over = min(self.seen[k] / self.usual[k], 1.0) if self.usual[k] > 0.0 else 1.0
            seen += round(over * self.usual[k]) - self.seen[k]
        so_far = sum(self.usual[:k]) + over * self.usual[k]
        scale, burst = _scale(seen, so_far, total), 0.0
        if not bunched or over >= 1.0:
            # The usual number says nothing about a burst, which goes on for as long as it has
            # lasted, until its part ends.
            burst = _later(self.seen[k] - 1, passed, min(passed, 1.0 - passed))
        return max(scale * usual[k] * (1.0 - over), burst) + scale * sum(usual[k + 1 :])

    def kept_back(self, seconds: float) -> float:
        """Return the share of the period's labels that is reserved for later requests. Only the
        first period reserves labels, as it may have begun at night."""
        end = self.begins + seconds
        if self.usual or self.since >= end:
            return 0.0
        return KEPT_BACK * (end - self.at) / (end - self.since)

    @property
    def is_sound(self) -> bool:
        """Tell whether the numbers are possible."""
        known = (0, PERIOD_PARTS)
        lengths = len(self.seen) == PERIOD_PARTS and len(self.usual) in known
        spans = len(self.spans) in known and all(0.0 <= span <= 1.0 for span in self.spans)
        return lengths and spans and min(self.seen) >= 0 and min(self.usual, default=0.0) >= 0.0


def _scale(seen: int, so_far: float, total: float) -> float:
    """Return how many times the usual requests a period has.

    Args:
        seen: requests so far; so_far: usual ones by then; total: those of a whole usual period.
    """
    doubt = max(SURE_AFTER * total, SURE_DEVIATIONS**2)
    low = (seen - SURE_DEVIATIONS * sqrt(seen)) / _most(so_far)
    high = _most(seen) / so_far if so_far > 0.0 else inf
    return min(max((seen + doubt) / (so_far + doubt), low), high)


def _most(count: float) -> float:
    """Return the largest mean of which this Poisson count is no surprise."""
    return count + SURE_DEVIATIONS * sqrt(count) + SURE_DEVIATIONS**2


def _later(seen: int, passed: float, left: float) -> float:
    """Return the least number of requests to be expected in the time that is left.

    Args:
        seen: requests of the time that has passed.
    """
    sure = seen - SURE_DEVIATIONS * sqrt(seen) if seen > 0 else 0.0
    if sure <= 0.0 or left <= 0.0:
        return 0.0
    return sure * left / passed if passed > 0.0 else float("inf")
