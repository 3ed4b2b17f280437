"""Learn the length of prompts, the part of a call's cost that is known before it.

A request may state the number of its input tokens, or bring a prompt whose tokens are counted.
Input tokens cost the list price, or the share of the list price that bills show. Only the rest of
a call's cost is predicted from the context (see `cost_model`). A request with neither a number nor
a prompt counts as one of mean length.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np
from msgspec import Meta, Struct

from router_state.changes import Journal
from router_state.config import Vector
from router_state.kernel import MEMORY, WINDOW
from router_state.packing.framing import Json, decoded

PIECE = "\x1finput"
"""Name of the piece of state, which exists once a request has stated its tokens."""
IN_USE_FROM = 20
"""Number of requests that have stated their tokens, from which on input tokens are priced
apart.
"""
LONGEST = 10.0
"""Largest multiple of the mean length with which a prompt enters that mean."""
NONE = np.zeros(WINDOW)
"""Tokens of the window's requests while none are priced apart; all routers share this array."""
NONE.flags.writeable = False


class _Kept(Struct):
    mean: float
    count: int
    slots: Annotated[list[float], Meta(min_length=WINDOW, max_length=WINDOW)]


class InputTokens:
    """The input tokens that requests have stated.

    Attributes:
        mean: mean number of tokens of a request; count: number of requests in the mean.
        in_use: whether input tokens are priced apart, as enough requests have stated theirs.
        slots: tokens of the window's requests that are priced apart, shape (128,); 0 while not
            `in_use`.
    """

    __slots__ = ("_journal", "count", "in_use", "mean", "slots")

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self.mean = 0.0
        self.count, self.in_use = 0, False
        self.slots: Vector = NONE

    def take(self, tokens: int | None) -> bool:
        """Add a request's tokens to the mean. Return True for the one request with which input
        tokens begin to be priced apart.
        """
        if tokens is not None:
            # The number is cut: one very long prompt would make all others look short for a
            # thousand requests.
            most = LONGEST * self.mean if self.in_use else float(tokens)
            self.count += 1
            self.in_use = self.count >= IN_USE_FROM
            self.mean += (min(float(tokens), most) - self.mean) / min(self.count, MEMORY)
        self._journal.pieces.add(PIECE)
        begins = tokens is not None and self.count == IN_USE_FROM
        if begins:
            self.begin_window()
        return begins

    def of(self, tokens: int | None) -> float:
        """Return the length by which a request is priced: its own tokens, or the mean if they are
        not stated. 0 while `in_use` is false.
        """
        return 0.0 if not self.in_use else self.mean if tokens is None else float(tokens)

    def begin_window(self) -> None:
        """Set the tokens of every slot to the mean length, until `place` sets them."""
        if self.in_use:
            self.slots = np.full(WINDOW, self.mean)
            self._journal.pieces.add(PIECE)

    def place(self, slot: int, tokens: float) -> None:
        """Store, for a slot of the window, its request's tokens that have a price of their own."""
        self.slots[slot] = tokens

    def values(self) -> Json | None:
        """Return the state to be stored; None if there is none."""
        if not self.count:
            return None
        return {"mean": self.mean, "count": self.count, "slots": self.slots.tolist()}

    def restore(self, body: bytes) -> None:
        """Invert `values`, as JSON. Raises DamagedState."""
        kept = decoded(body, _Kept, "input")
        slots = np.array(kept.slots)
        self.mean, self.count = kept.mean, kept.count
        self.in_use = self.count >= IN_USE_FROM
        self.slots = slots if self.in_use else NONE
