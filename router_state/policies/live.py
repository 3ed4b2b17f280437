"""The default policy `live`.

Thompson sampling with a shared prior, a dollar dual, predictive costs, and drift alarms. The clock
of forgetting counts feedback, so that rarely judged models are not forgotten.
"""

from __future__ import annotations

import numpy as np

from router_state.change import bills, rewards
from router_state.config import Knobs, Matrix, Prior, RouterConfig, Vector
from router_state.kernel import (
    Arm,
    Candidates,
    Chance,
    CostModel,
    DollarDual,
    Pacer,
    Shift,
    Thompson,
    Together,
    Unpaced,
    conclude_shifted,
    estimate,
)
from router_state.latency.unbudgeted import Unbudgeted
from router_state.periods.period_dual import PeriodDual
from router_state.policies import choosing, priors
from router_state.policies.choosing import Choice
from router_state.state.router import Chances, RouterState


class Live:
    """See the module, and `Policy`; the clock counts feedback."""

    decider, learner = Thompson(ticks=0), Together()

    def pacer(self, state: RouterState, config: RouterConfig) -> Pacer:
        """See Policy; a router that gets a budget again starts with a new window."""
        pacer, budget_usd = state.pacer, config.budget_usd_per_request
        paces = config.spending is not None and config.spending.paces
        if isinstance(pacer, Unbudgeted) and (paces or budget_usd is not None):
            pacer = Unpaced()
        if state.ledger is not None and paces:
            return PeriodDual.after(pacer, state.ledger, budget_usd, state.arms.d, state.journal)
        if isinstance(pacer, PeriodDual):
            pacer = Unpaced()
        if budget_usd is not None and isinstance(pacer, DollarDual):
            pacer.set_budget(budget_usd)
            return pacer
        if budget_usd is None:
            return self._unpaced(state, config)
        return DollarDual(budget_usd, state.arms.d, state.journal)

    def _unpaced(self, state: RouterState, config: RouterConfig) -> Pacer:
        """Return the pacer of a router without a budget."""
        if config.latency is None:
            return Unpaced()
        before = state.pacer
        if isinstance(before, Unbudgeted):
            return before
        return Unbudgeted(state.arms.d, state.journal)

    def chance(self, state: RouterState, config: RouterConfig) -> Chances:
        """See Policy."""
        chance = state.chance
        return chance if isinstance(chance, Chance) else Chance(config.knobs.seed)

    def statistics(
        self, state: RouterState, knobs: Knobs, model: str, prior: Prior | None
    ) -> tuple[Matrix, Vector]:
        """See Policy; the shared prior is the ridge."""
        shared = state.arms.rewards
        A, b = priors.statistics(model, prior, state.arms, n_eff=knobs.n_eff, ridge=0.0)
        return A + np.diag(shared.ridges), b + shared.ridges * shared.mean

    def joined(self, state: RouterState, names: list[str]) -> None:
        """See Policy; the scales stay as they are."""
        estimate(state.arms.rewards, state.arms.regressions, rescaled=False)

    def catch_up(self, state: RouterState) -> bool:
        """Estimate what is due before a decision, and tell whether anything was: what comes in
        between two decisions changes the estimate that the second one needs, so one is enough."""
        arms = state.arms
        rewards_due, bills_due = arms.rewards.due, arms.bills.due
        if rewards_due:
            self.learner.estimate_rewards(state)
        if bills_due:
            estimate(arms.bills, arms.priced)
        return rewards_due or bills_due

    def take_tokens(self, state: RouterState, said: int | None) -> bool:
        """Take in how many input tokens a request says it has. Once enough have, what is expected
        of whole bills is split; tell whether it was."""
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

    def among_ways(self, state: RouterState, seen: Candidates, *, short: bool) -> Choice:
        """Choose where several ways lead to an arm, see `choosing`."""
        return choosing.among_ways(state, seen, short=short)

    def test(self, state: RouterState, arm: Arm, x: Vector, reward: float) -> bool:
        """See Together."""
        return rewards.test(state, arm, x, reward)

    def drifted(self, state: RouterState, arm: Arm, shift: Shift) -> None:
        """See Together."""
        rewards.found(state, arm, shift)

    def repriced(
        self, state: RouterState, costs: CostModel, found: tuple[Shift, float, float]
    ) -> None:
        """See Together."""
        state.journal.alerts.append(bills.alert(costs, found, now=state.latest))
