"""Sum over pairs: requests with a gold label and a judge's. The sums are whole numbers, so a pair
that is taken back leaves no trace."""

from __future__ import annotations

import math
from collections.abc import Sequence

from msgspec import Struct

from router_state.learning.intervals import SHOWN, Interval, half_width, of_correlation, of_mean

PARTS = 10_000
"""Parts that a label of 1 has: labels are counted in whole parts, so that sums of products over
10¹⁰ pairs fit into 64-bit integers."""
LEAST_SPREAD = 1e-9
"""Least variance of labels for which a slope or a correlation is computed."""
LEAST_BETWEEN = 0.05
"""Least mean of label·(1 − label) of a source with many labels between 0 and 1. The mean is 0 for
thumbs, and 0.05 for labels that are all 0.95."""


class Moments(Struct, array_like=True, gc=False):
    """Sums over pairs of a judge's label y and a gold one r, in parts (`PARTS`)."""

    n: int = 0
    y: int = 0
    r: int = 0
    yy: int = 0
    yr: int = 0
    rr: int = 0

    def add(self, y: int, r: int, times: int = 1) -> None:
        """Add a pair; −1 times removes it."""
        self.n += times
        self.y += times * y
        self.r += times * r
        self.yy += times * y * y
        self.yr += times * y * r
        self.rr += times * r * r

    def plus(self, other: Moments) -> Moments:
        """Return these sums plus other sums."""
        return Moments(*(getattr(self, name) + getattr(other, name) for name in _FIELDS))

    def offset(self, *, alpha: float = SHOWN) -> Interval:
        """Return by how much the judge is above gold on average, with an interval."""
        n, d = self.n, self.y - self.r
        squares = self.yy - 2 * self.yr + self.rr
        around = (squares - d * d / n) / PARTS**2 if n else 0.0
        return of_mean(n, d / n / PARTS if n else 0.0, max(around, 0.0), alpha=alpha)

    @property
    def rarely_between(self) -> bool:
        """Tell whether one of the two sources hardly ever labels between 0 and 1."""
        between = min(self.y * PARTS - self.yy, self.r * PARTS - self.rr)
        return between < LEAST_BETWEEN * self.n * PARTS**2

    @property
    def is_sound(self) -> bool:
        """Tell whether the sums are possible."""
        n = self.n
        return n >= 0 and self.y**2 <= n * self.yy and self.r**2 <= n * self.rr


_FIELDS = Moments.__struct_fields__


class Within(Struct):
    """Variances and covariance of labels within models, and over how many pairs."""

    n: int
    yy: float
    yr: float
    rr: float

    @classmethod
    def of(cls, models: Sequence[Moments]) -> Within:
        """Pool models, each around its own means: differences between models are not agreement on
        answers."""
        n = sum(one.n for one in models)
        known = [one for one in models if one.n]
        square = float(max(n, 1)) * PARTS**2
        return cls(
            # A mean of its own for each model takes one pair of what is known.
            n - max(len(known) - 1, 0),
            sum(one.yy - one.y * one.y / one.n for one in known) / square,
            sum(one.yr - one.y * one.r / one.n for one in known) / square,
            sum(one.rr - one.r * one.r / one.n for one in known) / square,
        )

    @property
    def agreement(self) -> Interval | None:
        """The correlation of a judge's label and gold; None where one of the two never changes."""
        if min(self.yy, self.rr) < LEAST_SPREAD:
            return None
        return of_correlation(self.n, self.yr / math.sqrt(self.yy * self.rr))

    @property
    def slope(self) -> Interval | None:
        """Return the slope of gold on the judge's label, with an interval; None if that label never
        changes."""
        if self.yy < LEAST_SPREAD:
            return None
        slope = self.yr / self.yy
        left = max(self.rr - slope * self.yr, 0.0) + PSEUDO_VARIANCE / max(self.n, 1)
        half = half_width(self.n - 2, SHOWN) * math.sqrt(left / self.yy)
        half = min(half, WIDEST_SLOPE)
        return Interval(slope, slope - half, slope + half)


PSEUDO_VARIANCE = 0.25
"""Sum of squares that is assumed beside that of a slope's residuals, for the reason of
`intervals.PSEUDO`."""
WIDEST_SLOPE = 99.0
"""Largest half-width of a slope's interval, so that published numbers are finite."""
