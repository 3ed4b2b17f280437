"""One reward: whether it gives a drift of its model away, and whether a suspected one is over."""

from __future__ import annotations

import math
from collections.abc import Mapping

from router_state.alert import Alert
from router_state.arm import Arm
from router_state.change.suspicion import Suspicion
from router_state.config import Vector
from router_state.state.router import RouterState

NOT_LEARNED = -1e9
"""Stands for what an arm had forgotten when a reward came that it did not learn: nothing is left of
it."""
LIMIT = 16.0
"""Log-likelihood ratio of an alarm (docs/algorithm.md; benchmarks.drift counts false ones)."""
KNOWN_VARIANCE = 0.25
"""xᵀA⁻¹x below which a residual says something of the model: above, it says how little was
known."""
FADED = 0.1
"""Share of what was learned that an accepted drift leaves."""


def watch(state: RouterState, arm: Arm, residual: float, variance: float) -> None:
    """Look for a drift in the residual of a reward that was learned; suspect the arm if one is
    found.

    Args:
        variance: xᵀA⁻¹x from before.
    """
    if variance >= KNOWN_VARIANCE:
        return
    shift = arm.detector.observe(
        residual / math.sqrt(1.0 + variance),
        limit=LIMIT,
        now=state.latest,
        least=state.arms.rewards.deviation,
    )
    if shift is not None:
        suspicion = Suspicion(shift.size, shift.count, 0.0, shift.since, state.seq)
        state.arms.suspect_of(arm, suspicion)
        evidence = {"cusum": shift.evidence, "limit": shift.limit, "rewards": shift.count}
        _alert(state, arm, "drift", size=shift.size, since=shift.since, evidence=evidence)


def test(state: RouterState, arm: Arm, x: Vector, reward: float) -> bool:
    """Hold a reward against the suspicion of its arm; tell whether what the arm knows has faded, as
    the drift is accepted.

    Args:
        x: context, shape (d,).
    """
    suspicion, regression = arm.suspicion, arm.rewards
    if suspicion is None:
        return False
    predicted = float(regression.theta.dot(x))
    suspicion.observe(predicted=predicted, reward=reward, sigma=arm.detector.sigma)
    regression.changed()
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
        regression.shift(suspicion.offset)
        regression.fade(FADED)
        return True
    return False


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
