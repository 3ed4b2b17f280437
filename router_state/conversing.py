"""Requests of sessions: the tokens that a call saves if a model has just seen most of its
prompt."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import structs

from router_state.arms import Arms
from router_state.cache_price import CachePrice
from router_state.choice import Choice
from router_state.events import UNANSWERED, Asked, Charged
from router_state.record import PLAIN, Records, RequestRecord
from router_state.state.router import RouterState

CREDITED = 100
"""Most requests of a session to which its reward is credited: the latest ones."""
Saved = Mapping[str, float]
"""Tokens at list price that a call saves, by model; below 0: writing the cache costs extra."""


def warmth(state: RouterState, request: Asked, *, now: float) -> dict[str, int] | None:
    """Return the tokens of a request's prompt in each model's cache, as far as known; None without
    a session or a known number of tokens."""
    name, tokens, caches = request.session_id, request.input_tokens, state.config.caches
    if name is None or tokens is None:
        return None
    session, found = state.sessions.find(name), {}
    for model, seen in ({} if session is None else session.warm).items():
        cache = caches.get(model)
        # A prompt that has become shorter was rewritten, so its beginning may not be cached.
        if (
            cache is not None
            and cache.min_tokens <= seen.tokens <= tokens
            and now - seen.at <= cache.ttl_seconds
        ):
            found[model] = seen.tokens
    return found


def saved(state: RouterState, warm: Mapping[str, int], tokens: int) -> dict[str, float]:
    """Return the tokens that a call of each model saves with these warm prefixes."""
    found = {}
    for model, cache in state.config.caches.items():
        arm = state.arms.find(model)
        if arm is None or arm.costs.free:
            continue
        hit = warm.get(model, 0) * state.arms.caching.chance(model)
        input_per_m = arm.price.input_price_per_m
        counts = cache.counts_as(tokens, hit, input_per_m=input_per_m, writes=True)
        if counts != tokens:
            found[model] = tokens - counts
    return found


def expect(state: RouterState, choice: Choice) -> None:
    """Expect what a request's warm prefixes save, and take it off the expected costs."""
    arms, tokens = state.arms, choice.request.input_tokens
    if choice.saves is None:
        choice.warm = warmth(state, choice.request, now=choice.now)
        if choice.warm is not None and tokens is not None:
            choice.saves = saved(state, choice.warm, tokens)
    # They are known only if input tokens are counted apart.
    if choice.saves and arms.tokens.in_use:
        seen, saves = choice.seen, choice.saves
        seen.expected_cost_usd = [
            max(cost - _usd(arms, k, saves.get(name, 0.0)), 0.0)
            for k, (name, cost) in enumerate(zip(arms.names, seen.expected_cost_usd, strict=True))
        ]


def _usd(arms: Arms, k: int, tokens: float) -> float:
    model = arms.costs[k]
    return 0.0 if model.free else model.paid * model.per_input_token * tokens


def note(state: RouterState, choice: Choice, record: RequestRecord) -> None:
    """Keep a decided request as the last turn of its session."""
    request = choice.request
    name = request.session_id
    if name is None:
        return
    at = record.decided_at
    session = state.sessions.turn(name, now=at)
    before, session.last = session.last, request.request_id
    if request.input_tokens is not None and record.model in state.config.caches:
        state.sessions.seen(name, record.model, request.input_tokens, at=at)
    record.call = structs.replace(
        record.call or PLAIN, session_id=name, warm=dict(choice.warm or {})
    )
    if before is not None:
        record.call = structs.replace(record.call, before=before)


def requests_of(
    state: RouterState, records: Records, name: str, *, most: int = CREDITED
) -> dict[str, RequestRecord]:
    """Return the last remembered requests of a session by their ids, the oldest first, at most so
    many: those after any forgotten one."""
    session, found = state.sessions.find(name), dict[str, RequestRecord]()
    request_id = None if session is None else session.last
    while request_id is not None and len(found) < most:
        record = records.get(request_id)
        # A request that was asked again after it was forgotten may be of another session.
        if record is None or record.call is None or record.call.session_id != name:
            break
        found[request_id] = record
        request_id = record.call.before
    return dict(reversed(found.items()))


def billed(state: RouterState, record: RequestRecord, event: Charged, *, called: str) -> None:
    """Learn from a bill which model saw a session's prompt, and whether its cache was hit."""
    call = record.call
    if call is None or call.session_id is None or record.input_tokens is None:
        return
    if event.status in UNANSWERED:
        state.sessions.unseen(call.session_id, called, at=record.decided_at)
        return
    if called != record.model and called in state.config.caches:
        state.sessions.seen(call.session_id, called, record.input_tokens, at=record.decided_at)
    warm = call.warm.get(called, 0)
    if event.cached is not None and warm > 0:
        state.arms.caching.learn(called, event.cached / warm)


def priced(state: RouterState, record: RequestRecord) -> None:
    """Keep the decided model's price of cached input, for the bill."""
    cache = state.config.caches.get(record.model)
    if cache is not None:
        record.call = structs.replace(record.call or PLAIN, cache=cache)


def cache_of(state: RouterState, record: RequestRecord, called: str) -> CachePrice | None:
    """Return the price of cached input for a billed call: for the decided model that of the
    decision."""
    if called != record.model or record.config_offset == state.config.offset:
        return state.config.caches.get(called)
    return None if record.call is None else record.call.cache


def counted(state: RouterState, record: RequestRecord, event: Charged, *, called: str) -> float:
    """Return the number of tokens at list price to which the input of a billed call amounts."""
    tokens, cache = state.arms.tokens.of(record.input_tokens), cache_of(state, record, called)
    if cache is None:
        return tokens
    call = record.call
    writes = call is not None and call.session_id is not None
    if event.cached is not None:
        cached = min(float(event.cached), tokens)
    elif call is not None and record.input_tokens is not None:
        cached = min(call.warm.get(called, 0) * state.arms.caching.chance(called), tokens)
    else:
        return tokens
    price = record.price if called == record.model else state.arms[called].price
    return cache.counts_as(tokens, cached, input_per_m=price.input_price_per_m, writes=writes)
