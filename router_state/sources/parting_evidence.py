"""Weigh how much pairs speak for an offset of a judge, against none.

Differences of a pair are normal around the offset, of an unknown variance σ². Of σ² the prior is
`SPREAD_PAIRS` pairs at `PAIR_DEVIATION`², and what the pairs before say. The evidence is the
probability of the pairs since under an offset that is `SIZE` above or below, half each, divided by
that under no change:

    e = mean over ± of ((S + n·(m − m₀)²) ÷ (S + n·(m − m₀ ∓ SIZE)²))^((n + ν) ÷ 2)

with m their mean, m₀ the offset where nothing has changed, S the squares around the mean and those
of the prior, and ν the pairs of the prior. Where nothing has changed e is on average 1, and its
expectation does not grow with pairs (Ville 1939). That holds over what the prior leaves open about
σ², and where differences are normal. S is never below what the pairs since say alone, so a spread
that grows makes e smaller.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from router_state.kernel import exp_of, log_of
from router_state.learning.intervals import Interval, half_width
from router_state.sources.offsets import PAIR_DEVIATION, SPREAD_PAIRS

SIZE = 0.1
"""Offset that is looked for; one of 0.06 to 0.3 is found nearly as soon as by its own size."""
MOST_BEFORE = 128
"""Pairs before for which the pairs before count, at most: a spread may change."""


class Since(NamedTuple):
    """Pairs since one of them: how many, their mean difference, and Σ of squares around that; and
    how many pairs there were before, with their Σ of squares."""

    n: int
    mean: float
    squares: float
    before: int
    squares_before: float

    def _spread(self) -> tuple[float, float]:
        """Return S, and the pairs ν of the prior."""
        counted = float(min(self.before, MOST_BEFORE))
        known = SPREAD_PAIRS + max(counted - 1.0, 0.0)
        assumed = SPREAD_PAIRS * PAIR_DEVIATION**2
        before = self.squares_before * counted / max(self.before, 1)
        alone = (assumed + self.squares) / (SPREAD_PAIRS + self.n - 1)
        return max(assumed + before + self.squares, alone * (self.n + known)), known

    def evidence(self, unchanged: float) -> float:
        """Return log e against an offset."""
        spread, known = self._spread()

        def log_ratio(size: float) -> float:
            apart = self.mean - unchanged
            none, some = (spread + self.n * d * d for d in (apart, apart - size))
            return 0.5 * (self.n + known) * log_of(none / some)

        return log_sum([log_ratio(SIZE), log_ratio(-SIZE)]) - math.log(2.0)

    def offset(self, alpha: float) -> Interval:
        """Return the offset, and an interval that is ever wrong with this probability at most."""
        spread, known = self._spread()
        half = half_width(self.n, alpha, known=known) * math.sqrt(spread / self.n)
        return Interval(self.mean, max(self.mean - half, -1.0), min(self.mean + half, 1.0))


def log_sum(logs: list[float]) -> float:
    """Return the logarithm of a sum of positive numbers, given by their logarithms."""
    most = max(logs)
    return most + log_of(sum(exp_of(one - most) for one in logs))
