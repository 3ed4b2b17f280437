"""Apply what a bill has beside its dollars, see `kernel.settle`, and the rewards of sessions."""

from __future__ import annotations

from router_state import attempts, availability, conversing
from router_state.changes import APPLIED, DUPLICATE, REVISED, Outcome
from router_state.config import Price, Vector
from router_state.errors import ContextLost, CostOutOfRange, UnknownRequest, UnpricedModel
from router_state.events import Charged, Judged
from router_state.kernel import checked_reward, learn
from router_state.latency import observing
from router_state.ranks import BELOW_OWN
from router_state.record import Records, RequestRecord
from router_state.sessions import WHOLE
from router_state.state.router import RouterState


def tokens_usd(
    state: RouterState,
    record: RequestRecord,
    tokens: tuple[int, int],
    *,
    called: str,
    cached: int | None,
) -> float | None:
    """Return the dollars of a request's bill in tokens; None if they have no price.

    Args:
        tokens: of input and of output.
        called: the model that the bill is of.
        cached: how many of the input tokens were billed as cached; None: not known.
    """
    price = price_of(state, record, called)
    if price is None:
        return None
    return price.cost_usd(
        input_tokens=tokens[0],
        output_tokens=tokens[1],
        cached=cached,
        cache=conversing.cache_of(state, record, called),
        writes=record.call is not None and bool(record.call.session_id),
    )


def price_of(state: RouterState, record: RequestRecord, called: str) -> Price | None:
    """Return what a bill's tokens are priced at: as at the decision, or what another model that was
    called costs now; None if that is not in the portfolio.

    Of a request that has the bill of its answer, the price that was used.
    """
    if called == record.model or record.is_answered:
        return record.price
    arm = state.arms.find(called)
    return None if arm is None else arm.price


def priced(state: RouterState, record: RequestRecord, event: Charged) -> float:
    """Return the dollars of a bill in tokens. Raises CostOutOfRange, UnpricedModel."""
    if event.tokens is None:
        raise CostOutOfRange("a bill needs cost_usd or token counts")
    called = event.model or record.called
    cost_usd = tokens_usd(state, record, event.tokens, called=called, cached=event.cached)
    if cost_usd is None:
        raise UnpricedModel(
            "tokens of a model that is not in the portfolio have no price: report dollars"
        )
    return cost_usd


def observe(
    state: RouterState,
    record: RequestRecord,
    event: Charged,
    *,
    called: str,
    answered: bool,
    x: Vector | None,
) -> None:
    """Learn how a call went: its time, whether it was answered, and what its cache held."""
    if state.arms.timing is not None and not answered:
        observing.billed(state, state.arms.timing, record, event, called=called, x=x)
    if event.status is not None or state.availability.models:
        attempts.observe(state, record, event, called=called, x=x)
    if record.call is not None and not answered:
        conversing.billed(state, record, event, called=called)


note, counted, UNANSWERED = attempts.note, conversing.counted, availability.UNANSWERED


def hold(state: RouterState, record: RequestRecord, difference_usd: float) -> None:
    """Let caps and periods, which were charged what was expected, take the difference of a bill."""
    for bucket in state.buckets:
        bucket.spend(difference_usd)
    if state.ledger is not None:
        state.ledger.settle(
            difference_usd,
            at=record.decided_at,
            seq=record.seq,
            awaited=record.bill is None and not record.expired,
        )


def learn_session(
    state: RouterState, records: Records, event: Judged
) -> tuple[Outcome, dict[str, RequestRecord]]:
    """Credit the reward of a session to its requests; return the outcome, and the requests that
    changed.

    Each request gets the session's reward, so that means over requests stay right. A request's own
    reward wins over it, whichever comes first.

    Raises:
        UnknownRequest: none of its requests is remembered.
        ContextLost: the context of none of them is in a store.
    """
    name, reward = event.request_id.removeprefix(WHOLE), checked_reward(event.reward)
    requests = conversing.requests_of(state, records, name)
    if not requests:
        raise UnknownRequest(f"no request of session {name!r} is remembered")
    contexts, outcomes = event.contexts or {}, dict[str, Outcome]()
    for request_id, record in requests.items():
        x = contexts.get(request_id)
        if x is not None or record.x is not None:
            one = Judged(
                request_id,
                reward,
                WHOLE + event.source,
                event.rank - BELOW_OWN,
                revision=event.revision,
                x=x,
            )
            # Of what was found: in a table each look-up unpacks a record anew.
            outcomes[request_id] = learn(state, requests, one)
    if not outcomes:
        raise ContextLost(f"the contexts of session {name!r} are in no store")
    changed = {name: requests[name] for name, one in outcomes.items() if one is not DUPLICATE}
    records.update(changed)
    ordered = (APPLIED, REVISED, DUPLICATE)
    return min(outcomes.values(), key=ordered.index), changed
