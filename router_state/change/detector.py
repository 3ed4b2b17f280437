"""Alarms: a cumulative sum of standardised residuals gives a drift away, a likelihood ratio tells
when it is over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

SHIFT = 1.0
"""The least shift that is looked for, in deviations; the slack of the CUSUM is half of it."""
REWARD_LIMIT = 16.0
"""Log-likelihood ratio of an alarm (docs/algorithm.md; benchmarks.drift counts false ones)."""
CUT_AT = 4.0
"""Deviations at which a residual is cut: no single one may raise an alarm."""
MIN_SIGMA = 0.02
"""Least running deviation, in units of the signal: rewards that are all alike are not infinitely
sure."""
MEMORY = 200.0
"""Residuals over which the deviation is taken."""
CENTRING = 0.01
"""Step of the running mean, per residual; over a hundred of them."""
RETURN_LIMIT = 4.0
"""Log-likelihood ratio that ends a suspicion (docs/algorithm.md)."""
MOST_FROM_ONE = 1.5
"""What one reward may add to it: three are wanted, as one good answer of a bad model proves
nothing."""
ACCEPTED_AFTER = 400
"""Rewards after which a fall is the new normal."""
BETTER_ACCEPTED_AFTER = 100
"""Rewards after which a rise is: believing it wrongly costs less."""
OFFSET_STEP = 0.02
"""Least step of the offset under suspicion, per reward; over fifty of them."""
WATCH_SIZE = 10
"""Numbers of a packed watch."""
SUSPICION_SIZE = 5
"""Numbers of a packed suspicion."""


@dataclass(frozen=True, slots=True)
class Shift:
    """A drift that was found: the mean residual `size` of the run that gave it away, its length and
    since when it runs.

    `evidence` was more than `limit`.
    """

    size: float
    evidence: float
    limit: float
    count: int
    since: float


@dataclass(slots=True)
class Side:
    """One side of a CUSUM, since it last was zero."""

    evidence: float = 0.0
    count: int = 0
    total: float = 0.0
    since: float = 0.0


@dataclass(slots=True)
class Watch:
    """Two-sided CUSUM of residuals (Page 1954), each standardised by a running deviation and cut at
    four of them.

    A residual z counts as the log-likelihood ratio δz − δ²/2 of a shift by δ deviations against
    none. δ is 1; where it is `adaptive`, it is the mean of the run so far if that is more (Lorden
    and Pollak 2008): two residuals alike that are far out then give a shift away, and an ordinary
    one after an outlier clears it.

    Attributes:
        sigma: running standard deviation; mean: running mean, taken off every residual.
        up, down: the two sides.
    """

    sigma: float = 0.2
    mean: float = 0.0
    up: Side = field(default_factory=Side)
    down: Side = field(default_factory=Side)

    def observe(
        self,
        residual: float,
        *,
        limit: float,
        now: float,
        centred: bool = True,
        adaptive: bool = False,
        memory: float = MEMORY,
        least: float = MIN_SIGMA,
    ) -> Shift | None:
        """Take one residual in; return the shift that it gives away, after which both sides start
        anew.

        Args:
            memory: over about how many residuals the deviation is taken.
            least: deviation that is taken at least.
        """
        residual -= self.mean
        least = least if least > MIN_SIGMA else MIN_SIGMA
        sigma = self.sigma if self.sigma > least else least
        z = residual / sigma
        z = CUT_AT if z > CUT_AT else -CUT_AT if z < -CUT_AT else z
        for run, away in ((self.up, z), (self.down, -z)):
            # A side that is at zero mostly stays there: nothing to compute.
            if run.count == 0 and away <= SHIFT / 2.0:
                continue
            size = SHIFT
            if adaptive and run.count:
                size = min(max(abs(run.total) / (run.count * sigma), SHIFT), CUT_AT)
            evidence = run.evidence + size * away - size * size / 2.0
            if evidence <= 0.0:
                run.evidence, run.count, run.total = 0.0, 0, 0.0
                continue
            if run.count == 0:
                run.since = now
            run.evidence = evidence
            run.count += 1
            run.total += residual
            if evidence > limit:
                found = Shift(run.total / run.count, evidence, limit, run.count, run.since)
                self.restart()
                return found
        # Cut, so that a drift does not stretch the yardstick that it is measured by.
        bound = 3.0 * sigma
        residual = bound if residual > bound else -bound if residual < -bound else residual
        self.sigma = (sigma * sigma + (residual * residual - sigma * sigma) / memory) ** 0.5
        if centred:
            self.mean += CENTRING * residual
        return None

    def restart(self) -> None:
        """Start both sides anew."""
        self.up, self.down = Side(), Side()

    def pack(self) -> list[float]:
        """Return its ten numbers."""
        up, down = self.up, self.down
        return [
            self.sigma,
            self.mean,
            up.evidence,
            up.count,
            up.total,
            up.since,
            down.evidence,
            down.count,
            down.total,
            down.since,
        ]

    @classmethod
    def unpack(cls, values: Sequence[float]) -> Watch:
        """Invert `pack`."""
        up, down = (
            Side(evidence, int(count), total, since)
            for evidence, count, total, since in (values[2:6], values[6:10])
        )
        return cls(values[0], values[1], up, down)


@dataclass(slots=True)
class Suspicion:
    """What is assumed of an arm since its rewards drifted: everything as before, but for one
    offset.

    The arm's statistics rest meanwhile: they are the memory to which it returns.

    Attributes:
        offset: mean residual so far.
        count: rewards behind it.
        evidence: log-likelihood ratio of "as before" against "shifted by the offset", never below
            0; no reward adds more than `MOST_FROM_ONE`, so that it takes three to return: one good
            answer of a bad model does not.
        since: when the drift began.
        after: seq of the last decision before the alarm. Rewards of decisions up to it say nothing
            of what the arm is like now.
    """

    offset: float
    count: int
    evidence: float
    since: float
    after: int

    def observe(self, *, predicted: float, reward: float, sigma: float) -> None:
        """Take one reward in; `predicted` is without the offset."""
        sigma = max(sigma, MIN_SIGMA)
        # Rewards are in [0, 1]: an offset leads no expectation out of it.
        shifted = min(max(predicted + self.offset, 0.0), 1.0)
        before = min(abs(reward - predicted) / sigma, CUT_AT)
        after = min(abs(reward - shifted) / sigma, CUT_AT)
        self.evidence = max(
            0.0, self.evidence + min((after * after - before * before) / 2.0, MOST_FROM_ONE)
        )
        self.count += 1
        # The mean at first; then it follows on, as what has drifted once may drift again.
        self.offset += max(1.0 / self.count, OFFSET_STEP) * (reward - predicted - self.offset)

    @property
    def over(self) -> bool:
        """Whether the arm is as before again."""
        return self.evidence > RETURN_LIMIT

    @property
    def accepted(self) -> bool:
        """Whether the drift has lasted long enough to be the new normal."""
        return self.count > (BETTER_ACCEPTED_AFTER if self.offset > 0.0 else ACCEPTED_AFTER)

    def pack(self) -> list[float]:
        """Return its five numbers."""
        return [self.offset, self.count, self.evidence, self.since, self.after]

    @classmethod
    def unpack(cls, values: Sequence[float]) -> Suspicion:
        """Invert `pack`."""
        offset, count, evidence, since, after = values
        return cls(offset, int(count), evidence, since, int(after))
