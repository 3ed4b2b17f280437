"""Sum up events in at most `BINS` bins; older bins are wider."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

BINS = 256
"""Bins of a router, at most."""
KEPT = 192
"""Most bins that are left once neighbours were merged."""
FEWEST = 64
"""Least number of bins that show all decisions, if there are so many."""
FINEST_SECONDS = 0.125
"""Width of the narrowest bin."""
RANGES = (3600.0, 86_400.0, 7 * 86_400.0)
"""Seconds of the ranges that a page shows: an hour, a day, a week."""
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
Times = NDArray[np.float64]


class Summed(NamedTuple):
    """The bins in use, the oldest first.

    Attributes:
        first, last: seconds since the epoch of the first and the last event of each bin, shape
            (n,).
        rows: shape (n, 7 + series); a last value is NaN where no event had one.
    """

    first: Times
    last: Times
    rows: Rows


@dataclass(slots=True)
class Bins:
    """Bins over seconds since the epoch; each holds sums, last values, and a count of each series
    (the models). A time without events has no bin, and so takes no room.

    Attributes:
        layout: changes whenever other bins than the last one were moved or merged.
    """

    series: int = 0
    layout: int = 0
    _used: int = 0
    _times: Times = field(default_factory=lambda: np.zeros((FEW, 2)))
    _rows: Rows = field(default_factory=lambda: _empty(FEW, 0))

    def add(self, at: float, name: str, value: float) -> None:
        """Add to a sum of the bin at this time."""
        place = self._place(at)
        self._rows[place, COLUMN[name]] += value

    def put(self, at: float, name: str, value: float) -> None:
        """Set a last value of the bin at this time."""
        place = self._place(at)
        self._rows[place, COLUMN[name]] = value

    def count(self, at: float, series: int) -> None:
        """Count one event of a series in the bin at this time."""
        if series >= self.series:
            # Models are few and join seldom: a wider table each time is cheaper than a column kept
            # free.
            wider = _empty(len(self._rows), series + 1)
            wider[:, : FIXED + self.series] = self._rows
            self._rows, self.series = wider, series + 1
        place = self._place(at)
        self._rows[place, FIXED + series] += 1.0

    def table(self) -> Summed:
        """Return the bins in use."""
        first, last = self._times[: self._used].T
        return Summed(first.copy(), last.copy(), self._rows[: self._used].copy())

    def _place(self, at: float) -> int:
        """Return the row of a time, a new one where no bin is near."""
        first, last = self._times[: self._used].T
        place = int(np.searchsorted(first, at, side="right")) - 1
        if place >= 0 and (at <= last[place] or _cell(at) == _cell(first[place])):
            last[place] = max(last[place], at)
            return place
        if self._used == len(self._rows):
            if self._used < BINS:
                self._grow()
            else:
                self._merge()
            return self._place(at)
        return self._insert(place + 1, at)

    def _insert(self, place: int, at: float) -> int:
        used = self._used
        if place < used:
            self.layout += 1
            self._times[place + 1 : used + 1] = self._times[place:used]
            self._rows[place + 1 : used + 1] = self._rows[place:used]
        self._times[place] = at
        self._rows[place] = _empty(1, self.series)
        self._used += 1
        return place

    def _grow(self) -> None:
        more = min(BINS, 2 * len(self._rows)) - len(self._rows)
        self._times = np.vstack([self._times, np.zeros((more, 2))])
        self._rows = np.vstack([self._rows, _empty(more, self.series)])

    def _merge(self) -> None:
        """Merge neighbours until enough rows are free."""
        first, last, rows = self.table()
        begins = _groups(first, rows[:, COLUMN["decided"]].cumsum(dtype=np.float64))
        ends = np.append(begins[1:], len(first)) - 1
        merged = np.add.reduceat(rows, begins, axis=0)
        for name in LASTS:
            told = ~np.isnan(rows[:, COLUMN[name]])
            # A bin without λ_t must not erase its neighbour's value.
            newest = np.maximum.accumulate(np.where(told, np.arange(len(first)), -1))[ends]
            values = rows[newest, COLUMN[name]]
            merged[:, COLUMN[name]] = np.where(newest >= begins, values, np.nan)
        self._used = len(begins)
        self._times[: self._used] = np.column_stack([first[begins], last[ends]])
        self._rows[: self._used] = merged
        self.layout += 1


def _groups(first: Times, decided: Times) -> NDArray[np.intp]:
    """Return the first bin of each group of bins that are merged into one; there are at most
    `KEPT` groups.

    The width of a bin is a share of the shortest range that shows it. The share is the same for
    all bins, and the smallest one that leaves few enough bins. No bin gets more than about a 64th
    of all decisions, so that a short time of much traffic keeps its shape, however long ago it
    was.

    Args:
        first: begin of each bin.
        decided: number of decisions up to the end of each bin.
    """
    ages = first[-1] - first
    shown = np.select([ages <= one for one in RANGES], RANGES, default=ages)
    # Powers of two, so that wide bins hold whole narrow ones.
    some = 2.0 ** np.floor(np.log2(max(decided[-1], 1.0) / FEWEST))
    parts = np.floor(decided / some)
    finest, share = np.log2(FINEST_SECONDS), FINEST_SECONDS / max(shown)
    while True:
        widths = 2.0 ** np.maximum(finest, np.floor(np.log2(share * shown)))
        cells = np.floor(first / widths)
        apart = np.zeros(len(first), dtype=bool)
        for kind in (widths, cells, parts):
            apart[1:] |= np.diff(kind) != 0.0
        apart[0] = True
        # At a share of 1 a range has two bins, and each power of two before them: it ends.
        if apart.sum() <= KEPT:
            return np.flatnonzero(apart)
        share *= 2.0


def _cell(at: float) -> int:
    return int(at // FINEST_SECONDS)


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
