"""Tally the decisions, bills and labels of one model of a router."""

from __future__ import annotations

import math
from dataclasses import dataclass

from drawing.changes import Prices
from schemas import Candidate

RECENT = 1.0 / 200.0
"""Weight of the newest decision in an expectation: a memory of some 200 decisions."""
SURE = 1.96
"""Half the width of a normal distribution's middle 95 %, in standard deviations."""


@dataclass(slots=True)
class Mean:
    """A sum that also tells how far its mean may be off."""

    n: int = 0
    total: float = 0.0
    squares: float = 0.0

    def move(self, value: float, *, before: float | None) -> None:
        """Take a value in, or the one that replaces an earlier one."""
        if before is None:
            self.n += 1
        self.total += value - (before or 0.0)
        self.squares += value**2 - (before or 0.0) ** 2

    @property
    def value(self) -> float | None:
        """Return the mean; None before the first value."""
        return self.total / self.n if self.n else None

    @property
    def doubt(self) -> float | None:
        """Return half the width of the mean's 95 % interval; None for fewer than two values."""
        if self.n < 2:
            return None
        variance = max(0.0, self.squares / self.n - (self.total / self.n) ** 2)
        return SURE * math.sqrt(variance / (self.n - 1))


@dataclass(slots=True)
class ModelTally:
    """One model of a router.

    Attributes:
        chosen: decisions for it.
        rated: decisions that had it among their candidates, over which `quality_sum` and `cost_sum`
            add up what was expected of it.
        quality_now, cost_now: the same as a mean that forgets.
        deviation_now: so far the expected quality may be off, likewise; None: no decision said it.
    """

    chosen: int = 0
    rated: int = 0
    quality_sum: float = 0.0
    cost_sum: float = 0.0
    quality_now: float = 0.0
    cost_now: float = 0.0
    deviation_now: float | None = None
    labels: Mean | None = None
    bills: Mean | None = None

    def rate(self, candidate: Candidate) -> None:
        """Take in what a decision expected of the model."""
        self.rated += 1
        self.quality_sum += candidate.mean
        self.cost_sum += candidate.expected_cost_usd
        # A plain mean until there are enough, so that the first decision does not weigh for long.
        weight = max(RECENT, 1.0 / self.rated)
        self.quality_now += weight * (candidate.mean - self.quality_now)
        self.cost_now += weight * (candidate.expected_cost_usd - self.cost_now)
        if candidate.deviation is not None:
            before = self.deviation_now
            start = candidate.deviation if before is None else before
            self.deviation_now = start + weight * (candidate.deviation - start)

    def label(self, reward: float, *, before: float | None) -> None:
        """Take a label in."""
        self.labels = self.labels or Mean()
        self.labels.move(reward, before=before)

    def bill(self, cost_usd: float, *, before: float | None) -> None:
        """Take a bill in."""
        self.bills = self.bills or Mean()
        self.bills.move(cost_usd, before=before)

    def shown(self, name: str, prices: Prices | None, share: float | None) -> dict[str, object]:
        """Return what a page says of the model."""
        labels, bills = self.labels or Mean(), self.bills or Mean()
        return {
            "model": name,
            "prices": prices,
            "chosen": self.chosen,
            "share": share,
            "expected_cost_usd": self.cost_now if self.rated else None,
            "expected_quality": self.quality_now if self.rated else None,
            "deviation": self.deviation_now,
            "cost_usd": bills.value,
            "bills": bills.n,
            "quality": labels.value,
            "doubt": labels.doubt,
            "labels": labels.n,
        }
