"""Learn one reward: forgetting, regression, shared prior and detector."""

from __future__ import annotations

from math import isfinite, sqrt
from typing import TYPE_CHECKING

from router_state.errors import NonFiniteInput
from router_state.kernel.detector import Detector, Shift
from router_state.kernel.regression import Regression
from router_state.kernel.shared_prior import SharedPrior
from router_state.kernel.words import Real

if TYPE_CHECKING:
    from router_state.config import Vector


def learn_reward(
    one: Regression, prior: SharedPrior, detector: Detector, x: Vector, reward: Real, now: Real
) -> Shift | None:
    """Let a regression and its shared prior learn a reward; return the shift that the detector
    found.

    Raises:
        NonFiniteInput: a number is not finite; nothing has changed.
    """
    if not isfinite(reward):
        raise NonFiniteInput("what was observed is not finite")
    spread: Real = one.see(x)
    residual: Real = reward - one.mean_seen
    variance: Real = spread / one.decay
    one.learn(residual, spread)
    if not detector.doubts():
        prior.observe(residual, variance)
    return detector.observe(
        residual / sqrt(1.0 + variance),
        prior.typical(),
        variance * one.decay / one.values[one.at - 1],
        now,
    )
