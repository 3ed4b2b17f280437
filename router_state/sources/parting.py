"""Find when a judge parts from gold: from the first pair on, or later, when it has changed.

A judge's offset is tested over all pairs, and over the last ones, which begin at each of the last
blocks (Shin, Ramdas and Rinaldo 2022, arXiv:2203.03532). Block k has a share
6 ÷ π²k² of the probability of a false alert, so that all together have no more than `FALSE`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from msgspec import Struct

from router_state.learning.change_blocks import BLOCK, BLOCKS
from router_state.learning.intervals import Interval, of_mean
from router_state.sources.pair_sums import PARTS, Moments

LEAST_SIZE = 0.05
"""Least offset, or change of one, that is worth an alert: smaller ones hardly change a choice."""


class Block(Struct, array_like=True, gc=False):
    """Sums of the differences, judge's less gold, of pairs in a row, and of the judge's labels, in
    parts."""

    n: int = 0
    d: int = 0
    dd: int = 0
    y: int = 0


class Parted(Struct, array_like=True, gc=False):
    """The offset that the last alert told, between which numbers it was, and the block from which
    on another one is looked for."""

    low: float
    high: float
    block: int


class Cell(Struct, array_like=True, gc=False):
    """The pairs of one judge on one model.

    Attributes:
        born: offset of the declaration under which it began: a pair of an earlier cell of the same
            judge and model is not in this one.
        all: sums over all pairs.
        first: number of the oldest block that is kept, from 1.
        blocks: the last ones, the oldest first.
        told: the last alert; None: none was raised.
    """

    born: int
    all: Moments
    first: int
    blocks: list[Block]
    told: Parted | None = None

    @classmethod
    def empty(cls, born: int) -> Cell:
        """Return a cell without pairs."""
        return cls(born, Moments(), 1, [Block()])

    def add(self, y: int, r: int) -> int:
        """Add a pair, in parts; return the number of its block."""
        self.all.add(y, r)
        if self.blocks[-1].n >= BLOCK:
            self.blocks.append(Block())
            if len(self.blocks) > BLOCKS:
                del self.blocks[0]
                self.first += 1
        _count(self.blocks[-1], y, r, 1)
        return self.first + len(self.blocks) - 1

    def take_back(self, y: int, r: int, block: int) -> None:
        """Take back a pair that was added to a block."""
        self.all.add(y, r, -1)
        if self.first <= block < self.first + len(self.blocks):
            _count(self.blocks[block - self.first], y, r, -1)

    def last_means(self) -> tuple[int, float, float]:
        """Return the number of pairs of the blocks that are kept, and the means of the judge's
        label and of gold: a judge that has changed is off as it is now."""
        n, d, _ = self._last(len(self.blocks))
        y, scale = sum(block.y for block in self.blocks), float(max(n, 1) * PARTS)
        return n, y / scale, (y - d) / scale

    def lately(self) -> Interval | None:
        """Return the offset over the blocks that are kept; None where there are no older pairs."""
        n, d, dd = self._last(len(self.blocks))
        return None if n == self.all.n or n < 2 else _offset(n, d, dd, 0.05)

    def parted(self, alpha: float) -> Interval | None:
        """Return the offset with which the judge parts from gold, or from the offset that was told;
        None: nothing is to be told.

        Args:
            alpha: probability of a false alert, over the whole life.
        """
        for offset in self._offsets(alpha / 2.0):
            told = self.told or Parted(0.0, 0.0, 0)
            beyond = max(offset.low - told.high, told.low - offset.high)
            near = min(max(offset.value, told.low), told.high)
            if beyond > 0.0 and abs(offset.value - near) >= LEAST_SIZE:
                self.told = Parted(offset.low, offset.high, self.first + len(self.blocks))
                return offset
        return None

    def _offsets(self, alpha: float) -> Iterator[Interval]:
        """Yield the offset over all pairs, then over those from each block on."""
        if self.told is None:
            yield self.all.offset(alpha=alpha)
        after = 0 if self.told is None else self.told.block
        for back in range(1, len(self.blocks) + 1):
            k = self.first + len(self.blocks) - back
            if k < after:
                return
            share = 6.0 / (math.pi * k) ** 2
            yield _offset(*self._last(back), alpha * share)

    def _last(self, count: int) -> tuple[int, int, int]:
        last = self.blocks[-count:]
        return sum(b.n for b in last), sum(b.d for b in last), sum(b.dd for b in last)

    @property
    def is_sound(self) -> bool:
        """Tell whether such a cell can be."""
        blocks = self.blocks
        fits = 0 < len(blocks) <= BLOCKS and self.first >= 1 and self.all.is_sound
        return fits and all(0 <= b.n <= BLOCK and b.d**2 <= b.n * b.dd for b in blocks)


def _count(block: Block, y: int, r: int, times: int) -> None:
    d = y - r
    block.n += times
    block.y += times * y
    block.d += times * d
    block.dd += times * d * d


def _offset(n: int, d: int, dd: int, alpha: float) -> Interval:
    around = (dd - d * d / n) / PARTS**2 if n else 0.0
    return of_mean(n, d / n / PARTS if n else 0.0, max(around, 0.0), alpha=alpha)
