"""Expected savings from providers' caches, which hold the part of a prompt that a model has just
seen.

A call of n input tokens, h of which its provider's cache holds, costs p·((n − h)·w + h·r). Here p
is the list price, w the factor for tokens written to the cache, and r that for tokens read from
it. This module counts a prompt as the tokens at list price that cost the same; the rest is saved.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from router_state.changes import Journal
from router_state.packing.framing import Json, decoded

PIECE = "\x1fcaching"
"""Name of the piece of state, which exists once a request has named its session."""
FIRST_HIT, HITS = 0.9, 10.0
"""First guess of the probability that a warm prefix is billed as cached, and the number of bills
that the guess counts for.
"""
HIT_MEMORY = 500.0
"""Effective number of bills behind a probability."""


class _Kept(Struct):
    hits: dict[str, tuple[float, float]]
    slots: list[tuple[int, dict[str, float]]]


class Caching:
    """The caches of models, learned from bills and sessions.

    Attributes:
        hits: per model the share of warm prefixes that were billed as cached, and the number of
            bills behind it.
        slots: by slot of the window, the tokens that a request's session saves, per model.
    """

    __slots__ = ("_journal", "hits", "slots")

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self.hits: dict[str, tuple[float, float]] = {}
        self.slots: dict[int, Mapping[str, float]] = {}

    def chance(self, model: str) -> float:
        """Return the chance that a warm prefix of a model is billed as cached."""
        return self.hits.get(model, (FIRST_HIT, HITS))[0]

    def learn(self, model: str, share: float) -> None:
        """Learn the share of a warm prefix that was billed as cached."""
        mean, count = self.hits.get(model, (FIRST_HIT, HITS))
        count = min(count + 1.0, HIT_MEMORY)
        self.hits[model] = mean + (min(share, 1.0) - mean) / count, count
        self._journal.pieces.add(PIECE)

    def place(self, slot: int, saves: Mapping[str, float] | None) -> None:
        """Store, for a slot of the window, the tokens that its request saves; None: the request
        names no session.
        """
        if saves is not None:
            self.slots[slot] = saves
        elif self.slots.pop(slot, None) is None:
            return
        self._journal.pieces.add(PIECE)

    def begin_window(self) -> None:
        """Forget the savings of the old window's requests."""
        if self.slots:
            self.slots = {}
            self._journal.pieces.add(PIECE)

    def clear(self) -> None:
        """Forget everything learned, as no model has a price of cached input any more."""
        if self.values() is not None:
            self.hits, self.slots = {}, {}
            self._journal.pieces.add(PIECE)

    def values(self) -> Json | None:
        """Return the state to be stored; None if there is none."""
        if not (self.slots or self.hits):
            return None
        return {
            "hits": self.hits,
            "slots": [[slot, dict(saved)] for slot, saved in self.slots.items()],
        }

    def restore(self, body: bytes) -> None:
        """Restore the state from the JSON of `values`. Raises DamagedState."""
        kept = decoded(body, _Kept, "caching")
        self.hits, self.slots = kept.hits, dict(kept.slots)
