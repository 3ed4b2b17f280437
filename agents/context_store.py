"""The store in which contexts wait for their rewards when the durable table does not keep them in
memory.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from agents.refusals import EncoderUnavailable
from router_state.config import ProjectionRef, Vector

Ref = tuple[str, str]
"""router_id and request_id."""


DecidedAt = Callable[[Ref], float | None]
"""Time at which a request was decided, seconds since the epoch; None where it is not known any
more.
"""


Prompt = tuple[str, ProjectionRef | int]
"""A text, and the projection that its router has of its own, or how many dimensions a router has
that has none."""

Encode = Callable[[list[Prompt]], Awaitable[Sequence[Vector | EncoderUnavailable]]]
"""Turns prompts into contexts, each of shape (d,), or says of one why it has none."""


class Contexts(Protocol):
    """Keep contexts for a limited time; what the store does not take or has lost is on the
    changelog."""

    async def put(self, contexts: Sequence[tuple[Ref, Vector]]) -> None:
        """Keep contexts, each of shape (d,)."""

    async def get(self, refs: Sequence[Ref], decided_at: DecidedAt) -> list[Vector | None]:
        """Return contexts of decided requests in the order asked for, None where one is gone."""
