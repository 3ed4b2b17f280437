"""Weigh blocks of pairs by the probability that the judge has not changed since.

By the prior a judge changes at most once: at each block with the probability `A_CHANGE`, by an
amount ~ N(0, `CHANGED_BY`²). The means of the differences before and since that block then differ
by this amount and by the noise of pairs. So the pairs show with which block a change is likely to
have begun (Chernoff and Zacks 1964, "Estimating the current mean of a normal distribution which is
subjected to changes in time").
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from router_state.kernel import exp_of, log_of
from router_state.sources.offsets import PAIR_DEVIATION, SPREAD_PAIRS
from router_state.sources.pair_sums import PARTS

A_CHANGE = 0.02
"""Probability of a change at a block of four pairs (chosen on seeds 0 to 39 of
`benchmarks.sources`, where 0.005 and 0.1 earned nearly the same)."""
CHANGED_BY = 0.2
"""Standard deviation of a change: as large as that of favoured models' offsets (`SCATTERS`)."""


class Summed(Protocol):
    """Sums over consecutive pairs: their number, Σ of differences, and Σ of squared differences. A
    difference is in parts of a reward (`pair_sums.PARTS`).
    """

    n: int
    d: int
    dd: int


def unchanged_since(blocks: Sequence[Summed]) -> list[float]:
    """Return for each block the probability that the judge has not changed since the block
    began.
    """
    logs = [0.0]
    total = sum(one.n for one in blocks), sum(one.d for one in blocks)
    squares, since = sum(one.dd for one in blocks), (0, 0)
    for one in reversed(blocks[1:]):
        since = since[0] + one.n, since[1] + one.d
        before = total[0] - since[0], total[1] - since[1]
        logs.append(_log_odds(before, since, squares) if before[0] > 0 < since[0] else -MOST_LOG)
    most = max(logs)
    shares = [exp_of(one - most) for one in logs]
    whole, so_far, found = sum(shares), shares[0], [shares[0]]
    for share in reversed(shares[1:]):
        so_far += share
        found.append(so_far)
    return [one / whole for one in found]


def _log_odds(before: tuple[int, int], since: tuple[int, int], squares: int) -> float:
    """Return the log odds of a change between two groups of pairs against no change.

    Args:
        before, since: number of pairs, and Σ of their differences.
        squares: Σ of squares of all differences.
    """
    (n, d), (m, e) = before, since
    around = max(squares - d * d / n - e * e / m, 0.0) / PARTS**2
    spread = (SPREAD_PAIRS * PAIR_DEVIATION**2 + around) / (SPREAD_PAIRS + n + m - 2)
    noise, apart = spread * (1.0 / n + 1.0 / m), (e / m - d / n) / PARTS
    whole = noise + CHANGED_BY**2
    fits = apart * apart / noise * CHANGED_BY**2 / whole
    return log_of(A_CHANGE) + 0.5 * (log_of(noise / whole) + fits)


MOST_LOG = 700.0
"""Log odds against a change at a block before or since which there is no pair."""
