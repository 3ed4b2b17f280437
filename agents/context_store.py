"""The store in which contexts wait for their rewards if the durable table does not hold them in
memory.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from agents.refusal_kinds import EncoderUnavailable
from router_state.config import ProjectionRef, Vector

Ref = tuple[str, str]
"""router_id and request_id."""


DecidedAt = Callable[[Ref], float | None]
"""Time at which a request was decided, seconds since the epoch; None if it is forgotten.
"""


Decided = tuple[Ref, float, Vector]
"""A request, the time of its decision, and its context, shape (d,)."""

Prompt = tuple[str, ProjectionRef | int]
"""A text, and its router's projection, or the router's dimensions if it declares none."""

Encode = Callable[[list[Prompt]], Awaitable[Sequence[Vector | EncoderUnavailable]]]
"""Function that returns for each prompt its context, shape (d,), or the reason why there is
none.
"""


class Contexts(Protocol):
    """A store of contexts for a limited time. The changelog holds the contexts that the store
    refused or lost.
    """

    async def put(self, contexts: Sequence[Decided]) -> None:
        """Keep contexts of decisions."""

    async def get(self, refs: Sequence[Ref], decided_at: DecidedAt) -> list[Vector | None]:
        """Return the contexts of decided requests in the order of `refs`; None for a context that
        is gone.
        """
