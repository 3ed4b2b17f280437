"""Convert requests, bills and rewards from the wire to events of the core, for workers and
replays.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from agents.table.parking import Parked
from agents.table.router_records import Ref
from ground.messages import Message
from router_state import registered
from router_state.attempts.verdict_tables import SIGNALS
from router_state.config import Vector
from router_state.events import Asked, Charged, Event, Follows, Judged, Needs, Verified
from schemas.quick import Bill, Request, Reward

NEEDS = Needs.__struct_fields__
"""Names of needs, on the wire as in the core."""


def asked(
    event: Request, x: Vector, *, offset: int = -1, contained: tuple[int, int] | None = None
) -> Asked:
    """Return a request with its context `x`, shape (d,); see `Asked`."""
    # Arguments go by position, which is faster: a history has many requests, bills and rewards.
    return Asked(
        event.request_id,
        x,
        offset,
        event.allowed_models,
        event.max_price_per_1k,
        event.tokens_before,
        contained,
        needs_of(event),
        event.session_id,
        registered.request_fields(event),
        follows_of(event),
    )


def follows_of(event: Request) -> Follows | None:
    """Return the request that this request follows, with the signals about its answer; None: it
    follows none.
    """
    if event.follows is None:
        return None
    said = event.signals
    found = {name: getattr(said, name, None) for name in SIGNALS}
    signals = {name: value for name, value in found.items() if value is not None}
    return Follows(event.follows, event.verdicts or {}, signals)


def needs_of(event: Request) -> Needs | None:
    """Return the needs of a request; None if it has none."""
    said = event.needs
    return None if said is None else Needs(**{name: getattr(said, name) for name in NEEDS})


def charged(event: Bill, *, offset: int, x: Vector | None = None, waited: bool = False) -> Charged:
    """Return a bill; see `Charged`."""
    return Charged(
        event.request_id,
        event.cost_usd,
        event.tokens,
        event.model,
        event.revision,
        x,
        offset,
        waited,
        event.status,
        event.retry_after_seconds,
        event.cached_input_tokens,
        seconds(event.latency_ms),
        seconds(event.first_token_ms),
        event.attempt or 0,
        event.answered_by,
    )


def judged(
    event: Reward,
    rank: int,
    *,
    offset: int = -1,
    x: Vector | None = None,
    waited: bool = False,
    contexts: Mapping[str, Vector] | None = None,
) -> Judged | Verified:
    """Return a reward from a source of this rank, or a verdict; see `Judged` and `Verified`."""
    if event.verifier is not None:
        return verified(event, offset=offset, x=x, waited=waited)
    assert event.source is not None
    return Judged(
        event.subject,
        event.reward,
        event.source,
        rank,
        event.model,
        event.revision,
        x,
        offset,
        waited,
        contexts,
        event.attempt,
    )


def verified(
    event: Reward, *, offset: int, x: Vector | None = None, waited: bool = False
) -> Verified:
    """Return a verdict; see `Verified`."""
    assert event.verifier is not None  # the schema requires it
    assert event.verdict is not None
    return Verified(
        event.subject,
        event.verifier,
        event.verdict,
        event.attempt or 0,
        event.revision,
        x,
        offset,
        waited,
    )


def core_event(
    event: Bill | Reward,
    source: Message,
    contexts: Mapping[Ref, Vector | None],
    *,
    rank_of: Callable[[str], int],
) -> Event:
    """Return a bill or a reward as an event of the core.

    Args:
        source: the event's message, or its parked form.
        contexts: contexts that were read from the external store.
        rank_of: rank of a reward's source.
    """
    x = contexts.get((event.router_id, event.subject))
    waited = isinstance(source, Parked)
    if isinstance(event, Bill):
        return charged(event, offset=source.offset, x=x, waited=waited)
    of_session = {} if event.request_id else _of_router(contexts, event.router_id)
    return judged(
        event,
        0 if event.source is None else rank_of(event.source),
        offset=source.offset,
        x=x,
        waited=waited,
        contexts=of_session or None,
    )


def _of_router(contexts: Mapping[Ref, Vector | None], router_id: str) -> dict[str, Vector]:
    return {ref[1]: x for ref, x in contexts.items() if ref[0] == router_id and x is not None}


def seconds(milliseconds: float | None) -> float | None:
    """Convert a bill's milliseconds to seconds."""
    return None if milliseconds is None else milliseconds / 1e3
