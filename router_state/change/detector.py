"""The detector of a change: a two-sided cumulative sum of standardised residuals (Page 1954)."""

from __future__ import annotations

from dataclasses import dataclass, field

SHIFT = 1.0
"""Least shift that is looked for, in deviations; the slack of the CUSUM is half of it."""
CUT_AT = 4.0
"""Deviations at which a residual is cut: no single one may raise an alarm."""
MIN_SIGMA = 0.02
"""Least running deviation, in units of the signal: signals that are all alike are not infinitely
sure."""
CENTRING = 0.01
"""Step of the running mean, per residual."""
MEMORY = 200.0
"""Residuals over which the deviation is taken, unless the caller says otherwise."""


@dataclass(frozen=True, slots=True)
class Shift:
    """A change that was found: the mean residual `size` of the run that gave it away.

    `evidence` exceeded `limit` after `count` residuals, the first at time `since`.
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
class Detector:
    """Two-sided CUSUM of residuals, each standardised by a running deviation and cut at four of
    them.

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
        centred: bool = False,
        adaptive: bool = False,
        memory: float = MEMORY,
        least: float = MIN_SIGMA,
    ) -> Shift | None:
        """Take one residual in; return the shift that it gives away, after which both sides start
        anew.

        Args:
            limit: log-likelihood ratio of an alarm.
            centred: whether the running mean is taken off.
            memory: over about how many residuals the deviation is taken.
            least: smallest deviation that is assumed.
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
                self.up, self.down = Side(), Side()
                return found
        # Cut, so that a change does not stretch the yardstick that it is measured by.
        bound = 3.0 * sigma
        residual = bound if residual > bound else -bound if residual < -bound else residual
        self.sigma = (sigma * sigma + (residual * residual - sigma * sigma) / memory) ** 0.5
        if centred:
            self.mean += CENTRING * residual
        return None
