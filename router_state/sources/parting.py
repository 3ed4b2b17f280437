"""Find when a judge departs from gold: from the first pair on, or later, after a change.

A change may begin with any block of pairs. The evidence (`parting_evidence`) of the pairs since
each of the last blocks is computed, and that of all pairs. Their sum is weighted: each has a share
of the probability of a false alert (Shin, Ramdas and Rinaldo 2022, arXiv:2203.03532). As long as
the judge does not depart, the expectation of the sum is the total share of the blocks that have
begun. So the sum exceeds 1 ÷ α within a year with a probability of at most α × the total share of
that year's blocks. That total is at most 1 at any traffic, as a block's share is proportional to
the time since the block before.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from msgspec import Struct

from router_state.kernel import log_of
from router_state.learning.intervals import Interval, of_mean
from router_state.sources.pair_sums import PARTS, Moments
from router_state.sources.parting_evidence import Since, log_sum
from router_state.sources.unchanged_judge import unchanged_since

FALSE_A_YEAR = 0.01
"""Probability that a router raises a false alert within a year."""
FROM_THE_FIRST, LATER, LATER_A_YEAR = 0.2, 0.2, 0.6
"""Shares of the probability of a false alert for three kinds of change. A judge may differ from
gold from its first pair on. It may change at block k, with 6 ÷ π²k² of the second share each, which
finds changes where many pairs come at once. It may change at any time within a year."""
YEAR = 365.25 * 86_400.0
"""Seconds of a year."""
PAIRS_A_BLOCK, MOST_BLOCKS = 4, 32
"""Pairs of a block, and blocks that are kept: a change shows within 128 pairs or not at all."""
LEAST_PAIRS = 12
"""Least pairs of an alert: the sum of fewer pairs, with a rare difference of 1, is far from
normal."""
LEAST_SIZE = 0.05
"""Least offset, or change of an offset, of an alert: smaller ones hardly change a choice."""


class Block(Struct, array_like=True, gc=False):
    """Sums over consecutive pairs, in parts of a reward: their number n, Σ d of the differences
    judge − gold, Σ of their squares, and Σ y of the judge's labels. `share` is the part of the
    probability of a false alert that is spent on a change which begins with this block."""

    n: int = 0
    d: int = 0
    dd: int = 0
    y: int = 0
    share: float = 0.0


class Parted(Struct, array_like=True, gc=False):
    """Bounds of the offset in the last alert, and the block with which the search for the next
    change begins."""

    low: float
    high: float
    block: int


class Cell(Struct, array_like=True, gc=False):
    """The pairs of one judge on one model.

    Attributes:
        born: offset of the declaration under which the cell began. Pairs that were counted in an
            earlier cell of the same judge and model carry another offset.
        all: sums over all pairs.
        first: number of the oldest block that is kept, from 1.
        blocks: the last blocks, the oldest first.
        last_alert: the last alert raised; None: none was raised.
        began: time at which the last block began.
    """

    born: int
    all: Moments
    first: int
    blocks: list[Block]
    last_alert: Parted | None = None
    began: float = 0.0

    @classmethod
    def empty(cls, born: int) -> Cell:
        """Return a cell without pairs."""
        return cls(born, Moments(), 1, [Block()])

    def add(self, y: int, r: int, now: float) -> int:
        """Add a pair; return the number of its block.

        Args:
            y, r: the judge's label and the gold one, in parts of a reward.
            now: seconds since the epoch.
        """
        self.began = self.began if self.all.n else now
        self.all.add(y, r)
        if self.blocks[-1].n >= PAIRS_A_BLOCK:
            number = self.first + len(self.blocks)
            years = min(max(now - self.began, 0.0) / YEAR, 1.0)
            share = LATER * 6.0 / (math.pi * number) ** 2 + LATER_A_YEAR * years
            self.blocks.append(Block(share=share))
            self.began = now
            if len(self.blocks) > MOST_BLOCKS:
                del self.blocks[0]
                self.first += 1
        _count(self.blocks[-1], y, r, 1)
        return self.first + len(self.blocks) - 1

    def take_back(self, y: int, r: int, block: int) -> None:
        """Take back a pair that was added to a block."""
        self.all.add(y, r, -1)
        if self.first <= block < self.first + len(self.blocks):
            _count(self.blocks[block - self.first], y, r, -1)

    def last_means(self) -> tuple[float, float, float]:
        """Return the number of pairs in the blocks that are kept, and the means of the judge's
        label and of gold: after a change, a judge's offset is that of the pairs since the
        change. A block counts with the probability that the judge has not changed after it.
        """
        weighed = list(zip(unchanged_since(self.blocks), self.blocks, strict=True))
        n = sum(weight * block.n for weight, block in weighed)
        y = sum(weight * block.y for weight, block in weighed)
        d = sum(weight * block.d for weight, block in weighed)
        scale = PARTS * n if n > 0.0 else 1.0
        return n, y / scale, (y - d) / scale

    def recent_offset(self) -> Interval | None:
        """Return the offset over the blocks that are kept; None where there are no older pairs."""
        n, d, dd = self._last(len(self.blocks))
        return None if n == self.all.n or n < 2 else _offset(n, d, dd, 0.05)

    def parted(self, alpha: float) -> Interval | None:
        """Return the judge's offset from gold if it differs from 0 or from the offset of the last
        alert; None: no alert is due.

        Args:
            alpha: probability of a false alert in a year.
        """
        last = self.last_alert or Parted(0.0, 0.0, 0)

        def unchanged(since: Since) -> float:
            return min(max(since.mean, last.low), last.high)

        begun = [(share, since) for share, since in self._since(last.block) if share > 0.0]
        # Evidence is dear, and no evidence makes so small a change worth an alert.
        if all(abs(since.mean - unchanged(since)) < LEAST_SIZE for _, since in begun):
            return None
        found = [(log_of(share) + one.evidence(unchanged(one)), one) for share, one in begun]
        if log_sum([evidence for evidence, _ in found]) < log_of(1.0 / alpha):
            return None
        _, since = max(found)
        if abs(since.mean - unchanged(since)) < LEAST_SIZE:
            return None
        offset = since.offset(alpha)
        self.last_alert = Parted(offset.low, offset.high, self.first + len(self.blocks))
        return offset

    def _since(self, first: int) -> Iterator[tuple[float, Since]]:
        """Yield the pairs since the first one, and since each of the last blocks, with the share of
        the probability of a false alert that each has.

        Args:
            first: number of the first block that counts.
        """
        rare = self.all.rarely_between
        every = self.all.n, self.all.y - self.all.r, self.all.yy - 2 * self.all.yr + self.all.rr
        if not first and every[0] >= LEAST_PAIRS:
            yield FROM_THE_FIRST, _since_pairs(every, (0, 0, 0), rare)
        n = d = dd = 0
        for number in reversed(range(max(self.first, first), self.first + len(self.blocks))):
            block = self.blocks[number - self.first]
            n, d, dd = n + block.n, d + block.d, dd + block.dd
            if n >= LEAST_PAIRS:
                before = every[0] - n, every[1] - d, every[2] - dd
                yield block.share, _since_pairs((n, d, dd), before, rare)

    def _last(self, count: int) -> tuple[int, int, int]:
        last = self.blocks[-count:]
        return sum(b.n for b in last), sum(b.d for b in last), sum(b.dd for b in last)

    @property
    def is_sound(self) -> bool:
        """Tell whether the numbers of the cell are possible."""
        blocks = self.blocks
        fits = 0 < len(blocks) <= MOST_BLOCKS and self.first >= 1 and self.all.is_sound
        shares = all(0.0 <= b.share <= 1.0 for b in blocks) and math.isfinite(self.began)
        return fits and shares and all(b.n >= 0 and b.d**2 <= b.n * b.dd for b in blocks)


def _count(block: Block, y: int, r: int, times: int) -> None:
    d = y - r
    block.n += times
    block.y += times * y
    block.d += times * d
    block.dd += times * d * d


def _since_pairs(pairs: tuple[int, int, int], before: tuple[int, int, int], rare: bool) -> Since:
    """Return the pairs since one of them, from numbers, Σ and Σ of squares of differences."""
    n, d, _ = pairs
    return Since(n, d / n / PARTS, _around(*pairs), before[0], _around(*before), rare)


def _around(n: int, d: int, dd: int) -> float:
    """Return Σ of squares around the mean of differences in parts."""
    return max(dd - d * d / n, 0.0) / PARTS**2 if n else 0.0


def _offset(n: int, d: int, dd: int, alpha: float) -> Interval:
    return of_mean(n, d / n / PARTS if n else 0.0, _around(n, d, dd), alpha=alpha)
