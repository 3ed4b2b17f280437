"""Shapes of traffic by hour of the week: made-up ones, and one out of a file of timed counts."""

from __future__ import annotations

import csv
from datetime import datetime
from pathlib import Path

import numpy as np

from benchmarks.arena import Array

HOURS = 168
DAY = np.arange(24)


def _hump(center: float, width: float) -> Array:
    """Return a day's bump around an hour, the ends of the day joined."""
    away = np.abs((DAY - center + 12.0) % 24.0 - 12.0)
    bump: Array = np.exp(-0.5 * (away / width) ** 2)
    return bump


def _week(day: Array, weekend: float) -> Array:
    days = np.tile(day, (7, 1))
    days[5:] *= weekend
    shape: Array = days.ravel() / days.mean()
    return shape


SYNTHETIC: dict[str, Array] = {
    "office": _week(0.04 + _hump(10.5, 2.2) + _hump(15.0, 2.2), 0.25),
    "evenings": _week(0.15 + _hump(20.5, 3.0) + 0.4 * _hump(13.0, 3.0), 1.35),
    "batch at night": _week(0.1 + 3.0 * _hump(2.0, 1.2), 0.8),
    "around the world": _week(0.7 + 0.3 * _hump(15.0, 5.0), 0.9),
}
"""Mean 1, Monday 0:00 first."""


def from_csv(path: Path) -> Array:
    """Return the mean week of a CSV of `timestamp,value` rows, as NAB's taxi counts are.

    Raises:
        ValueError: some hour of the week has no row, or a row is not a time and a number.
    """
    sums, counts = np.zeros(HOURS), np.zeros(HOURS)
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            at = datetime.fromisoformat(row["timestamp"])
            k = at.weekday() * 24 + at.hour
            sums[k] += float(row["value"])
            counts[k] += 1.0
    if not counts.all():
        raise ValueError(f"{path} has no row for some hour of the week")
    week: Array = sums / counts
    if not week.sum() > 0.0:
        raise ValueError(f"{path} counts nothing")
    shape: Array = week / week.mean()
    return shape
