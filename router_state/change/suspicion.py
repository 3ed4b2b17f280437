"""What is assumed of a model since its rewards drifted, until a likelihood ratio tells that it is
over."""

from __future__ import annotations

from dataclasses import dataclass

from router_state.change.detector import CUT_AT, MIN_SIGMA

RETURN_LIMIT = 4.0
"""Log-likelihood ratio that ends a suspicion (docs/algorithm.md)."""
MOST_FROM_ONE = 1.5
"""Most that one reward may add to it: three are wanted, as one good answer of a bad model proves
nothing."""
ACCEPTED_AFTER = 400
"""Rewards after which a fall is the new normal."""
BETTER_ACCEPTED_AFTER = 100
"""Rewards after which a rise is the new normal: believing it wrongly costs less."""
OFFSET_STEP = 0.02
"""Least step of the offset under suspicion, per reward."""


@dataclass(slots=True)
class Suspicion:
    """A model under suspicion: everything as before, but for one offset.

    The model's statistics rest meanwhile: they are the memory to which it returns.

    Attributes:
        offset: mean residual so far.
        count: rewards behind it.
        evidence: log-likelihood ratio of "as before" against "shifted by the offset", never below
            0; no reward adds more than `MOST_FROM_ONE`.
        since: time at which the drift began.
        after: seq of the last decision before the alarm. Rewards of decisions up to it say nothing
            of what the model is like now.
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
        """Whether the model is as before again."""
        return self.evidence > RETURN_LIMIT

    @property
    def accepted(self) -> bool:
        """Whether the drift has lasted long enough to be the new normal."""
        return self.count > (BETTER_ACCEPTED_AFTER if self.offset > 0.0 else ACCEPTED_AFTER)
