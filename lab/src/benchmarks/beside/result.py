"""The table of one field: areas, and how much reward `live` has over others at equal dollars."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.arena import Array, Rows
from benchmarks.beside.curve import Point, area, reward_at
from benchmarks.beside.entrants import OURS

RESAMPLES = 400
"""Bootstrap resamples of the seeds."""

Seeds = Sequence[Sequence[Point]]


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure and half of its 95 % interval over seeds."""

    value: float
    half: float

    def told(self, scale: float = 1.0, *, signed: bool = False) -> str:
        """Return the figure in text."""
        sign = "+" if signed else ""
        return f"{self.value * scale:{sign}.2f} ± {self.half * scale:.2f}"


@dataclass(frozen=True, slots=True)
class Row:
    """One entrant's line: areas over all requests (None where it was trained on the first half) and
    over the last half, and by how much `live` is above it at equal dollars."""

    entrant: str
    setting: str
    whole: Estimate | None
    late: Estimate
    ahead: Estimate | None
    ahead_late: Estimate | None


def rows(
    played: Mapping[str, Seeds],
    settings: Mapping[str, str],
    trained: Sequence[str],
    ends: tuple[float, float],
) -> list[Row]:
    """Return a line for each entrant, from its points by seed and value."""
    low, high = ends
    ours = _table(played[OURS])
    n = len(ours)
    drawn = np.random.default_rng(0).integers(n, size=(RESAMPLES, n))
    found = []
    for name, seeds in played.items():
        mine = _table(seeds)

        def area_of(picked: Rows, late: bool, mine: Array = mine) -> float:
            return area(_curve(mine, picked, late), low, high)

        def ahead(picked: Rows, late: bool, mine: Array = mine) -> float:
            us, them = _curve(ours, picked, late), _curve(mine, picked, late)
            # Where one of them can't go, they are compared at the nearest dollars.
            least = max(low, min(usd for usd, _ in them))
            dollars = np.clip([usd for usd, _ in us], least, high)
            return float((reward_at(us, dollars) - reward_at(them, dollars)).mean())

        static, us = name in trained, name == OURS
        found.append(
            Row(
                name,
                settings[name],
                None if static else _estimate(area_of, drawn, False),
                _estimate(area_of, drawn, True),
                None if static or us else _estimate(ahead, drawn, False),
                None if us else _estimate(ahead, drawn, True),
            )
        )
    return sorted(found, key=lambda row: -row.late.value)


def _table(seeds: Seeds) -> Array:
    """Return (cost, reward, late cost, late reward) by seed and value, shape (n, V, 4)."""
    return np.array([[(*p.at(late=False), *p.at(late=True)) for p in points] for points in seeds])


def _curve(table: Array, picked: Rows, late: bool) -> list[tuple[float, float]]:
    mean = table[picked].mean(0)[:, 2 * late : 2 * late + 2]
    return [(float(cost), float(reward)) for cost, reward in mean]


def _estimate(of: Callable[[Rows, bool], float], drawn: Rows, late: bool) -> Estimate:
    value = of(np.arange(drawn.shape[1]), late)
    low, high = np.quantile([of(picked, late) for picked in drawn], (0.025, 0.975))
    return Estimate(value, float(high - low) / 2.0)
