"""Decide where a router or a request has more than a plain one, see `kernel.decide`."""

from __future__ import annotations

from router_state import capabilities, conversing
from router_state.config import Vector
from router_state.events import Asked
from router_state.kernel import Candidates, DollarDual, RequestRecord
from router_state.latency import observing
from router_state.periods import guarding
from router_state.policies import eligibility
from router_state.policies.eligibility import Excluded
from router_state.record import Basis, Call
from router_state.state import caps
from router_state.state.router import RouterState

warmth, saved, discount = conversing.warmth, conversing.saved, conversing.discount


def basis(state: RouterState, contained: tuple[int, int]) -> Basis:
    """Return the last events that the state contains."""
    return Basis(*contained, state.expired, *state.config.applied)


def who_may(
    state: RouterState, request: Asked, seen: Candidates, *, now: float
) -> tuple[Excluded, frozenset[str] | None, str | None]:
    """Return why each arm may not be called, the models that the request is limited to if it is,
    and the reason that caps give the decision."""
    arms, allowed, most = state.arms, request.allowed_models, request.max_price_per_1k
    excluded, limited_to, capped, enough = arms.open, None, None, True
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
        excluded, capped, enough = caps.keep_within(
            state.buckets, state.journal, excluded, costs, now=now
        )
    if state.ledger is not None:
        excluded, spent = guarding.apply(state, excluded, seen.expected_cost_usd, now=now)
        capped = capped or spent
    if state.buckets:
        caps.refill(state.buckets, enough=enough, now=now)
    return excluded, limited_to, capped


def expect_wait(state: RouterState, x: Vector, excluded: Excluded) -> None:
    """Expect how long calls of a request take, where there is a target."""
    timing, pacer = state.arms.timing, state.pacer
    if timing is not None and isinstance(pacer, DollarDual):
        timing.look(x, excluded, seq=state.seq + 1, multiple=pacer.window.wait_price)


def note(
    state: RouterState,
    request: Asked,
    record: RequestRecord,
    k: int,
    warm: dict[str, int] | None,
) -> None:
    """Note the k-th arm's call wherever calls and money are counted beside the books."""
    if state.availability.models:
        nth = state.availability.called(record.model, now=state.latest, seq=record.seq)
        record.call = Call(nth=nth) if nth else None
    if state.ledger is not None:
        state.ledger.commit(record)
    for bucket in state.buckets:
        bucket.spend(record.expected_cost_usd)
    if request.session_id is not None:
        conversing.note(state, request, record, warm)
    if state.config.caches:
        conversing.priced(state, record)
    if state.arms.timing is not None:
        observing.commit(state.arms.timing, record, k)
