"""Judge whether a measurement is flat: compare its beginning with its end, after the warm-up."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike


@dataclass(frozen=True, slots=True)
class Trend:
    """Change of a measurement between the first and the last third of a run.

    Attributes:
        first, last: medians of these thirds.
        per_hour: slope of the whole, Theil–Sen: the median of the slopes between all pairs, in
            units per hour.
        peak: the highest value.
    """

    first: float
    last: float
    per_hour: float
    peak: float

    @property
    def growth(self) -> float:
        """Growth from the first third to the last one, as a share of the first."""
        return (self.last - self.first) / self.first if self.first else float(self.last > 0.0)

    def is_flat(self, *, tolerance: float) -> bool:
        """Tell whether the last third is no higher than the first by more than a share of it; that
        it sinks is no harm.
        """
        return self.growth <= tolerance


def trend(seconds: ArrayLike, values: ArrayLike) -> Trend:
    """Return the trend of a measurement.

    Raises:
        ValueError: fewer than six values say nothing.
    """
    t, v = np.asarray(seconds, float), np.asarray(values, float)
    if len(v) < 6:
        raise ValueError(f"{len(v)} values are too few for a trend")
    third = len(v) // 3
    i, j = np.triu_indices(len(v), k=1)
    slope = float(np.median((v[j] - v[i]) / (t[j] - t[i])))
    return Trend(
        float(np.median(v[:third])), float(np.median(v[-third:])), slope * 3600.0, float(v.max())
    )
