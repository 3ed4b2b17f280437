"""Turn bills and rewards as they come into events of the core."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from agents.context_store import Ref
from agents.parked import Parked
from ground.messages import Message
from router_state.config import Vector
from router_state.events import Charged, Event, Judged
from schemas.quick import Bill, Reward


def core_event(
    event: Bill | Reward,
    source: Message,
    contexts: Mapping[Ref, Vector | None],
    *,
    rank_of: Callable[[str], int],
) -> Event:
    """Return a bill or a reward as an event of the core.

    Args:
        source: its message, or the event as it waited.
        contexts: those that were read from the store outside of the table.
        rank_of: rank of a reward's source.
    """
    x = contexts.get((event.router_id, event.request_id))
    if isinstance(event, Reward):
        rank = rank_of(event.source)
        of_session = {} if event.request_id else _of_router(contexts, event.router_id)
        return Judged(
            event.subject,
            event.reward,
            event.source,
            rank,
            model=event.model,
            revision=event.revision,
            x=x,
            offset=source.offset,
            waited=isinstance(source, Parked),
            contexts=of_session or None,
        )
    return Charged(
        event.request_id,
        event.cost_usd,
        event.tokens,
        model=event.model,
        revision=event.revision,
        x=x,
        offset=source.offset,
        waited=isinstance(source, Parked),
        status=event.status,
        retry_after=event.retry_after_seconds,
        cached=event.cached_input_tokens,
        latency=seconds(event.latency_ms),
        first_token=seconds(event.first_token_ms),
    )


def _of_router(contexts: Mapping[Ref, Vector | None], router_id: str) -> dict[str, Vector]:
    return {ref[1]: x for ref, x in contexts.items() if ref[0] == router_id and x is not None}


def seconds(milliseconds: float | None) -> float | None:
    """Convert a bill's milliseconds to seconds."""
    return None if milliseconds is None else milliseconds / 1e3
