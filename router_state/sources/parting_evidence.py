"""Compute the evidence of pairs that a judge's offset has changed.

The differences of pairs are normal around the offset, with an unknown variance σ². The prior of σ²
is `SPREAD_PAIRS` pairs at `PAIR_DEVIATION`², and the pairs before the supposed change. The evidence
is a ratio of two probabilities of the pairs since then: under an offset that is `SIZE` higher or
lower, half each, and under no change:

    e = mean over ± of ((S + n·(m − m₀)²) ÷ (S + n·(m − m₀ ∓ SIZE)²))^((n + ν) ÷ 2)

with m the mean of these n pairs, m₀ the offset without a change, S their squares around the mean
plus those of the prior, and ν the pairs of the prior. Without a change e is 1 on average, and its
expectation does not grow with pairs (Ville 1939). This holds on average over the prior of σ², and
for normal differences. S is at least the squares that the pairs since then give alone, so a spread
that grows makes e smaller.

Where a source hardly ever labels between 0 and 1, differences of 1 may be rare, and are far from
normal. The evidence of such pairs is at most another ratio, which assumes only that differences are
between −1 and 1 (Fan, Grama and Liu 2015, arXiv:1403.7143):

    e = mean over ± and the bets λ of exp(±λ·n·(m − m₀) ÷ c − (−λ − log(1 − λ))·Σ(d − m₀)² ÷ c²)

with c = 1 + |m₀|. Its expectation is at most 1 at every look.
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
"""Most pairs that the pairs before a supposed change count for in the prior of σ²: the spread of
differences may change, too."""


BETS = (0.1, 0.2, 0.4, 0.7)
"""Shares λ of the wealth that are bet on each pair (testing by betting): the best share is near m ÷
(the differences' variance + m²)."""


class Since(NamedTuple):
    """Sums of the pairs from one pair on, and of the pairs before it.

    Attributes:
        n, mean, squares: number of pairs from that pair on, the mean of their differences, and Σ of
            squares around this mean.
        before, squares_before: number of pairs before that pair, and their Σ of squares.
        rare: whether differences may be rare and large.
    """

    n: int
    mean: float
    squares: float
    before: int
    squares_before: float
    rare: bool = False

    def _spread(self) -> tuple[float, float]:
        """Return S, and the pairs ν of the prior."""
        counted = float(min(self.before, MOST_BEFORE))
        prior_pairs = SPREAD_PAIRS + max(counted - 1.0, 0.0)
        assumed = SPREAD_PAIRS * PAIR_DEVIATION**2
        before = self.squares_before * counted / max(self.before, 1)
        alone = (assumed + self.squares) / (SPREAD_PAIRS + self.n - 1)
        return max(assumed + before + self.squares, alone * (self.n + prior_pairs)), prior_pairs

    def evidence(self, unchanged: float) -> float:
        """Return the evidence log e that the offset is no longer `unchanged`."""
        normal = self._normal(unchanged)
        return min(normal, self._bounded(unchanged)) if self.rare else normal

    def _bounded(self, unchanged: float) -> float:
        apart, most = self.mean - unchanged, 1.0 + abs(unchanged)
        moved = self.n * apart / most
        squares = (self.squares + self.n * apart * apart) / most**2
        logs = [
            sign * bet * moved + (bet + log_of(1.0 - bet)) * squares
            for bet in BETS
            for sign in (1.0, -1.0)
        ]
        return log_sum(logs) - log_of(float(len(logs)))

    def _normal(self, unchanged: float) -> float:
        spread, prior_pairs = self._spread()

        def log_ratio(size: float) -> float:
            apart = self.mean - unchanged
            none, some = (spread + self.n * d * d for d in (apart, apart - size))
            return 0.5 * (self.n + prior_pairs) * log_of(none / some)

        return log_sum([log_ratio(SIZE), log_ratio(-SIZE)]) - math.log(2.0)

    def offset(self, alpha: float) -> Interval:
        """Return the offset, and an interval that is ever wrong with this probability at most."""
        spread, prior_pairs = self._spread()
        half = half_width(self.n, alpha, known=prior_pairs) * math.sqrt(spread / self.n)
        return Interval(self.mean, max(self.mean - half, -1.0), min(self.mean + half, 1.0))


def log_sum(logs: list[float]) -> float:
    """Return the logarithm of a sum of positive numbers, given by their logarithms."""
    most = max(logs)
    return most + log_of(sum(exp_of(one - most) for one in logs))
