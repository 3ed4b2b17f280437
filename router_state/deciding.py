"""One decision in four steps: eligible models, the dual price, the best score, and the record."""

from __future__ import annotations

from router_state import capabilities, conversing
from router_state.events import Asked
from router_state.kernel import EVERY, Candidates, DollarDual, record_of
from router_state.latency import observing
from router_state.periods import guarding
from router_state.policies import eligibility
from router_state.policies.eligibility import Excluded
from router_state.policies.policy import Policy
from router_state.record import Basis, Call, RequestRecord
from router_state.state import caps
from router_state.state.router import RouterState


def decide(state: RouterState, policy: Policy, request: Asked, *, now: float) -> RequestRecord:
    """Choose a model for a new request and commit its expected cost; see `Engine.decide`.

    Raises:
        WrongContext, NonFiniteInput: the context does not fit.
        EmptyPortfolio, NoAllowedModel, NoAffordableModel, NoCapableModel, CapReached,
        BudgetSpent: no model may be called. Nothing has changed, but that it may be noted that a
            cap is reached, or a budget spent.
    """
    arms, x, tokens = state.arms, request.x, request.input_tokens
    # 1. Who may be called. What does not fit has moved nothing: the context is checked here.
    seen = policy.look(state, x, tokens)
    warm = conversing.warmth(state, request, now=now) if state.config.caches else None
    saves = {} if warm is None or tokens is None else conversing.saved(state, warm, tokens)
    if saves:
        conversing.discount(arms, seen, saves)
    excluded, limited_to, capped = _who_may(state, request, seen, now=now)
    # Nothing is refused from here on, so that estimates may be made and the pacer may take the
    # context in: a refusal leaves no trace that a replay would miss.
    if policy.prepare(state, x, tokens):
        seen = policy.look(state, x, tokens)
        if saves:
            conversing.discount(arms, seen, saves)
    arms.caching.latest = None if warm is None else saves
    # 2. What a dollar is worth.
    price = state.pacer.weigh(arms, x, limited_to, state.seq + 1, now)
    if (timing := arms.timing) is not None and isinstance(state.pacer, DollarDual):
        timing.look(x, excluded, seq=state.seq + 1, multiple=state.pacer.window.wait_price)
    seen.excluded, relaxed = policy.admit(state, excluded, seen)
    # 3. Whose draw is best.
    k, reason, propensity = policy.choose(state, seen, price)
    # 4. What is written down. A pull or a probe says more about it than a cap or a ceiling.
    if reason == "ucb":
        reason = capped or relaxed or reason
    record = _written(state, request, seen, k, reason, propensity, now)
    state.commit(request.request_id, record, policy.ticks)
    _commit(state, record, k)
    if request.session_id is not None:
        conversing.note(state, request, record, warm)
    if state.config.caches:
        conversing.priced(state, record)
    if timing is not None:
        observing.commit(timing, record, k)
    budget_usd = state.pacer.budget_usd
    if budget_usd is not None and record.seq % EVERY == 0:
        state.newcomers.look(
            arms, seen, k, budget=budget_usd, now=state.latest, journal=state.journal
        )
    return record


def _written(
    state: RouterState,
    request: Asked,
    seen: Candidates,
    k: int,
    reason: str,
    propensity: float,
    now: float,
) -> RequestRecord:
    config, contained = state.config, request.contained
    return record_of(
        state.seq + 1,
        seen.models[k],
        reason,
        propensity,
        seen.reward(k),
        seen.cost_usd(k),
        state.pacer.lambda_t,
        config.offset,
        now,
        request.offset,
        state.arms[k].price,
        request.x,
        seen,
        None if contained is None else Basis(*contained, state.expired, *config.applied),
        request.input_tokens,
    )


def _who_may(
    state: RouterState, request: Asked, seen: Candidates, *, now: float
) -> tuple[Excluded, frozenset[str] | None, str | None]:
    """Return why each arm may not be called, the models that the request is limited to if it is,
    and the reason that caps give the decision."""
    arms, allowed, most = state.arms, request.allowed_models, request.max_price_per_1k
    excluded, limited_to, capped = arms.open, None, None
    limited = allowed is not None or most is not None
    if excluded is None or limited:
        excluded = eligibility.exclude(arms, allowed, most)
    if offers := state.config.offers:
        by_others = excluded
        excluded = capabilities.rule_out(
            arms.names, by_others, offers, request.needs, request.input_tokens
        )
        limited |= excluded is not by_others
    if state.availability.models:
        by_others = excluded
        excluded = state.availability.rule_out(
            arms.names, by_others, now=max(now, state.latest), seq=state.seq
        )
        limited |= excluded is not by_others
    if limited:
        limited_to = frozenset(
            name for name, why in zip(arms.names, excluded, strict=True) if why is None
        )
    if state.buckets:
        costs = seen.expected_cost_usd
        excluded, capped = caps.keep_within(state.buckets, state.journal, excluded, costs, now=now)
    if state.ledger is not None:
        excluded, spent = guarding.apply(state, excluded, seen.expected_cost_usd, now=now)
        capped = capped or spent
    return excluded, limited_to, capped


def _commit(state: RouterState, record: RequestRecord, k: int) -> None:
    """Note the k-th arm's call, and charge its expected cost wherever money is counted."""
    if state.availability.models:
        nth = state.availability.called(record.model, now=state.latest, seq=record.seq)
        record.call = Call(nth=nth) if nth else None
    state.arms.played(k, state.t, record.reason == "onboarding")
    expected_usd = record.expected_cost_usd
    state.pacer.commit(expected_usd)
    if state.ledger is not None:
        state.ledger.commit(record)
    for bucket in state.buckets:
        bucket.spend(expected_usd)
