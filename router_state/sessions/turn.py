"""Define what the record of a request keeps of the session that the request belongs to."""

from __future__ import annotations

from msgspec import Struct

from router_state.cache_price import CachePrice
from router_state.record import RequestRecord

NAME = "caches"
"""Names prices of cached input in a router's declaration, and `Turn` in `Call.kept`."""


class Turn(Struct, gc=False, frozen=True, omit_defaults=True):
    """One request of a session.

    Attributes:
        before: the session's request before this one; None: this one is the first.
        warm: number of prompt tokens in each model's cache.
        cache: the decided model's price of cached input at the decision.
    """

    before: str | None = None
    warm: dict[str, int] = {}
    cache: CachePrice | None = None


ALONE = Turn()
"""A request without a session, by a model whose cached input has no price of its own."""


def turn_of(record: RequestRecord) -> Turn:
    """Return what a record keeps of its session. Raises DamagedState."""
    return record.kept_by(NAME, Turn) or ALONE
