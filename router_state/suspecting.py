"""What a reward says of its arm when it may have drifted: learn it, or hold it against a suspicion."""

from __future__ import annotations

import math

from router_state import learning
from router_state.alert import Alert
from router_state.config import Vector
from router_state.drift import REWARD_LIMIT, Suspicion
from router_state.dual import EVERY, DualPacer
from router_state.record import Label, RequestRecord
from router_state.state import RouterState

NOT_LEARNED = -1e9
KNOWN_VARIANCE = 0.25
FADED = 0.1


def absorb(state: RouterState, record: RequestRecord, x: Vector, reward: float) -> float:
    """Take a request's first reward in; return how much its arm had forgotten by then.

    `NOT_LEARNED` where the arm was dropped or is under suspicion. An alarm needs an arm that is known: where xᵀA⁻¹x is large a
    residual only says how little was known.
    """
    arms, knobs = state.arms, state.config.knobs
    k = arms.row.get(record.called, -1)
    if k < 0:
        return NOT_LEARNED
    state.touched.add(record.called)
    if knobs.feedback_clock:
        state.t += 1
    suspicion = arms.suspicion[k]
    if suspicion is not None:
        if record.seq > suspicion.after:
            _hold_against(state, k, suspicion, x, reward)
        return NOT_LEARNED
    learning.forget(arms, k, t=state.t, gamma=knobs.gamma, ridge=knobs.ridge)
    residual, variance = learning.observe_reward(arms, k, x, reward=reward)
    if knobs.drift_alarms and variance < KNOWN_VARIANCE:
        shift = arms.watch[k].observe(residual, limit=REWARD_LIMIT, now=state.latest, centred=False)
        if shift is not None:
            _suspect(state, k, Suspicion(shift.size, shift.count, 0.0, shift.since, state.seq))
            evidence = {"cusum": shift.evidence, "limit": shift.limit, "rewards": shift.count}
            _alert(state, k, "drift", shift.size, shift.since, evidence)
    return arms.forgotten[k]


def revise(state: RouterState, model: str, x: Vector, reward: float, label: Label) -> float:
    """Put a reward in place of the one that was learned; return how much the arm had forgotten when that entered."""
    arms = state.arms
    k = arms.row.get(model, -1)
    if k < 0:
        return NOT_LEARNED
    state.touched.add(model)
    discount = math.exp(label.forgotten - arms.forgotten[k])
    learning.revise_reward(arms, k, x, difference=reward - label.reward, discount=discount)
    return label.forgotten


def _hold_against(state: RouterState, k: int, suspicion: Suspicion, x: Vector, reward: float) -> None:
    arms = state.arms
    suspicion.observe(predicted=arms.theta[k].dot(x).item(), reward=reward, sigma=arms.watch[k].sigma)
    if suspicion.over:
        _suspect(state, k, None)
        evidence = {"likelihood_ratio": suspicion.evidence, "rewards": suspicion.count}
        _alert(state, k, "recovered", -suspicion.offset, suspicion.since, evidence)
    elif suspicion.accepted:
        _suspect(state, k, None)
        arms.theta[k][-1] += suspicion.offset
        arms.forgotten[k] -= math.log(FADED)
        learning.restore_ridge(arms, k, decay=arms.decay[k] * FADED, ridge=state.config.knobs.ridge)


def _suspect(state: RouterState, k: int, suspicion: Suspicion | None) -> None:
    state.arms.suspicion[k] = suspicion
    state.arms.derive()
    if isinstance(state.pacer, DualPacer):
        state.pacer.stale = EVERY


def _alert(state: RouterState, k: int, kind: str, size: float, since: float, evidence: dict[str, float]) -> None:
    state.alerts.append(
        Alert(
            kind=kind,
            model=state.arms.names[k],
            signal="reward",
            direction="up" if size > 0.0 else "down",
            size=abs(size),
            since=since,
            observed_at=state.latest,
            evidence=evidence,
        )
    )
