"""Where contexts wait for their rewards when the durable table does not keep them in memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from router_state.config import Vector

Ref = tuple[str, str]
"""router_id and request_id."""


class Contexts(Protocol):
    """Keep contexts for a limited time. Both calls retry in order while the store is away, and raise when it stays away."""

    async def put(self, contexts: Sequence[tuple[Ref, Vector]]) -> None:
        """Keep contexts, each of shape (d,)."""

    async def get(self, refs: Sequence[Ref]) -> list[Vector | None]:
        """Return contexts in the order asked for, None where one is gone."""
