"""One decision in four steps: eligible models, the dual price, the best score, and the record."""

from __future__ import annotations

from typing import TYPE_CHECKING

from router_state.kernel.choosing.arm import Arm
from router_state.kernel.choosing.candidates import Candidates
from router_state.kernel.choosing.portfolio import Portfolio
from router_state.kernel.choosing.sample import EVERY
from router_state.kernel.numbers.words import Flag, Index, Real, cfunc
from router_state.kernel.routing.books import Books
from router_state.kernel.routing.deciders import Decider
from router_state.kernel.routing.record import RequestRecord, record_of

if TYPE_CHECKING:
    from types import ModuleType

    from router_state.events import Asked


def decide(state: Books, request: Asked, now: Real, others: ModuleType) -> RequestRecord:
    """Choose a model for a new request and commit its expected cost; see `Engine.decide`.

    Args:
        others: `router_state.deciding`, called where a router or request has more than a plain one.

    Raises:
        WrongContext, NonFiniteInput: the context does not fit.
        EmptyPortfolio, NoAllowedModel, NoAffordableModel, NoCapableModel, CapReached, BudgetSpent:
            no model may be called. That a cap is reached or a budget spent may have been noted.
    """
    arms: Portfolio = state.arms
    decider: Decider = state.policy.decider
    x, tokens, config = request.x, request.input_tokens, state.config
    # 1. Who may be called. What does not fit has moved nothing: the context is checked here.
    seen: Candidates = decider.look(state, x, tokens)
    warm = others.warmth(state, request, now=now) if config.caches else None
    saves = None if warm is None else others.saved(state, warm, tokens)
    if saves:
        others.discount(arms, seen, saves)
    excluded, limited_to, capped = arms.open, None, None
    if excluded is None or is_limited(state, request):
        excluded, limited_to, capped = others.who_may(state, request, seen, now=now)
    # Nothing is refused from here on, so that estimates may be made and the pacer may take the
    # context in: a refusal leaves no trace that a replay would miss.
    if decider.prepare(state, x, tokens):
        seen = decider.look(state, x, tokens)
        if saves:
            others.discount(arms, seen, saves)
    arms.caching.latest = saves
    # 2. What a dollar is worth.
    price: Real = state.pacer.weigh(arms, x, limited_to, state.seq + 1, now)
    if arms.timing is not None:
        others.expect_wait(state, x, excluded)
    seen.excluded, relaxed = decider.admit(state, excluded, seen)
    # 3. Whose draw is best.
    choice, reason, propensity = decider.choose(state, seen, price)
    k: Index = choice
    # 4. What is written down. A pull or a probe says more about it than a cap or a ceiling.
    if reason == "ucb":
        reason = capped or relaxed or reason
    record: RequestRecord = written(state, request, seen, k, reason, propensity, now, others)
    state.commit(request.request_id, record, decider.ticks)
    arms.played(k, state.t, reason == "onboarding")
    state.pacer.commit(record.expected_cost_usd)
    if config.caches or request.session_id is not None or has_more(state):
        others.note(state, request, record, k, warm)
    if state.pacer.budget_usd is not None and record.seq % EVERY == 0:
        state.newcomers.look(state, seen, k)
    return record


@cfunc
def is_limited(state: Books, request: Asked) -> Flag:
    """Tell whether anything but the budget may rule out a model that takes traffic."""
    limited: Flag = request.allowed_models is not None or request.max_price_per_1k is not None
    limited = limited or bool(state.buckets) or state.ledger is not None
    return limited or bool(state.config.offers) or bool(state.availability.models)


@cfunc
def has_more(state: Books) -> Flag:
    """Tell whether a call is noted by more than the books, the arm and the pacer."""
    more: Flag = state.arms.timing is not None or state.ledger is not None
    return more or bool(state.buckets) or bool(state.availability.models)


@cfunc
def written(
    state: Books,
    request: Asked,
    seen: Candidates,
    k: Index,
    reason: str,
    propensity: Real,
    now: Real,
    others: ModuleType,
) -> RequestRecord:
    """Return the record of a decision."""
    contained = request.contained
    arm: Arm = state.arms.all[k]
    return record_of(
        state.seq + 1,
        arm.name,
        reason,
        propensity,
        seen.reward(k),
        seen.cost_usd(k),
        state.pacer.lambda_t,
        state.config.offset,
        now,
        request.offset,
        arm.price,
        request.x,
        seen,
        None if contained is None else others.basis(state, contained),
        request.input_tokens,
    )
