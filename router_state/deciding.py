"""One decision in four steps: who may be called, what a dollar is worth, whose draw is best, and
what is written down."""

from __future__ import annotations

from functools import partial

from router_state.choice import Choice
from router_state.events import Asked
from router_state.kernel import EVERY, Arm
from router_state.pacing import prices
from router_state.policies import eligibility
from router_state.record import Basis, Call, RequestRecord
from router_state.router import RouterState


def decide(
    state: RouterState, request: Asked, now: float, followed: RequestRecord | None = None
) -> RequestRecord:
    """Choose a model for a new request and commit its expected cost; see `Engine.apply`.

    Args:
        followed: the record of the request that it follows, if that one is remembered.

    Raises:
        WrongContext, NonFiniteInput: the context does not fit.
        EmptyPortfolio, NoAllowedModel, NoAffordableModel: no model may be called.
        RouterStateError: a capability refuses the request (`Capability.expect`, `rule_out` and
            `afford`). The state may have noted why.
    """
    arms, policy, pacer, hooks, now = state.arms, state.policy, state.pacer, state.hooks, float(now)
    # The context is checked first, so that a wrong one changes nothing.
    seen, latest = policy.look(state, request), state.latest
    at, is_open = latest if latest > now else now, arms.open
    choice = Choice(request, now, at, state.seq + 1, seen, is_open or [], followed)
    if hooks.expect:
        hooks.expect(choice)
    # 1. Who may be called: by the request, by capabilities, and by money.
    if (
        is_open is None
        or request.allowed_models is not None
        or request.max_price_per_1k is not None
    ):
        eligibility.rule_out(arms, choice)
    if hooks.limits:
        hooks.limits(choice)
    # Nothing is refused from here on, so that estimates may be made and the pacer may take the
    # context in: a refusal leaves no trace that a replay would miss.
    if policy.prepare(state, choice):
        choice.seen = policy.look(state, request)
        if hooks.expect:
            hooks.expect(choice)
    # 2. What a dollar is worth.
    prices.weigh(pacer, arms, choice)
    if hooks.weigh:
        hooks.weigh(choice)
    # 3. Whose draw is best.
    policy.choose(state, choice)
    # A pull or a probe explains the choice better than a cap or a ceiling.
    if choice.why == "ucb":
        if hooks.follow:
            hooks.follow(choice, state.chance, pacer.budget_usd)
        if choice.reason is not None:
            choice.why = choice.reason
    own = choice.k
    if hooks.instead:
        hooks.instead(choice, partial(policy.chance_of, state, choice))
    # 4. What is written down.
    return _write_down(state, choice, own)


def _write_down(state: RouterState, choice: Choice, own: int) -> RequestRecord:
    """Commit a decision and return its record; `own` is the arm that the policy chose."""
    arms, pacer, hooks, k = state.arms, state.pacer, state.hooks, choice.k
    unpaced, arm = choice.unpaced, arms.all[k]
    record = _written(state, choice, arm)
    state.commit(choice.request.request_id, record, state.policy.ticks)
    # Whoever had a new model called, one of its first calls is made.
    arms.played(k, state.t, record.reason == "onboarding" or (unpaced and arm.pulls_left > 0))
    if not unpaced:
        pacer.commit(record.expected_cost_usd)
    # The arms and the debt count calls and money, too.
    if hooks.decided:
        hooks.decided(choice, record)
    if record.seq % EVERY == 0 and pacer.budget_usd is not None:
        budget, now, journal = pacer.budget_usd, state.latest, state.journal
        state.newcomers.look(arms, choice.seen, own, budget=budget, now=now, journal=journal)
    return record


def _written(state: RouterState, choice: Choice, arm: Arm) -> RequestRecord:
    """Return the record of a decision for an arm."""
    request, seen, plan, config = choice.request, choice.seen, choice.plan, state.config
    contained = request.contained
    reward, usd = seen.expected(choice.k) if plan is None else choice.planned
    record = RequestRecord(
        choice.seq,
        arm.name,
        choice.why,
        choice.propensity,
        reward,
        usd,
        state.pacer.lambda_t,
        config.offset,
        choice.now,
        request.offset,
        arm.price,
        request.x,
        seen,
        None if contained is None else Basis(*contained, state.expired, *config.applied),
        request.input_tokens,
    )
    if choice.kept is not None or plan is not None:
        record.call = Call(kept=choice.kept or {}, plan=plan, unpaced=choice.unpaced)
    if choice.noted is not None:
        record.noted = choice.noted
    return record
