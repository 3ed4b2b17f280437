"""Learn one reward or one bill: forgetting, regression, shared prior and detector."""

from __future__ import annotations

from math import isfinite, sqrt
from typing import TYPE_CHECKING

from router_state.errors import NonFiniteInput
from router_state.kernel.cost_model import CostModel
from router_state.kernel.detector import Detector, Shift
from router_state.kernel.estimating import estimate
from router_state.kernel.regression import RIDGE_FLOOR, Regression
from router_state.kernel.shared_prior import SharedPrior
from router_state.kernel.words import Index, Real

if TYPE_CHECKING:
    from collections.abc import Sequence

    from router_state.config import Vector


def learn_reward(
    one: Regression,
    prior: SharedPrior,
    detector: Detector,
    x: Vector,
    reward: Real,
    t: Index,
    gamma: Real,
    now: Real,
) -> Shift | None:
    """Let a regression that has forgotten until clock t and its shared prior learn a reward; return
    the shift that the detector found.

    Raises:
        NonFiniteInput: a number is not finite; nothing was learned.
    """
    one.forget(t, gamma)
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


def learn_bill(
    costs: CostModel,
    priced: Sequence[Regression],
    ratio: Real,
    x: Vector | None,
    known: Real,
    now: Real,
) -> tuple[Shift, float, float] | None:
    """Let a cost model learn a bill, see `CostModel.observe`, and estimate its shared prior where
    that can't wait; `priced` are the regressions that share it."""
    found = costs.observe(ratio, x, known, now)
    if costs.prior.late() or costs.regression.decay < RIDGE_FLOOR:
        estimate(costs.prior, priced)
    return found
