"""One decision: which arms may be called, what a dollar is worth, whose score is best, and what that moves in the state."""

from __future__ import annotations

from collections.abc import Collection

from router_state import accounts, capping, choosing, eligibility, scoring
from router_state.config import Vector
from router_state.dual import DualPacer
from router_state.record import RequestRecord
from router_state.state import RouterState


def decide(
    state: RouterState,
    request_id: str,
    x: Vector,
    *,
    now: float,
    offset: int,
    allowed_models: Collection[str] | None,
    max_price_per_1k: float | None,
) -> RequestRecord:
    """Choose a model for a new request and commit its expected cost; see `Engine.decide`.

    Args:
        x: context, shape (d,), last entry 1.0.

    Raises:
        WrongContext, NonFiniteInput: the context does not fit.
        EmptyPortfolio, NoAllowedModel, NoAffordableModel, CapReached: no model may be called. Nothing has changed.
    """
    arms, knobs, pacer = state.arms, state.config.knobs, state.pacer
    projected, variance = scoring.project(arms, x)
    excluded, limited_to, forced = arms.open, None, None
    if excluded is None or allowed_models is not None or max_price_per_1k is not None:
        excluded = eligibility.exclude(arms, allowed_models, max_price_per_1k)
        if allowed_models is not None or max_price_per_1k is not None:
            limited_to = frozenset(name for name, why in zip(arms.names, excluded, strict=True) if why is None)
    costs = scoring.expected_costs(arms, projected)
    if state.buckets:
        excluded, forced = capping.apply(state, excluded, costs, now=now)
    lambda_t, per_log_price, per_dollar = 0.0, knobs.lambda_c, 0.0
    if isinstance(pacer, DualPacer):
        lambda_t, per_dollar = accounts.price_of_a_dollar(state, pacer, x, limited_to)
        excluded = eligibility.within_reach(arms, excluded, costs, usd=accounts.reach_usd(state))
    elif pacer is not None:
        lambda_t = pacer.lambda_t
        per_log_price += lambda_t
        if lambda_t > 0.0:
            excluded, forced = eligibility.under_ceiling(arms, excluded, forced, lambda_t=lambda_t)
    candidates, k = scoring.score(arms, projected, variance, costs, excluded, state.t, knobs, per_log_price, per_dollar)
    reason, propensity = "ucb", 1.0
    if k < 0 or arms.onboarding or arms.suspect or knobs.epsilon > 0.0:
        k, reason, propensity = choosing.choose(arms, candidates, knobs, state.rng, spare=accounts.spare(state))
    if forced is not None and reason == "ucb":
        reason = forced
    record = RequestRecord(
        state.seq + 1, arms.names[k], reason, propensity, candidates.terms[3 * k], candidates.terms[3 * k + 2], lambda_t,
        state.config.offset, now, offset, arms.price[k], x, candidates,
    )  # fmt: skip
    _play(state, k, record)
    accounts.commit(state, request_id, record)
    return record


def _play(state: RouterState, k: int, record: RequestRecord) -> None:
    """Move what counts decisions: number, clock, and what the arm of row k is still to be pulled."""
    arms = state.arms
    state.seq = record.seq
    state.latest = max(state.latest, record.decided_at)
    if not state.config.knobs.feedback_clock:
        state.t += 1
    arms.last_played[k] = state.t
    if record.reason == "onboarding":
        arms.pulls_left[k] -= 1
        arms.onboarding = any(arms.pulls_left)
