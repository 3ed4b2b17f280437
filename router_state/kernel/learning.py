"""Learn one reward or one bill: each model apart, as `paper`, or all together, as `live`."""

from __future__ import annotations

from math import isfinite, sqrt
from typing import TYPE_CHECKING

from router_state.config import MEMORY
from router_state.errors import NonFiniteInput
from router_state.kernel.arm import Arm
from router_state.kernel.books import Books
from router_state.kernel.cost_model import CostModel
from router_state.kernel.detector import Detector, Shift
from router_state.kernel.estimating import estimate
from router_state.kernel.record import RequestRecord
from router_state.kernel.regression import RIDGE_FLOOR, Regression
from router_state.kernel.shared_prior import SharedPrior
from router_state.kernel.words import Index, Real, ccall, cclass

if TYPE_CHECKING:
    from collections.abc import Sequence

    from router_state.config import Vector

NOT_LEARNED: Real = -MEMORY
"""Mark of a reward that was not learned, in place of what the arm had forgotten by then."""


@ccall
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


@ccall
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


@cclass
class Learner:
    """The part of a policy that learns; the policy responds to what it finds."""

    @ccall
    def learn(self, state: Books, arm: Arm, record: RequestRecord, x: Vector, reward: Real) -> Real:
        """Learn a request's first reward; return how much the arm had forgotten by then."""
        raise NotImplementedError

    @ccall
    def bill(
        self, state: Books, costs: CostModel, ratio: Real, known: Real, x: Vector | None
    ) -> None:
        """Learn a request's first bill, as ratio to its list price; see `CostModel.observe`."""
        raise NotImplementedError


@cclass
class Apart(Learner):
    """Each model learns alone, and of bills the mean; forgetting restores the ridge."""

    @ccall
    def learn(self, state: Books, arm: Arm, record: RequestRecord, x: Vector, reward: Real) -> Real:
        """See Learner."""
        one, knobs = arm.rewards, state.config.knobs
        one.forget(state.t, knobs.gamma, knobs.ridge)
        one.observe(x, reward)
        return one.forgotten

    @ccall
    def bill(
        self, state: Books, costs: CostModel, ratio: Real, known: Real, x: Vector | None
    ) -> None:
        """See Learner."""
        costs.follow(ratio, costs.ratio)


@cclass
class Together(Learner):
    """Models share priors, and shifts of their rewards and bills are looked for; the clock counts
    rewards."""

    @ccall
    def learn(self, state: Books, arm: Arm, record: RequestRecord, x: Vector, reward: Real) -> Real:
        """See Learner; an arm under suspicion rests, and rewards are held against the suspicion."""
        state.t += 1
        if arm.suspicion is not None:
            # A reward of a decision before the alarm belongs to the arm before its drift.
            if record.seq > arm.suspicion.after and state.policy.test(state, arm, x, reward):
                self.estimate_rewards(state)
            return NOT_LEARNED
        one, prior, gamma = arm.rewards, state.arms.rewards, state.config.knobs.gamma
        # The prior fades with every reward; below its floor A would lose rank where no reward came.
        if one.left_at(state.t, gamma) < RIDGE_FLOOR:
            self.estimate_rewards(state)
        shift = learn_reward(one, prior, arm.detector, x, reward, state.t, gamma, state.latest)
        if prior.late():
            self.estimate_rewards(state)
        if shift is not None:
            state.policy.drifted(state, arm, shift)
        return one.forgotten

    @ccall
    def bill(
        self, state: Books, costs: CostModel, ratio: Real, known: Real, x: Vector | None
    ) -> None:
        """See Learner."""
        found = learn_bill(costs, state.arms.priced, ratio, x, known, state.latest)
        if found is not None:
            state.policy.repriced(state, costs, found)

    @ccall
    def estimate_rewards(self, state: Books) -> None:
        """Estimate what rewards have in common, once all arms have forgotten; one that is under
        suspicion forgets nothing meanwhile."""
        gamma: Real = state.config.knobs.gamma
        for k in range(len(state.arms.all)):
            arm: Arm = state.arms.all[k]
            if arm.suspicion is None:
                arm.rewards.forget(state.t, gamma)
        estimate(state.arms.rewards, state.arms.regressions)
