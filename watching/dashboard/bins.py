"""Sum up events in at most `BINS` bins of equal width; the width doubles when they are full."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

BINS = 120
"""Points of a curve, at most."""
FIRST_SECONDS = 0.125
"""Width of a young router's bins; it doubles when they are full."""
LONGEST_SECONDS = 8192.0
"""Width of the widest bin; 120 of them are 11 days, and older events are forgotten."""
SUMS = ("decided", "spend_usd", "settled", "reward", "rewarded")
"""Columns that add up: decisions, dollars, bills, Σ reward, labels."""
LASTS = ("lambda_t", "budget_usd")
"""Columns that hold the last value: λ_t, dimensionless, and the budget in dollars per request."""
COLUMN = {name: at for at, name in enumerate((*SUMS, *LASTS))}
"""Position of each column in a row."""
FIXED = len(COLUMN)
"""Number of columns before those of the series."""
FEW = 8
"""First number of rows; it doubles up to `BINS`."""

Rows = NDArray[np.float32]


@dataclass(slots=True)
class Bins:
    """A ring of bins over seconds since the epoch; each holds sums, last values, and a count of
    each series (the models).

    Attributes:
        width: seconds of a bin.
        low, high: first and last bin in use, in widths since the epoch; none at first.
    """

    width: float = FIRST_SECONDS
    low: int = 0
    high: int = -1
    series: int = 0
    _rows: Rows = field(default_factory=lambda: _empty(FEW, 0))

    def add(self, at: float, name: str, value: float) -> None:
        """Add to a sum of the bin at this time."""
        place = self._place(at)
        if place >= 0:
            self._rows[place, COLUMN[name]] += value

    def put(self, at: float, name: str, value: float) -> None:
        """Set a last value of the bin at this time."""
        place = self._place(at)
        if place >= 0:
            self._rows[place, COLUMN[name]] = value

    def count(self, at: float, series: int) -> None:
        """Count one of a series in the bin at this time."""
        if series >= self.series:
            # Models are few and join seldom: a wider table each time is cheaper than a column kept
            # free.
            wider = _empty(len(self._rows), series + 1)
            wider[:, : FIXED + self.series] = self._rows
            self._rows, self.series = wider, series + 1
        place = self._place(at)
        if place >= 0:
            self._rows[place, FIXED + series] += 1.0

    def table(self) -> tuple[NDArray[np.float64], Rows]:
        """Return when each bin in use begins, shape (n,), and the bins, shape (n, 7 + series), the
        oldest first; a last value that nobody told is NaN.
        """
        places = np.arange(self.low, self.high + 1)
        return places.astype(np.float64) * self.width, self._rows[places % len(self._rows)]

    def _place(self, at: float) -> int:
        """Return the row of a time, −1 if that is forgotten."""
        number = int(at // self.width)
        if self.high < self.low:
            self.low = self.high = number
            return number % len(self._rows)
        # Rows are added first, then bins widened; only the widest bins forget.
        while max(self.high, number) - min(self.low, number) >= len(self._rows):
            if len(self._rows) < BINS:
                self._resize(min(BINS, 2 * len(self._rows)), 1)
            elif self.width < LONGEST_SECONDS:
                self.width *= 2.0
                self._resize(BINS, 2)
                number = int(at // self.width)
            elif number < self.low:
                return -1
            else:
                self._forget(number - BINS + 1)
        self.low, self.high = min(self.low, number), max(self.high, number)
        return number % len(self._rows)

    def _forget(self, low: int) -> None:
        gone = np.arange(self.low, min(low, self.high + 1)) % len(self._rows)
        self._rows[gone] = _empty(len(gone), self.series)
        self.low = low
        self.high = max(self.high, low)

    def _resize(self, count: int, merge: int) -> None:
        """Lay the bins out anew, `merge` neighbours in one."""
        old, numbers = self._rows, range(self.low, self.high + 1)
        self._rows = _empty(count, self.series)
        lasts = slice(len(SUMS), FIXED)
        for number in numbers:
            row, into = old[number % len(old)], self._rows[number // merge % count]
            into[: len(SUMS)] += row[: len(SUMS)]
            into[FIXED:] += row[FIXED:]
            # A bin without λ_t must not erase its neighbour's value.
            told = ~np.isnan(row[lasts])
            into[lasts][told] = row[lasts][told]
        self.low, self.high = self.low // merge, self.high // merge


def _empty(count: int, series: int) -> Rows:
    rows = np.zeros((count, FIXED + series), dtype=np.float32)
    rows[:, len(SUMS) : FIXED] = np.nan
    return rows


def moving(
    sums: NDArray[np.float64], counts: NDArray[np.float64], least: int
) -> list[float | None]:
    """Return, for each bin, the mean over the fewest last bins that hold `least` events; None
    without events.

    Args:
        sums, counts: of each bin, shape (n,).
    """
    total, many = np.cumsum(sums), np.cumsum(counts)
    # A window of events, not of time, so that a quiet hour does not make the line jump.
    begins = np.searchsorted(many, many - least, side="right") - 1
    found: list[float | None] = []
    for at, begin in enumerate(begins):
        before = (total[begin], many[begin]) if begin >= 0 else (0.0, 0.0)
        n = many[at] - before[1]
        found.append(float((total[at] - before[0]) / n) if n > 0 else None)
    return found
