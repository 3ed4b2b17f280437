"""One decision: which arms may be called, what a dollar is worth, whose score is best, and what
that moves in the state."""

from __future__ import annotations

from collections.abc import Collection

from router_state.config import Vector
from router_state.pacing.dollar_dual import UNREACHABLE
from router_state.policies import choosing, eligibility, newcomers, scoring
from router_state.record import Basis, RequestRecord
from router_state.state import capping
from router_state.state.router import RouterState


def decide(
    state: RouterState,
    request_id: str,
    x: Vector,
    *,
    now: float,
    offset: int = -1,
    allowed_models: Collection[str] | None = None,
    max_price_per_1k: float | None = None,
    input_tokens: int | None = None,
    contained: tuple[int, int] | None = None,
) -> RequestRecord:
    """Choose a model for a new request and commit its expected cost; see `Engine.decide`.

    Args:
        x: context, shape (d,), last entry 1.0.

    Raises:
        WrongContext, NonFiniteInput: the context does not fit.
        EmptyPortfolio, NoAllowedModel, NoAffordableModel, CapReached: no model may be called.
            Nothing has changed, but that a cap may be noted as reached.
    """
    arms, knobs, pacer = state.arms, state.config.knobs, state.pacer
    # The context is checked here, by the first product: what does not fit has moved nothing.
    seen = scoring.project(arms, x, arms.tokens.of(input_tokens))
    costs = seen[2]
    excluded, limited_to, forced = arms.open, None, None
    if excluded is None or allowed_models is not None or max_price_per_1k is not None:
        excluded = eligibility.exclude(arms, allowed_models, max_price_per_1k)
        if allowed_models is not None or max_price_per_1k is not None:
            limited_to = frozenset(
                name for name, why in zip(arms.names, excluded, strict=True) if why is None
            )
    if state.buckets:
        excluded, forced = capping.apply(state, excluded, costs, now=now)
    # Nothing is refused from here on, so that estimates may be made and the pacer may take the
    # context in: a refusal leaves no trace that a replay would miss.
    moved = arms.catch_up(t=state.t, gamma=knobs.gamma, shared=knobs.shared_learning)
    if (knobs.prices_prompts and arms.take_tokens(input_tokens)) or moved:
        seen = scoring.project(arms, x, arms.tokens.of(input_tokens))
        costs = seen[2]
    # One draw serves several requests: drawing is d² an arm, and scores of neighbours need no
    # other.
    if knobs.shared_learning and not arms.doubt.serve(x):
        arms.draw(state.rng, unbound=pacer.unbound)
    weights = pacer.weigh(arms, x, lambda_c=knobs.lambda_c, limited_to=limited_to, now=state.latest)
    excluded, why = pacer.admit(arms, excluded, costs)
    forced = forced or why
    if knobs.shared_learning:
        candidates, k = scoring.score_drawn(
            arms, seen, drawn=arms.doubt.of(x), excluded=excluded, weights=weights
        )
    else:
        candidates, k = scoring.score(
            arms, seen, excluded=excluded, t=state.t, knobs=knobs, weights=weights
        )
    reason, propensity = "ucb", 1.0
    short = knobs.shared_learning and weights[0] >= UNREACHABLE
    # Mostly the best score decides, and the general way is skipped: it looks at every arm again.
    if k < 0 or short or arms.onboarding or arms.suspect or knobs.epsilon > 0.0:
        chosen = choosing.choose(
            arms,
            candidates,
            knobs=knobs,
            rng=state.rng,
            allowance=pacer.allowance(),
            short_of=pacer.budget_usd or 0.0 if short else 0.0,
        )
        if knobs.shared_learning:
            chosen = chosen._replace(share=choosing.drawn(arms, seen, candidates, chosen.k))
        k, reason, propensity = chosen.k, chosen.reason, chosen.propensity
    elif knobs.shared_learning:
        propensity = choosing.drawn(arms, seen, candidates, k)
    # A pull or a probe says more about the decision than a cap or a ceiling around it.
    if forced is not None and reason == "ucb":
        reason = forced
    config = state.config
    basis = None if contained is None else Basis(*contained, state.expired, *config.applied)
    record = RequestRecord(
        state.seq + 1,
        arms.names[k],
        reason,
        propensity,
        candidates.terms[3 * k],
        candidates.terms[3 * k + 2],
        weights[0],
        config.offset,
        now,
        offset,
        arms[k].price,
        x,
        candidates,
        applied=basis,
        input_tokens=input_tokens,
        unsure=arms.unsure(x, seen[1]) if knobs.shared_learning else None,
    )
    _take(state, request_id, record, k)
    if config.budget_usd_per_request is not None and record.seq % newcomers.EVERY == 0:
        state.newcomers.look(
            arms,
            candidates,
            k,
            budget=config.budget_usd_per_request,
            now=state.latest,
            journal=state.journal,
        )
    return record


def _take(state: RouterState, request_id: str, record: RequestRecord, k: int) -> None:
    """Move what counts decisions, and put the k-th arm's expected cost on the books."""
    state.latest = max(state.latest, record.decided_at)
    if not state.config.knobs.feedback_clock:
        state.tick()
    state.arms.played(k, t=state.t, pulled=record.reason == "onboarding")
    state.commit(request_id, record)
    if state.config.knobs.commit_and_settle:
        state.pacer.commit(record.expected_cost_usd)
    for bucket in state.buckets:
        bucket.spend(record.expected_cost_usd)
