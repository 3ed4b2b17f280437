"""The default policy `live`.

Thompson sampling with a shared prior, a dollar dual, predictive costs, and drift alarms. The clock
of forgetting counts rewards, so that models with few rewards are not forgotten.
"""

from __future__ import annotations

import numpy as np

from router_state.choice import Choice
from router_state.config import Knobs, Matrix, Prior, RouterConfig, Vector
from router_state.events import Asked
from router_state.kernel import (
    HORIZON,
    SAVED,
    Candidates,
    Chance,
    conclude_shifted,
    estimate,
    within_risk,
)
from router_state.pacing.dollar_dual import UNREACHABLE, DollarDual
from router_state.pacing.pacer import Pacer, Unpaced
from router_state.policies import arm_priors, choosing
from router_state.policies.learning import Together
from router_state.router import Chances, RouterState

MOST_RISKED = 100.0
"""Largest cost that a call may reach in one of ten cases, in budgets of a request."""
TOLERATED = SAVED / HORIZON
"""Budgets of a request, for each call in flight, by which bills may exceed their expectations: the
most savings ÷ the calls of a horizon. In a burst, thousands of calls of known models await their
bills.
"""


class Live(Together):
    """The policy `live`, see the module and `Policy`; the clock counts rewards."""

    ticks = 0

    def pacer(self, state: RouterState, config: RouterConfig) -> Pacer:
        """See Policy; a router that gets a budget again starts with a new window."""
        pacer, budget_usd = state.pacer, config.budget_usd_per_request
        for one in state.capabilities:
            if (found := one.pacer(pacer, budget_usd)) is not None:
                return found
        if budget_usd is not None and type(pacer) is DollarDual:
            pacer.set_budget(budget_usd)
            return pacer
        if budget_usd is None:
            return Unpaced()
        return DollarDual(budget_usd, state.journal)

    def chance(self, state: RouterState, config: RouterConfig) -> Chances:
        """See Policy."""
        chance = state.chance
        return chance if isinstance(chance, Chance) else Chance(config.knobs.seed)

    def statistics(
        self, state: RouterState, knobs: Knobs, model: str, prior: Prior | None
    ) -> tuple[Matrix, Vector]:
        """See Policy; the shared prior is the ridge."""
        shared = state.arms.rewards
        ridges, n_eff = shared.ridges, knobs.n_eff
        A, b = arm_priors.statistics(
            model, prior, state.arms, n_eff=n_eff, ridge=0.0, unseen=float(ridges[-1])
        )
        return A + np.diag(ridges), b + ridges * shared.mean

    def joined(self, state: RouterState, names: list[str]) -> None:
        """See Policy; the scales of the shared prior stay."""
        estimate(state.arms.rewards, state.arms.regressions, rescaled=False)

    def look(self, state: RouterState, request: Asked) -> Candidates:
        """See Policy."""
        arms, tokens = state.arms, 0.0
        if arms.tokens.in_use:
            tokens = arms.tokens.of(request.input_tokens)
        return arms.look(request.x, tokens)

    def prepare(self, state: RouterState, choice: Choice) -> bool:
        """See Policy: estimate due priors, count the prompt's tokens, measure levels."""
        arms, request, moved = state.arms, choice.request, False
        if arms.due():
            moved = self._catch_up(state)
        said = request.input_tokens
        if said is not None or arms.tokens.count:
            moved |= self._take_tokens(state, said)
            choice.tokens = arms.tokens.of(said)
        arms.serve(request.x, state.pacer.lambda_t <= 0.0)
        return moved

    def _catch_up(self, state: RouterState) -> bool:
        """Estimate the shared priors that are due, and return whether predictions changed.
        Estimates wait for a decision, as only a decision needs them.
        """
        arms = state.arms
        if arms.rewards.due:
            arms.estimate_rewards(state.t, state.config.knobs.gamma)
        if arms.bills.due:
            estimate(arms.bills, arms.priced)
        return True

    def _take_tokens(self, state: RouterState, said: int | None) -> bool:
        """Count the input tokens that a request states. Once enough requests have stated theirs,
        expected bills are split into input and rest; return whether they were split now.
        """
        arms = state.arms
        tokens = arms.tokens
        if not tokens.take(said):
            return False
        split = [costs for costs in arms.costs if not costs.free]
        if split:
            shifts = [costs.log_left(tokens.mean) for costs in split]
            conclude_shifted(arms.bills, arms.priced, shifts)
        for costs in split:
            costs.hurry()
        state.journal.jumped = True
        return True

    def choose(self, state: RouterState, choice: Choice) -> None:
        """See Policy.

        In nine of ten cases a call costs at most `MOST_RISKED` budgets, and calls in flight exceed
        their expected costs by at most as much. The score is θᵀx + the posterior sample's
        deviation − λ_t·ê/B.
        """
        arms, pacer, seen, chance = state.arms, state.pacer, choice.seen, state.chance
        assert isinstance(chance, Chance)  # as this policy made it
        excluded, beside, budget = choice.excluded, choice.beside, pacer.budget_usd
        if budget is not None:
            choice.most_usd = most = MOST_RISKED * budget
            excluded = within_risk(arms.costs, excluded, seen, most, TOLERATED * budget)
        seen.excluded = excluded
        arms.draw(seen, choice.price, chance)
        if beside is not None:
            both = zip(seen.penalty, beside, strict=True)
            seen.penalty = [dollars + besides for dollars, besides in both]
        # No price of a dollar meets the budget, so that only the cheapest model matters.
        short = pacer.lambda_t >= UNREACHABLE
        if not (short or arms.unproven or state.config.knobs.epsilon):
            k, propensity = -1, 0.0
            if arms.planner is not None and arms.planner.weighs:
                k = seen.leader()
            if k < 0:
                k, propensity = seen.choose()
            if k >= 0:
                choice.k, choice.propensity = k, propensity
                return
        found = choosing.among_ways(state, seen, short=short)
        choice.k, choice.why, choice.propensity = found

    def chance_of(self, state: RouterState, choice: Choice, k: int) -> float:
        """See Policy."""
        if choice.seen.excluded[k] is not None:
            return 0.0
        short = state.pacer.lambda_t >= UNREACHABLE
        found = choosing.chance_of(state, choice.seen, k, short=short)
        # A score without doubt that ties with the best would else have the same chance.
        return min(found, 1.0 - choice.propensity)
