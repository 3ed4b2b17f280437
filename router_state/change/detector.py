"""The detector of a change: a two-sided cumulative sum of standardised residuals (Page 1954).

What residuals give away may be a new kind of prompts instead of a changed model. How far a prompt
is from those before it is its leverage xᵀVx, in leverages of the bias, which falls with the number
of observations as well: so it stays the same while the mix of prompts does.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from router_state.config import GUESSED, MEMORY

LIMIT = 16.0
"""Log-likelihood ratio of an alarm (benchmarks.drift and drawn worlds count false ones)."""
CUT_AT = 4.0
"""Deviations at which a residual is cut: no single one may raise an alarm. A run of prompts whose
mean leverage is as many deviations of a mean above the usual one is of a new kind."""


@dataclass(frozen=True, slots=True)
class Shift:
    """A change that was found: the mean residual `size` of the run that gave it away.

    Its `evidence` exceeded the limit after `count` residuals, the first at time `since`. `novel`
    says that the run's prompts are of a new kind.
    """

    size: float
    evidence: float
    count: int
    since: float
    novel: bool


@dataclass(slots=True)
class Side:
    """One side of the sum since it last was zero: residuals, and leverages of their prompts."""

    evidence: float = 0.0
    count: int = 0
    total: float = 0.0
    since: float = 0.0
    leverage: float = 0.0


@dataclass(slots=True)
class Detector:
    """Two-sided CUSUM of residuals, each standardised by a running deviation and cut at four of
    them.

    A residual z counts as the log-likelihood ratio δz − δ²/2 of a shift by δ deviations against
    none. δ is the mean of the run so far, at least 1 (Lorden and Pollak 2008): two residuals alike
    that are far out give a shift away, and an ordinary one after an outlier clears it.

    Attributes:
        count: residuals so far; sigma: their running deviation.
        leverage, spread: mean and deviation of their prompts' leverages.
        up, down: the two sides.
    """

    count: float = 0.0
    sigma: float = 0.0
    leverage: float = 0.0
    spread: float = 0.0
    up: Side = field(default_factory=Side)
    down: Side = field(default_factory=Side)

    def observe(
        self, residual: float, *, deviation: float, leverage: float, now: float
    ) -> Shift | None:
        """Take one residual in; return the shift that it gives away, after which both sides start
        anew.

        Args:
            deviation: of residuals as far as those of all models tell, the least that is assumed.
            leverage: of its prompt.
        """
        sigma = self.sigma if self.sigma > deviation else deviation
        # Cut, so that a change does not stretch the yardstick that it is measured by.
        bound = CUT_AT * sigma
        cut = bound if residual > bound else -bound if residual < -bound else residual
        for run, z in ((self.up, cut / sigma), (self.down, -cut / sigma)):
            size = abs(run.total) / (run.count * sigma) if run.count else 1.0
            size = 1.0 if size < 1.0 else CUT_AT if size > CUT_AT else size
            evidence = run.evidence + size * z - size * size / 2.0
            if evidence <= 0.0:
                if run.count:
                    run.evidence, run.count, run.total, run.leverage = 0.0, 0, 0.0, 0.0
                continue
            if run.count == 0:
                run.since = now
            run.evidence = evidence
            run.count += 1
            run.total += residual
            run.leverage += leverage
            if evidence > LIMIT:
                return self._found(run)
        self._note(cut, sigma, leverage)
        return None

    def _found(self, run: Side) -> Shift:
        count = run.count
        beyond = run.leverage / count - self.leverage
        novel = beyond * count**0.5 > CUT_AT * self.spread
        self.up, self.down = Side(), Side()
        return Shift(run.total / count, run.evidence, count, run.since, novel)

    def _note(self, residual: float, sigma: float, leverage: float) -> None:
        """Take a residual and a leverage into what is usual."""
        self.count = count = self.count + 1.0 if self.count < MEMORY else MEMORY
        square = sigma * sigma
        self.sigma = (square + (residual * residual - square) / (GUESSED + count)) ** 0.5
        away, spread = leverage - self.leverage, self.spread
        # The first few are all there is to say what is usual: they count as they are.
        if count > GUESSED:
            most = CUT_AT * spread
            away = most if away > most else -most if away < -most else away
        self.leverage += away / count
        square = spread * spread
        self.spread = (square + (away * away - square) / count) ** 0.5
