"""Offset the expectations of a model whose rewards drifted, until a likelihood ratio tells that
the model recovered.
"""

from __future__ import annotations

from dataclasses import dataclass

from router_state.kernel.learning.detector import CUT_AT

RETURNED = 4.0
"""Log-likelihood ratio that ends a suspicion, in nats (benchmarks.drift)."""
LEAST_REWARDS = 3
"""Least number of rewards that ends a suspicion: one good answer of a bad model proves nothing."""
ACCEPTED_AFTER = 400
"""Rewards after which a shift is accepted as permanent."""


@dataclass(slots=True)
class Suspicion:
    """The suspicion of a model: its expectations plus one offset.

    The model's statistics are frozen meanwhile, so that it can return to them.

    Attributes:
        offset: mean residual so far.
        count: rewards behind it.
        evidence: log-likelihood ratio of "as before" against "shifted by the offset", never below
            0.
        since: time at which the drift began.
        after: seq of the last decision before the alarm. Rewards of decisions up to it do not
            count, as they are from before the shift.
    """

    offset: float
    count: int
    evidence: float
    since: float
    after: int

    def observe(self, *, predicted: float, reward: float, sigma: float) -> None:
        """Learn one reward; `predicted` is the expected reward without the offset."""
        # Clipped, as rewards are in [0, 1].
        shifted = min(max(predicted + self.offset, 0.0), 1.0)
        before = min(abs(reward - predicted) / sigma, CUT_AT)
        after = min(abs(reward - shifted) / sigma, CUT_AT)
        said = min((after * after - before * before) / 2.0, RETURNED / LEAST_REWARDS)
        self.evidence = max(0.0, self.evidence + said)
        self.count += 1
        self.offset += (reward - predicted - self.offset) / self.count

    @property
    def over(self) -> bool:
        """Tell whether the model is as before again."""
        return self.evidence > RETURNED

    @property
    def accepted(self) -> bool:
        """Tell whether the drift has lasted long enough to be permanent."""
        return self.count > ACCEPTED_AFTER
