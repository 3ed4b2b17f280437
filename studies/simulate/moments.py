"""Sum powers of numbers, and compute an interval of their mean that allows for skewness."""

from __future__ import annotations

import math
from dataclasses import dataclass

from router_state.config import Vector
from studies.simulate.limits import Z95


def reach(squares: float, cubes: float) -> float:
    """Return half of the 95 % interval of a sum of mean 0, from the sums of its terms' squares
    and cubes.

    A few dear terms make a sum skewed, and without one of them its deviation looks too small. The
    quantile is Hall's (1992, "On the removal of skewness by transformation", JRSS B 54), to its
    first order z + γ·(2z² + 1)/6 with the skewness γ of the sum, on both sides.
    """
    # The difference of two near numbers may round to less than 0.
    deviation = math.sqrt(max(squares, 0.0))
    # No sum of cubes is larger, except by rounding if all terms are equal.
    skewness = min(1.0, abs(cubes) / deviation**3) if deviation**3 > 0.0 else 0.0
    return deviation * (Z95 + skewness * (2.0 * Z95**2 + 1.0) / 6.0)


@dataclass(slots=True)
class Moments:
    """Count, sum, and sums of squares and cubes of a stream of numbers."""

    n: int = 0
    total: float = 0.0
    squares: float = 0.0
    cubes: float = 0.0

    def add(self, values: Vector) -> None:
        """Add numbers, shape (n,)."""
        self.n += len(values)
        self.total += values.sum().item()
        self.squares += values.dot(values).item()
        self.cubes += values.dot(values * values).item()

    @property
    def mean(self) -> float:
        return self.total / self.n if self.n else math.nan

    @property
    def effective(self) -> float:
        """The effective number of terms, (Σw)²/Σw²."""
        return self.total**2 / self.squares if self.squares else 0.0

    @property
    def half_width(self) -> float:
        """Half of the 95 % interval of the mean."""
        if self.n < 2:
            return math.nan
        mean, n = self.mean, self.n
        squares = self.squares - n * mean**2
        cubes = self.cubes - 3.0 * mean * self.squares + 2.0 * n * mean**3
        return reach(squares, cubes) / math.sqrt(n * (n - 1))
