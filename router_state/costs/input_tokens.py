"""Learn the length of prompts, the part of a call's cost that is known before it.

A request may say how many input tokens its call sends, or bring a prompt of which they are
counted. Their cost is the list price, or the share of it that bills show; only the rest is
predicted from the context (see `cost_model`). A request with neither counts with the mean length.
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
"""Name of the piece of state; there is none before a request has stated its tokens."""
IN_USE_FROM = 20
"""Requests that have stated their tokens from which expected costs count them apart."""
LONGEST = 10.0
"""Largest multiple of the mean length that a prompt counts for in it."""
NONE = np.zeros(WINDOW)
"""Tokens of the window's requests before any are counted apart, for all routers."""
NONE.flags.writeable = False


class _Kept(Struct):
    mean: float
    count: int
    slots: Annotated[list[float], Meta(min_length=WINDOW, max_length=WINDOW)]


class InputTokens:
    """The input tokens that requests have stated.

    Attributes:
        mean: mean tokens of a request; count: number of requests in it.
        in_use: whether expected costs count input tokens apart, as enough requests have said
            theirs.
        slots: tokens of the window's requests as used, shape (128,); 0 while they are not in use.
    """

    __slots__ = ("_journal", "count", "in_use", "mean", "slots")

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self.mean = 0.0
        self.count, self.in_use = 0, False
        self.slots: Vector = NONE

    def take(self, tokens: int | None) -> bool:
        """Take in a request's tokens; return whether input tokens come into use with it."""
        if tokens is not None:
            # Cut, as one very long prompt would make all others look short for a thousand requests.
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
        """Return the tokens that a request counts as having; 0 while they are not in use."""
        return 0.0 if not self.in_use else self.mean if tokens is None else float(tokens)

    def begin_window(self) -> None:
        """Count requests whose tokens nobody has placed yet with the mean length."""
        if self.in_use:
            self.slots = np.full(WINDOW, self.mean)
            self._journal.pieces.add(PIECE)

    def place(self, slot: int, tokens: float) -> None:
        """Store a request's tokens, as used, beside its context in the window."""
        self.slots[slot] = tokens

    def values(self) -> Json | None:
        """Return the state to be kept; None if there is none."""
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
