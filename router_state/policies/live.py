"""The policy that ships: models learn together, one posterior sample prices and chooses.

Thompson sampling with a shared prior, a dollar dual, predictive costs, and drift alarms; the clock
of forgetting counts feedback, so that what is rarely judged is not forgotten.
"""

from __future__ import annotations

import numpy as np

from router_state.arm import Arm
from router_state.change import bills, rewards
from router_state.config import Knobs, Matrix, Prior, RouterConfig, Vector
from router_state.kernel import (
    RIDGE_FLOOR,
    Chance,
    Projection,
    best,
    chance_of,
    choose,
    conclude_shifted,
    doubts,
    estimate,
    expected_costs,
    learn_reward,
)
from router_state.latency.unbudgeted import Unbudgeted
from router_state.pacing.dollar_dual import UNREACHABLE, DollarDual
from router_state.pacing.pacer import Pacer, Unpaced, Weights
from router_state.periods.period_dual import PeriodDual
from router_state.policies import choosing, eligibility, priors
from router_state.policies.eligibility import Excluded
from router_state.record import Candidates, Choice, RequestRecord
from router_state.state.router import Chances, RouterState


class Live:
    """See the module, and `Policy`."""

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

    def prepare(self, state: RouterState, x: Vector, tokens: int | None) -> bool:
        """See Policy: estimate what is due, count the prompt's tokens, measure levels."""
        arms = state.arms
        moved = (arms.rewards.due or arms.bills.due) and self.catch_up(state)
        if tokens is not None or arms.tokens.count:
            moved |= self._take_tokens(state, tokens)
        if not arms.sample.serve(x):
            arms.sample.measure(
                arms.regressions, noise=arms.rewards.noise, free=state.lambda_t <= 0.0
            )
        return moved

    def catch_up(self, state: RouterState) -> bool:
        """Estimate what is due before a decision, and tell whether anything was: what comes in
        between two decisions changes the estimate that the second one needs, so one is enough."""
        arms = state.arms
        rewards_due, bills_due = arms.rewards.due, arms.bills.due
        if rewards_due:
            self._estimate_rewards(state)
        if bills_due:
            estimate(arms.bills, arms.priced)
        return rewards_due or bills_due

    def _estimate_rewards(self, state: RouterState) -> None:
        """Estimate what rewards have in common, once all arms have forgotten; one that is under
        suspicion forgets nothing meanwhile."""
        for arm in state.arms:
            if arm.suspicion is None:
                arm.rewards.forget(t=state.t, gamma=state.config.knobs.gamma)
        estimate(state.arms.rewards, state.arms.regressions)

    def _take_tokens(self, state: RouterState, said: int | None) -> bool:
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

    def costs(self, state: RouterState, seen: Projection, tokens: int | None) -> list[float]:
        """See Policy."""
        arms = state.arms
        return expected_costs(arms.costs, seen.exponents, arms.tokens.of(tokens))

    def admit(
        self, state: RouterState, excluded: Excluded, costs: list[float]
    ) -> tuple[Excluded, str | None]:
        """See Policy."""
        arms, budget = state.arms, state.pacer.budget_usd
        if budget is None:
            return excluded, None
        return eligibility.within_risk(arms, excluded, costs, budget), None

    def choose(
        self,
        state: RouterState,
        x: Vector,
        seen: Projection,
        costs: list[float],
        *,
        excluded: Excluded,
        weights: Weights,
    ) -> tuple[Candidates, Choice]:
        """See Policy.

        The score is θᵀx + what the posterior sample adds − λ_t·ê/B.
        """
        arms, epsilon = state.arms, state.config.knobs.epsilon
        chance: Chance = state.chance  # type: ignore[assignment]  # as this policy made it
        terms, penalties, spreads = arms.sample.score(
            seen.means,
            seen.variances,
            costs,
            weights[2],
            arms.regressions,
            arms.rewards.noise,
            chance,
        )
        unsure = doubts(
            x, arms.rewards, arms.bills.noise, seen.variances, arms.costs, arms.regressions
        )
        if arms.timing is not None:
            penalties = arms.timing.penalties(penalties)
        candidates = Candidates(arms.names, terms, penalties, excluded)
        # Where no price of a dollar meets the budget, who is cheapest is all that is asked.
        short = weights[0] >= UNREACHABLE
        if not (short or epsilon or arms.suspect or arms.onboarding):
            k, share = choose(terms, penalties, spreads, excluded)
            if k >= 0:
                return candidates, Choice(k, "ucb", share, unsure)
        return candidates, _among_ways(state, candidates, spreads, unsure, short=short)

    def decided(self, state: RouterState) -> None:
        """See Policy; the clock counts feedback."""

    def learn(
        self, state: RouterState, arm: Arm, record: RequestRecord, x: Vector, reward: float
    ) -> float:
        """See Policy; an arm under suspicion rests, and rewards are held against the suspicion."""
        state.t += 1
        if arm.suspicion is not None:
            # A reward of a decision from before the alarm is of the arm as it was.
            if record.seq > arm.suspicion.after and rewards.test(state, arm, x, reward):
                self._estimate_rewards(state)
            return rewards.NOT_LEARNED
        regression, shared = arm.rewards, state.arms.rewards
        regression.forget(t=state.t, gamma=state.config.knobs.gamma)
        # The prior fades with every reward; below its floor A would lose rank where no reward came.
        if regression.decay < RIDGE_FLOOR:
            self._estimate_rewards(state)
        shift = learn_reward(regression, shared, arm.detector, x, reward, state.latest)
        if shared.overdue:
            self._estimate_rewards(state)
        if shift is not None:
            rewards.found(state, arm, shift)
        return regression.forgotten

    def bill(
        self,
        state: RouterState,
        arm: Arm,
        *,
        ratio: float,
        known: float,
        x: Vector | None,
    ) -> None:
        """See Policy."""
        arms = state.arms
        alert = bills.observe(arm.costs, ratio, x, known=known, now=state.latest)
        if alert is not None:
            state.journal.alerts.append(alert)
        if arms.bills.overdue or arm.costs.regression.decay < RIDGE_FLOOR:
            estimate(arms.bills, arms.priced)


def _among_ways(
    state: RouterState,
    candidates: Candidates,
    spreads: list[float],
    unsure: list[float],
    *,
    short: bool,
) -> Choice:
    """Choose where several ways lead to an arm: its score, a pull or a probe, and chance. Its
    propensity is the sum over them, whichever it came by.

    Args:
        spreads: variances of the draws of scores.
        short: whether the cheapest is called, and not the best.
    """
    arms, epsilon, costs = state.arms, state.config.knobs.epsilon, candidates.expected_cost_usd
    chance: Chance = state.chance  # type: ignore[assignment]  # as this policy made it
    eligible = [k for k, why in enumerate(candidates.excluded) if why is None]
    k = choosing.cheapest(arms, costs, eligible, chance) if short else _best(candidates, chance)
    tried = choosing.draw(_options(state, candidates, eligible, short=short), chance)
    reason = tried.reason
    if tried.k >= 0:
        k = tried.k
    elif epsilon > 0.0 and chance.random() < epsilon:
        k, reason = eligible[chance.integers(len(eligible))], "probe"
    elif arms[k].pulls_left > 0:
        reason = "onboarding"
    if short:
        by_draw = choosing.chance_of_cheapest(choosing.log_costs(arms, costs, eligible), k)
    else:
        by_draw = chance_of(k, candidates.terms, candidates.penalty, spreads, candidates.excluded)
    by_score = tried.passed * (1.0 - epsilon) * by_draw
    aside = tried.chances.get(k, 0.0) + tried.passed * epsilon / len(eligible)
    return Choice(k, reason, min(aside + by_score, 1.0), unsure)


def _best(candidates: Candidates, chance: Chance) -> int:
    """Return the arm with the best score; the cheaper one of a tie.

    Equal scores at different costs come where λ_t is 0: then a dollar is worth nothing, but not
    less.
    """
    tied = best(candidates.terms, candidates.penalty, candidates.excluded)
    if len(tied) > 1:
        costs = candidates.expected_cost_usd
        lowest = min(costs[k] for k in tied)
        tied = [k for k in tied if costs[k] == lowest]
    return tied[0] if len(tied) == 1 else tied[chance.integers(len(tied))]


def _options(
    state: RouterState, candidates: Candidates, eligible: list[int], *, short: bool
) -> list[choosing.Option]:
    """Return what may be tried instead of the best arm. It depends on no draw, so that propensities
    are exact."""
    arms, pacer = state.arms, state.pacer
    if arms.suspect or arms.onboarding:
        return choosing.options(arms, candidates, eligible, pacer.allowance_usd)
    if short:
        costs, budget_usd = candidates.expected_cost_usd, pacer.budget_usd or 1.0
        return choosing.cheaper(costs, eligible, budget_usd)
    return []
