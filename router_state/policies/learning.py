"""Learn one reward or one bill: each model apart, as under `paper`, or all together, as under
`live`.
"""

from __future__ import annotations

from router_state.change import bill_change, reward_change
from router_state.config import Vector
from router_state.kernel import Arm, CostModel, learn_alone, learn_bill
from router_state.record import NOT_LEARNED, RequestRecord
from router_state.router import RouterState


class Apart:
    """Each model learns alone, see `Policy`."""

    def learn(
        self, state: RouterState, arm: Arm, record: RequestRecord, x: Vector, reward: float
    ) -> float:
        """See Policy; forgetting restores the ridge."""
        knobs = state.config.knobs
        return learn_alone(arm.rewards, x, reward, state.t, knobs.gamma, knobs.ridge)

    def bill(
        self, state: RouterState, costs: CostModel, ratio: float, known: float, x: Vector | None
    ) -> None:
        """See Policy; only the mean of bills is learned."""
        costs.follow(ratio, costs.ratio)


class Together:
    """Models share a prior, see `Policy`; the clock counts rewards."""

    def learn(
        self, state: RouterState, arm: Arm, record: RequestRecord, x: Vector, reward: float
    ) -> float:
        """See Policy. An arm under suspicion does not learn: its rewards test the suspicion."""
        state.t = t = state.t + 1
        gamma = state.config.knobs.gamma
        if arm.suspicion is not None:
            # A reward of a decision before the alarm is one of the arm before its drift.
            if record.seq > arm.suspicion.after and reward_change.test(state, arm, x, reward):
                state.arms.estimate_rewards(t, gamma)
            return NOT_LEARNED
        shift = state.arms.learn(arm, x, reward, t, gamma, state.latest)
        if shift is not None:
            reward_change.found(state, arm, shift)
        return arm.rewards.forgotten

    def bill(
        self, state: RouterState, costs: CostModel, ratio: float, known: float, x: Vector | None
    ) -> None:
        """See Policy; a shift of costs raises an alert."""
        found = learn_bill(costs, state.arms.priced, ratio, x, known, state.latest)
        if found is not None:
            state.journal.alerts.append(bill_change.alert(costs, found, now=state.latest))
