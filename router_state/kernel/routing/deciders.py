"""The two ways to decide: the default policy's posterior samples, and the paper's optimism.

A policy has one of them, see `policies`. It asks the policy where a decision has more than a plain
one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from router_state.kernel.choosing.candidates import Candidates
from router_state.kernel.numbers.randomness import Chance
from router_state.kernel.numbers.words import Flag, Index, Real, ccall, cclass
from router_state.kernel.pacing.debt import HORIZON, SAVED
from router_state.kernel.pacing.dollar_dual import UNREACHABLE
from router_state.kernel.routing.books import Books
from router_state.kernel.routing.risk import within_risk

if TYPE_CHECKING:
    from router_state.config import Vector

TOLERATED: Real = SAVED / HORIZON
"""Budgets for each call in flight that the bills may be beyond their expectations: what may be
saved, by the calls of a horizon. In a burst thousands of calls of known models await theirs."""


@cclass
class Decider:
    """The steps of a decision that a policy makes its own way.

    Attributes:
        ticks: by how much a decision moves the clock of forgetting.
    """

    ticks: Index

    def __init__(self, ticks: int) -> None:
        self.ticks = ticks

    @ccall
    def look(self, state: Books, x: Vector, tokens: int | None) -> Candidates:
        """Return what is expected of each arm for context x, shape (d,): reward, and dollars."""
        raise NotImplementedError

    @ccall
    def prepare(self, state: Books, x: Vector, tokens: int | None) -> Flag:
        """Prepare a decision for context x, shape (d,); tell whether the arms' predictions
        changed."""
        raise NotImplementedError

    @ccall
    def admit(
        self, state: Books, excluded: list[str | None], seen: Candidates
    ) -> tuple[list[str | None], str | None]:
        """Rule out arms that the budget can't afford; return the reason if none would be left."""
        raise NotImplementedError

    @ccall
    def choose(self, state: Books, seen: Candidates, price: Real) -> tuple[int, str, float]:
        """Complete the scores of all arms, given what money weighs in them (`Pacer.weigh`), and
        choose one of those that are not excluded: return it, the reason, and the propensity."""
        raise NotImplementedError


@cclass
class Thompson(Decider):
    """Decides by posterior samples, see `policies.live`."""

    @ccall
    def look(self, state: Books, x: Vector, tokens: int | None) -> Candidates:
        """See Decider."""
        prompts = state.arms.tokens
        return state.arms.look(x, prompts.of(tokens) if prompts.in_use else 0.0)

    @ccall
    def prepare(self, state: Books, x: Vector, tokens: int | None) -> Flag:
        """See Decider: estimate what is due, count the prompt's tokens, measure levels."""
        arms, moved = state.arms, False
        if arms.rewards.is_due() or arms.bills.is_due():
            moved = state.policy.catch_up(state)
        if tokens is not None or arms.tokens.count:
            moved |= state.policy.take_tokens(state, tokens)
        if not arms.sample.serve(x):
            free: Flag = state.pacer.lambda_t <= 0.0
            arms.sample.measure(arms.regressions, noise=arms.rewards.noise, free=free)
        return moved

    @ccall
    def admit(
        self, state: Books, excluded: list[str | None], seen: Candidates
    ) -> tuple[list[str | None], str | None]:
        """See Decider: in nine of ten cases a call costs `HORIZON` budgets at most, and those in
        flight as many more than is expected of them."""
        if state.pacer.budget_usd is None:
            return excluded, None
        budget: Real = state.pacer.budget_usd
        most, each = HORIZON * budget, TOLERATED * budget
        return within_risk(state.arms.costs, excluded, seen, most, each), None

    @ccall
    def choose(self, state: Books, seen: Candidates, price: Real) -> tuple[int, str, float]:
        """See Decider.

        The score is θᵀx + what the posterior sample adds − λ_t·ê/B.
        """
        arms = state.arms
        chance: Chance = state.chance  # type: ignore[assignment]  # as this policy made it
        arms.draw(seen, price, chance)
        if arms.timing is not None:
            seen.penalty = arms.timing.penalties(seen.penalty)
        # If no price of a dollar meets the budget, only the cheapest model matters.
        short: Flag = state.pacer.lambda_t >= UNREACHABLE
        if not (short or arms.suspect or arms.onboarding or state.config.knobs.epsilon):
            k, propensity = seen.choose()
            if k >= 0:
                return k, "ucb", propensity
        found: tuple[int, str, float] = state.policy.among_ways(state, seen, short=short)
        return found


@cclass
class Optimism(Decider):
    """Decides as the paper does, see `policies.paper`."""

    @ccall
    def look(self, state: Books, x: Vector, tokens: int | None) -> Candidates:
        """See Decider."""
        return state.arms.look_at_means(x)

    @ccall
    def prepare(self, state: Books, x: Vector, tokens: int | None) -> Flag:
        """See Decider."""
        return False

    @ccall
    def admit(
        self, state: Books, excluded: list[str | None], seen: Candidates
    ) -> tuple[list[str | None], str | None]:
        """See Decider; a hard ceiling on list prices while λ_t > 0."""
        if state.pacer.lambda_t <= 0.0:
            return excluded, None
        found: tuple[list[str | None], str | None] = state.policy.under_ceiling(state, excluded)
        return found

    @ccall
    def choose(self, state: Books, seen: Candidates, price: Real) -> tuple[int, str, float]:
        """See Decider.

        The score is θᵀx + α·√(v ÷ max(γ^dt, 1/V_max)) − weight·c̃: idle arms become uncertain again
        (ParetoBandit Eq. 2 and 9). dt counts from the arm's last reward or last choice: one that
        awaits its rewards is not stale. Ties are broken at random.
        """
        arms, knobs = state.arms, state.config.knobs
        arms.hope(seen, price, state.t, knobs.alpha, knobs.gamma, 1.0 / knobs.v_max)
        if not arms.onboarding and knobs.epsilon <= 0.0:
            k: Index = seen.leader()
            if k >= 0:
                return k, "ucb", 1.0
        found: tuple[int, str, float] = state.policy.among_ways(state, seen)
        return found
