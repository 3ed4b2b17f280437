"""The paper's policy: LinUCB with a constant price penalty and forced pulls (ParetoBandit).

It equals the reference library decision for decision. Each model learns alone, expected costs are
mean costs, and the clock of forgetting counts decisions.
"""

from __future__ import annotations

import numpy as np

from router_state.choice import Choice
from router_state.config import Knobs, Matrix, Prior, RouterConfig, Vector
from router_state.events import Asked
from router_state.kernel import Candidates
from router_state.pacing.ema_pacer import EmaPacer
from router_state.pacing.pacer import Pacer, Unpaced
from router_state.policies import arm_priors, eligibility
from router_state.policies.choosing import Chosen
from router_state.policies.learning import Apart
from router_state.router import Chances, RouterState


class Paper(Apart):
    """The policy `paper`, see the module and `Policy`; the clock counts decisions."""

    ticks = 1

    def pacer(self, state: RouterState, config: RouterConfig) -> Pacer:
        """See Policy."""
        budget_usd, per_log_price = config.budget_usd_per_request, config.knobs.lambda_c
        if budget_usd is None:
            return Unpaced(per_log_price)
        pacer = state.pacer
        if not isinstance(pacer, EmaPacer):
            return EmaPacer(budget_usd, per_log_price=per_log_price)
        pacer.budget_usd, pacer.per_log_price = budget_usd, per_log_price
        return pacer

    def chance(self, state: RouterState, config: RouterConfig) -> Chances:
        """See Policy; ties are broken by the reference library's draws, which are numpy's."""
        chance = state.chance
        if isinstance(chance, np.random.Generator):
            return chance
        return np.random.default_rng(config.knobs.seed)

    def statistics(
        self, state: RouterState, knobs: Knobs, model: str, prior: Prior | None
    ) -> tuple[Matrix, Vector]:
        """See Policy."""
        n_eff, ridge = knobs.n_eff, knobs.ridge
        return arm_priors.statistics(
            model, prior, state.arms, n_eff=n_eff, ridge=ridge, unseen=ridge
        )

    def joined(self, state: RouterState, names: list[str]) -> None:
        """See Policy; nothing is shared."""

    def look(self, state: RouterState, request: Asked) -> Candidates:
        """See Policy; a call's expected cost is the mean cost of the model's calls."""
        return state.arms.look_at_means(request.x)

    def prepare(self, state: RouterState, choice: Choice) -> bool:
        """See Policy."""
        return False

    def choose(self, state: RouterState, choice: Choice) -> None:
        """See Policy.

        The score is θᵀx + α·√(v ÷ max(γ^dt, 1/V_max)) − weight·c̃: idle arms become uncertain again
        (ParetoBandit Eq. 2 and 9). dt counts from the arm's last reward or last choice: an arm
        that awaits rewards is not stale. While λ_t > 0 there is a hard ceiling on list prices. Ties
        are broken at random.
        """
        arms, knobs, seen = state.arms, state.config.knobs, choice.seen
        lambda_t = state.pacer.lambda_t
        seen.excluded = choice.excluded
        if lambda_t > 0.0:
            seen.excluded, relaxed = eligibility.under_ceiling(
                arms, choice.excluded, lambda_t=lambda_t
            )
            choice.reason = choice.reason or relaxed
        arms.hope(seen, choice.price, state.t, knobs.alpha, knobs.gamma, 1.0 / knobs.v_max)
        if not arms.onboarding and knobs.epsilon <= 0.0:
            choice.k, choice.propensity = seen.leader(), 1.0
            if choice.k >= 0:
                return
        choice.k, choice.why, choice.propensity = self._among_ways(state, seen)

    def chance_of(self, state: RouterState, choice: Choice, k: int) -> float:
        """See Policy; without ties and chance there is only one choice."""
        seen, epsilon = choice.seen, state.config.knobs.epsilon
        if seen.excluded[k] is not None or choice.why == "onboarding":
            return 0.0
        eligible, tied = seen.excluded.count(None), seen.best()
        return (1.0 - epsilon) * (k in tied) / len(tied) + epsilon / eligible

    def _among_ways(self, state: RouterState, seen: Candidates) -> Chosen:
        """Choose among onboarding pulls, random choices and ties."""
        epsilon, chance = state.config.knobs.epsilon, state.chance
        if state.arms.onboarding:
            for k, arm in enumerate(state.arms):
                if arm.pulls_left > 0 and seen.excluded[k] in (None, "ceiling"):
                    return k, "onboarding", 1.0
        tied = seen.best()
        k = tied[0] if len(tied) == 1 else tied[int(chance.integers(len(tied)))]
        reason, share = "ucb", 1.0 / len(tied)
        if epsilon <= 0.0:
            return k, reason, share
        eligible = [j for j, why in enumerate(seen.excluded) if why is None]
        if chance.random() < epsilon:
            k, reason = eligible[int(chance.integers(len(eligible)))], "probe"
        by_score = (1.0 - epsilon) * share if k in tied else 0.0
        return k, reason, min(by_score + epsilon / len(eligible), 1.0)
