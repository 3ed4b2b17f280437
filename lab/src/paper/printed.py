"""A number as the paper prints it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Published(NamedTuple):
    """A value with its 95 % interval, None where it prints none; `digits`: how many after the point
    it prints, where known.
    """

    value: float
    low: float | None = None
    high: float | None = None
    digits: int | None = None


def rows(experiment: str, table: Mapping[str, tuple[float, ...]]) -> dict[str, Published]:
    """Return a table with its experiment before each row's name."""
    found = {}
    for row, (value, *interval) in table.items():
        low, high = interval or (None, None)
        found[f"{experiment} {row}"] = Published(value, low, high)
    return found


def spread(experiment: str, pattern: str, keys: str, *values: str) -> dict[str, Published]:
    """Return rows whose names are the pattern with each of the keys in place of `{}`.

    Args:
        keys: separated by spaces.
        values: per key "value" or "value low high".
    """
    names = keys.split()
    return {
        f"{experiment} {pattern.format(name)}": _read(numbers)
        for name, numbers in zip(names, values, strict=True)
    }


def _read(numbers: str) -> Published:
    parts = numbers.split()
    digits = max(len(part.partition(".")[2]) for part in parts)
    low, high = (float(parts[1]), float(parts[2])) if len(parts) == 3 else (None, None)
    return Published(float(parts[0]), low, high, digits)
