"""Respond to a drift of rewards: suspect the model, test it, and end the suspicion."""

from __future__ import annotations

from collections.abc import Mapping

from router_state.config import Vector
from router_state.kernel import LIMIT, RIDGE_FLOOR, Arm, Shift
from router_state.kernel.learning.suspicion import Suspicion
from router_state.router import RouterState


def found(state: RouterState, arm: Arm, shift: Shift) -> None:
    """Suspect an arm whose rewards revealed a shift, unless the prompts are of a new kind."""
    if not shift.novel:
        suspicion = Suspicion(shift.size, shift.residuals, 0.0, shift.since, state.seq)
        state.arms.suspect_of(arm, suspicion)
        evidence = {"cusum": shift.evidence, "limit": LIMIT, "rewards": shift.residuals}
        _alert(state, arm, "drift", shift.size, shift.since, evidence)


def test(state: RouterState, arm: Arm, x: Vector, reward: float) -> bool:
    """Test the suspicion of an arm with a reward; return whether the drift was accepted and the
    arm's knowledge has faded.

    Args:
        x: context, shape (d,).
    """
    suspicion, regression = arm.suspicion, arm.rewards
    if suspicion is None:
        return False
    predicted = regression.predict(x)
    suspicion.observe(
        predicted=predicted,
        reward=reward,
        sigma=max(arm.detector.sigma, state.arms.rewards.deviation),
    )
    regression.changed()
    if suspicion.over:
        state.arms.suspect_of(arm, None)
        evidence = {"likelihood_ratio": suspicion.evidence, "rewards": suspicion.count}
        _alert(state, arm, "recovered", -suspicion.offset, suspicion.since, evidence)
    elif suspicion.accepted:
        state.arms.suspect_of(arm, None)
        # The offset moves into the bias. Everything else keeps only the weight of a faded prior,
        # so that differences between prompts are learned anew.
        regression.shift(suspicion.offset)
        if state.hooks.shifted:
            state.hooks.shifted(arm.name, suspicion.offset)
        regression.fade(RIDGE_FLOOR)
        return True
    return False


def _alert(
    state: RouterState,
    arm: Arm,
    kind: str,
    size: float,
    since: float,
    evidence: Mapping[str, float],
) -> None:
    state.journal.alert(
        kind,
        abs(size),
        evidence,
        now=state.latest,
        since=since,
        direction="up" if size > 0.0 else "down",
        model=arm.name,
        signal="reward",
    )
