"""Test verifiers by pairs of a verdict and a label: whether verdicts are informative, and whether
they are as informative as before.

A pair counts by the difference of its label from the expected reward of the answer. Among answers
that passed the mean is higher than among those that did not, by the *separation*: 0 for a coin, and
for a verifier that only likes one model. All intervals hold at every look (`learning.intervals`).
"""

from __future__ import annotations

import math

from msgspec import Struct, field

from router_state.learning.intervals import Interval, of_mean

LEAST_SEPARATION = 0.2
"""Separation below which a verifier is worthless. A verifier that passes 60 % of the right answers
and stops 60 % of the wrong ones has it, where half of the answers are right."""
LEAST_CHANGE = 0.1
"""Least change of the mean of pairs that is worth an alert: half of the change of the
separation."""
ANSWERS_REMEMBERED = 500.0
"""Most answers behind a share of awaited verdicts that arrive."""
VERDICTS_BELIEVED = 10.0
"""Number of awaited verdicts that are assumed to have arrived, beside those that were observed. For
one model's answers they are assumed to arrive as often as for all models' answers."""
BLOCK = 16
"""Pairs of a block, over which a change is looked for."""
BLOCKS = 8
"""Blocks that are kept: a change shows within 128 pairs or not at all."""


class Sums(Struct, array_like=True, gc=False):
    """A number of terms, their sum, and the sum of their squares."""

    n: int = 0
    sum: float = 0.0
    squares: float = 0.0

    def add(self, value: float) -> None:
        """Add a term."""
        self.n += 1
        self.sum += value
        self.squares += value * value

    def join(self, other: Sums) -> None:
        """Add the terms of other sums."""
        self.n += other.n
        self.sum += other.sum
        self.squares += other.squares

    @property
    def average(self) -> float:
        """Return the mean; 0: there is no term."""
        return self.sum / self.n if self.n else 0.0

    def mean(self, alpha: float) -> Interval:
        """Return the mean, and an interval that is ever wrong with this probability at most."""
        if not self.n:
            return Interval(0.0, -1.0, 1.0)
        mean = self.sum / self.n
        return of_mean(self.n, mean, max(self.squares - mean * self.sum, 0.0), alpha=alpha)


class Change(Struct, frozen=True):
    """A change of what verdicts mean: the sums over the pairs before the change, and over those
    since.
    """

    before: Interval
    now: Interval


class Pairs(Struct, array_like=True, gc=False):
    """The pairs of one verifier, and its costs.

    Attributes:
        since: time of its first verdict, seconds since the epoch.
        verdicts: their number; fees_usd: their dollars.
        further_usd: dollars of the calls that followed as a verdict did not pass.
        passed, stopped: labels above expectation, of answers that passed and of those that did not.
        older: sums of the pairs before the blocks; blocks: sums of the last blocks of pairs; first:
            number of the first block, from 1. A pair counts with its label above expectation, with
            the other sign where the answer did not pass.
        alerted: whether an alert has said that the verifier is worthless.
        awaited: answers of plans that were to be verified; came: verdicts on them.
        by_model: `awaited` and `came` of each model's answers, by the model's name.
        given_seconds: seconds after which a verdict on a first answer is overdue, see
            `verdict_waits`; 0: not known.
    """

    since: float
    verdicts: int = 0
    fees_usd: float = 0.0
    further_usd: float = 0.0
    passed: Sums = field(default_factory=Sums)
    stopped: Sums = field(default_factory=Sums)
    older: Sums = field(default_factory=Sums)
    blocks: list[Sums] = field(default_factory=lambda: [Sums()])
    first: int = 1
    alerted: bool = False
    awaited: float = 0.0
    came: float = 0.0
    given_seconds: float = 0.0
    by_model: dict[str, tuple[float, float]] = {}

    def add(self, above: float, *, passes: bool) -> None:
        """Add a pair, by the difference `above` of its label from the expected reward of the
        answer."""
        above = min(max(above, -1.0), 1.0)
        (self.passed if passes else self.stopped).add(above)
        if self.blocks[-1].n >= BLOCK:
            self.blocks.append(Sums())
            if len(self.blocks) > BLOCKS:
                self.older.join(self.blocks.pop(0))
                self.first += 1
        self.blocks[-1].add(above if passes else -above)

    def wait(self, model: str) -> None:
        """Count a model's answer that is to be verified; older ones fade."""
        self.awaited, self.came = _and_one(self.awaited, self.came)
        self.by_model[model] = _and_one(*self.by_model.get(model, (0.0, 0.0)))

    def come(self, model: str) -> None:
        """Count a verdict on a model's answer that was to be verified."""
        awaited, came = self.by_model.get(model, (0.0, 0.0))
        self.came, self.by_model[model] = self.came + 1.0, (awaited, came + 1.0)

    @property
    def comes(self) -> float:
        """Return the share of awaited verdicts that arrive."""
        return min((self.came + VERDICTS_BELIEVED) / (self.awaited + VERDICTS_BELIEVED), 1.0)

    def comes_of(self, model: str, others: float) -> float:
        """Return the share of awaited verdicts on a model's answers that arrive.

        Args:
            others: the share that is assumed before the model's first answer.
        """
        awaited, came = self.by_model.get(model, (0.0, 0.0))
        return min((came + VERDICTS_BELIEVED * others) / (awaited + VERDICTS_BELIEVED), 1.0)

    @property
    def count(self) -> int:
        """Return the number of pairs."""
        return self.passed.n + self.stopped.n

    def separation(self, alpha: float) -> Interval:
        """Return the difference of the mean label between answers that passed and answers that did
        not, with its interval.
        """
        passed, stopped = self.passed.mean(alpha / 2.0), self.stopped.mean(alpha / 2.0)
        low, high = passed.low - stopped.high, passed.high - stopped.low
        return Interval(passed.value - stopped.value, max(low, -1.0), min(high, 1.0))

    def worthless(self, alpha: float) -> Interval | None:
        """Return the separation if it is surely too small; later calls return None."""
        if self.alerted:
            return None
        # Intervals are dear, and contain what they are of.
        if self.passed.average - self.stopped.average >= LEAST_SEPARATION:
            return None
        found = self.separation(alpha)
        if found.high >= LEAST_SEPARATION:
            return None
        self.alerted = True
        return found

    def parted(self, alpha: float) -> Change | None:
        """Return how the last pairs differ from the pairs before, and forget those before; None:
        they do not differ.
        """
        counts, sums = [one.n for one in self.blocks], [one.sum for one in self.blocks]
        n, total = self.older.n, self.older.sum
        for at, block in enumerate(self.blocks):
            # Intervals are dear, and no interval makes so small a change worth an alert.
            if n >= BLOCK and abs(sum(sums[at:]) / sum(counts[at:]) - total / n) >= LEAST_CHANGE:
                change = self._change(at, alpha)
                if change is not None:
                    self._begin_anew(at)
                    return change
            n, total = n + block.n, total + block.sum
        return None

    def _change(self, at: int, alpha: float) -> Change | None:
        """Return how the pairs from a block on differ from those before; None: not surely."""
        before, later = Sums(), Sums()
        for sums in (self.older, *self.blocks[:at]):
            before.join(sums)
        for sums in self.blocks[at:]:
            later.join(sums)
        # Each place where the last pairs may begin has a share of the probability.
        place = self.first + at
        share = alpha * 6.0 / (math.pi * place) ** 2
        now, then = later.mean(share / 2.0), before.mean(share / 2.0)
        surely = max(now.low - then.high, then.low - now.high) > 0.0
        return Change(then, now) if surely else None

    def _begin_anew(self, at: int) -> None:
        """Forget all pairs before a block."""
        self.first += at
        self.older, self.blocks = Sums(), self.blocks[at:]
        self.passed, self.stopped, self.alerted = Sums(), Sums(), False

    def usd_per_day(self, now: float) -> float:
        """Return the dollars per day that verdicts, and the calls after them, have cost."""
        days = max(now - self.since, DAY / 24.0) / DAY
        return (self.fees_usd + self.further_usd) / days

    @property
    def is_sound(self) -> bool:
        """Tell whether the numbers are possible."""
        sums = [self.passed, self.stopped, self.older, *self.blocks]
        finite = all(math.isfinite(one.sum) and math.isfinite(one.squares) for one in sums)
        counts = all(one.n >= 0 for one in sums) and self.verdicts >= 0
        finite = finite and 0.0 <= self.given_seconds < math.inf
        return finite and counts and 0 < len(self.blocks) <= BLOCKS and self.first >= 1


def _and_one(awaited: float, came: float) -> tuple[float, float]:
    """Return the answers that await a verdict, and those with one, after one more that awaits."""
    fades = 0.5 if awaited + 1.0 > ANSWERS_REMEMBERED else 1.0
    return fades * (awaited + 1.0), fades * came


DAY = 86_400.0
"""Seconds of a day."""
