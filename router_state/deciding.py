"""One decision in four steps: who may be called, what a dollar is worth, whose draw is best, and
what is written down."""

from __future__ import annotations

from router_state.choice import Choice
from router_state.events import Asked
from router_state.kernel import EVERY
from router_state.pacing import prices
from router_state.policies import eligibility
from router_state.record import Basis, Call, RequestRecord
from router_state.router import RouterState


def decide(state: RouterState, request: Asked, now: float) -> RequestRecord:
    """Choose a model for a new request and commit its expected cost; see `Engine.apply`.

    Raises:
        WrongContext, NonFiniteInput: the context does not fit.
        EmptyPortfolio, NoAllowedModel, NoAffordableModel, NoCapableModel, CapReached, BudgetSpent:
            no model may be called. That a cap is reached or a budget spent may have been noted.
    """
    arms, policy, pacer = state.arms, state.policy, state.pacer
    choice = Choice(request, now, state.seq + 1, arms.open or [], latest=state.latest)
    # 1. Who may be called. What does not fit has moved nothing: the context is checked here.
    _look(state, choice)
    _rule_out(state, choice)
    # Nothing is refused from here on, so that estimates may be made and the pacer may take the
    # context in: a refusal leaves no trace that a replay would miss.
    if policy.prepare(state, choice):
        _look(state, choice)
    # 2. What a dollar is worth.
    prices.weigh(pacer, arms, choice)
    for k in state.acting.weigh:
        state.capabilities[k].weigh(choice)
    relaxed = policy.admit(state, choice)
    # 3. Whose draw is best.
    policy.choose(state, choice)
    # 4. What is written down. A pull or a probe says more about it than a cap or a ceiling.
    if choice.why == "ucb":
        for k in state.acting.follow:
            state.capabilities[k].follow(choice, state.chance, pacer.budget_usd)
        choice.why = choice.reason or relaxed or "ucb"
    record = _written(state, choice)
    state.commit(request.request_id, record, policy.ticks)
    arms.played(choice.k, state.t, choice.why == "onboarding")
    pacer.commit(record.expected_cost_usd)
    _note(state, choice, record)
    if pacer.budget_usd is not None and record.seq % EVERY == 0:
        state.newcomers.look(
            arms,
            choice.seen,
            choice.k,
            budget=pacer.budget_usd,
            now=state.latest,
            journal=state.journal,
        )
    return record


def _look(state: RouterState, choice: Choice) -> None:
    """Expect what calls earn and cost."""
    choice.seen = state.policy.look(state, choice.request)
    for k in state.acting.expect:
        state.capabilities[k].expect(choice)


def _rule_out(state: RouterState, choice: Choice) -> None:
    """Rule out models: by the request, by capabilities, and by money."""
    eligibility.rule_out(state.arms, choice)
    for k in state.acting.rule_out:
        state.capabilities[k].rule_out(choice)
    for k in state.acting.afford:
        state.capabilities[k].afford(choice)


def _written(state: RouterState, choice: Choice) -> RequestRecord:
    """Return the record of a decision."""
    request, seen, k, plan = choice.request, choice.seen, choice.k, choice.plan
    arm = state.arms.all[k]
    contained = request.contained
    reward, usd = (seen.reward(k), seen.cost_usd(k)) if plan is None else choice.planned
    return RequestRecord(
        choice.seq,
        arm.name,
        choice.why,
        choice.propensity,
        reward,
        usd,
        state.pacer.lambda_t,
        state.config.offset,
        float(choice.now),
        request.offset,
        arm.price,
        request.x,
        seen,
        None if contained is None else Basis(*contained, state.expired, *state.config.applied),
        request.input_tokens,
        call=None if plan is None else Call(plan=plan),
    )


def _note(state: RouterState, choice: Choice, record: RequestRecord) -> None:
    """Note the call wherever calls and money are counted beside the books."""
    for k in state.acting.decided:
        state.capabilities[k].decided(choice, record)
