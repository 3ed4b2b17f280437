"""What a reward says of its arm when it may have drifted: learn it, or hold it against a
suspicion."""

from __future__ import annotations

import math
from collections.abc import Mapping

from router_state.alert import Alert
from router_state.arm import Arm
from router_state.change.detector import REWARD_LIMIT, Suspicion
from router_state.config import Vector
from router_state.record import Label, RequestRecord
from router_state.state.router import RouterState

NOT_LEARNED = -1e9
"""Stands for what an arm had forgotten when a reward came that it did not learn: nothing is left of
it."""
KNOWN_VARIANCE = 0.25
"""xᵀA⁻¹x below which a residual is news: that of an arm with a ridge of 1 after three rewards of
one kind."""
FADED = 0.1
"""Share of what was learned that an accepted drift leaves."""


def absorb(state: RouterState, record: RequestRecord, x: Vector, reward: float) -> float:
    """Take a request's first reward in; return how much its arm had forgotten by then.

    `NOT_LEARNED` where the arm was dropped or is under suspicion. An alarm needs an arm that is
    known: where xᵀA⁻¹x is large a residual only says how little was known.
    """
    arm, knobs = state.arms.find(record.called), state.config.knobs
    if arm is None:
        return NOT_LEARNED
    if knobs.feedback_clock:
        state.tick()
    if arm.suspicion is not None:
        # A reward of a decision from before the alarm is of the arm as it was.
        if record.seq > arm.suspicion.after:
            _hold_against(state, arm, arm.suspicion, x, reward)
        return NOT_LEARNED
    belief = arm.belief
    if knobs.shared_learning:
        residual, variance = state.arms.learn_reward(arm, x, reward, t=state.t, gamma=knobs.gamma)
        residual /= math.sqrt(1.0 + variance)
    else:
        belief.forget(t=state.t, gamma=knobs.gamma, ridge=knobs.ridge)
        residual, variance = belief.observe(x, reward)
    if knobs.drift_alarms and variance < KNOWN_VARIANCE:
        least = state.arms.rewards.deviation if knobs.shared_learning else 0.0
        shift = arm.watch.observe(
            residual, limit=REWARD_LIMIT, now=state.latest, centred=False, least=least
        )
        if shift is not None:
            state.arms.suspect_of(
                arm, Suspicion(shift.size, shift.count, 0.0, shift.since, state.seq)
            )
            evidence = {"cusum": shift.evidence, "limit": shift.limit, "rewards": shift.count}
            _alert(state, arm, "drift", size=shift.size, since=shift.since, evidence=evidence)
    return belief.forgotten


def revise(state: RouterState, model: str, x: Vector, reward: float, label: Label) -> float:
    """Put a reward in place of the one that was learned; return how much the arm had forgotten when
    that entered."""
    arm = state.arms.find(model)
    if arm is None:
        return NOT_LEARNED
    # What is left of the first reward: only so much of it can be taken back.
    discount = math.exp(label.forgotten - arm.belief.forgotten)
    arm.belief.revise(x, difference=reward - label.reward, discount=discount)
    return label.forgotten


def _hold_against(
    state: RouterState, arm: Arm, suspicion: Suspicion, x: Vector, reward: float
) -> None:
    arm.test_suspicion(x, reward)
    if suspicion.over:
        state.arms.suspect_of(arm, None)
        evidence = {"likelihood_ratio": suspicion.evidence, "rewards": suspicion.count}
        _alert(
            state,
            arm,
            "recovered",
            size=-suspicion.offset,
            since=suspicion.since,
            evidence=evidence,
        )
    elif suspicion.accepted:
        state.arms.suspect_of(arm, None)
        # The offset moves into the bias, and little of the rest counts: the prompts that differ are
        # learned anew.
        arm.belief.shift(suspicion.offset)
        knobs = state.config.knobs
        arm.belief.fade(FADED, ridge=None if knobs.shared_learning else knobs.ridge)
        if knobs.shared_learning:
            state.arms.estimate_rewards(t=state.t, gamma=knobs.gamma)


def _alert(
    state: RouterState,
    arm: Arm,
    kind: str,
    *,
    size: float,
    since: float,
    evidence: Mapping[str, float],
) -> None:
    state.journal.alerts.append(
        Alert(
            kind=kind,
            model=arm.name,
            signal="reward",
            direction="up" if size > 0.0 else "down",
            size=abs(size),
            since=since,
            observed_at=state.latest,
            evidence=evidence,
        )
    )
