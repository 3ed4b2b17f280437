"""The paper's policy: LinUCB with a constant price penalty and forced pulls (ParetoBandit).

It equals the reference library decision for decision. Each model learns alone, costs are mean
costs, and the clock of forgetting counts decisions.
"""

from __future__ import annotations

import numpy as np

from router_state.config import Knobs, Matrix, Prior, RouterConfig, Vector
from router_state.kernel import Apart, Candidates, EmaPacer, Optimism, Pacer, Unpaced
from router_state.policies import eligibility, priors
from router_state.policies.choosing import Choice
from router_state.policies.eligibility import Excluded
from router_state.state.router import Chances, RouterState


class Paper:
    """See the module, and `Policy`; the clock counts decisions."""

    decider, learner = Optimism(ticks=1), Apart()

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
        return priors.statistics(model, prior, state.arms, n_eff=knobs.n_eff, ridge=knobs.ridge)

    def joined(self, state: RouterState, names: list[str]) -> None:
        """See Policy; nothing is shared."""

    def under_ceiling(self, state: RouterState, excluded: Excluded) -> tuple[Excluded, str | None]:
        """Rule out dear list prices while λ_t > 0."""
        return eligibility.under_ceiling(state.arms, excluded, lambda_t=state.pacer.lambda_t)

    def among_ways(self, state: RouterState, seen: Candidates) -> Choice:
        """Choose where there are onboarding pulls, chance or ties."""
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
