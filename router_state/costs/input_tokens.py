"""Learn how long prompts are: so much of a call's cost is known before it.

A request may say how many input tokens its call sends, or bring a prompt of which they are
counted. Then a call costs their list price, or the share of it that bills show, and only what
comes on top is to be guessed from the context (see `cost_model`). A request with neither counts
as long as requests are on average.
"""

from __future__ import annotations

import numpy as np

from router_state.changes import Journal
from router_state.config import BELIEVED, MEMORY, WINDOW, Vector
from router_state.kernel import MOST_TAUGHT
from router_state.state.framing import Json

PIECE = "\x1finput"
"""The piece that holds it; there is none before a request has said its tokens."""

NONE = np.zeros(WINDOW)
"""Tokens of the window's requests before any are counted apart, for all routers."""
NONE.flags.writeable = False


class InputTokens:
    """Input tokens as requests have said them.

    Attributes:
        mean: tokens of a request; count: requests that it is of.
        in_use: whether expected costs count input tokens apart, as enough requests have said
            theirs.
        latest: tokens of the request that is being decided, as used.
        slots: the same of the window's requests, shape (128,).
    """

    __slots__ = ("_journal", "count", "in_use", "latest", "mean", "slots")

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self.mean = self.latest = 0.0
        self.count, self.in_use = 0, False
        self.slots: Vector = NONE

    @property
    def usual(self) -> float:
        """The tokens of a request that does not say; 0 while they are not in use."""
        return self.mean if self.in_use else 0.0

    def take(self, tokens: int | None) -> bool:
        """Take in what a request says; return whether they are in use from this one on."""
        if tokens is not None:
            # One book as a prompt would otherwise make all others look short for a thousand
            # requests.
            most = MOST_TAUGHT * self.mean if self.in_use else float(tokens)
            self.count += 1
            self.in_use = self.count >= BELIEVED
            self.mean += (min(float(tokens), most) - self.mean) / min(self.count, MEMORY)
        self._journal.pieces.add(PIECE)
        begins = tokens is not None and self.count == BELIEVED
        if begins:
            self.slots = np.full(WINDOW, self.mean)
        self.latest = self.of(tokens)
        return begins

    def of(self, tokens: int | None) -> float:
        """Return the tokens that a request counts as having; 0 while they are not in use."""
        return 0.0 if not self.in_use else self.mean if tokens is None else float(tokens)

    def place(self, slot: int) -> None:
        """Put those of the request that is being decided beside its context in the window."""
        self.slots[slot] = self.latest

    def values(self) -> dict[str, Json]:
        """Return what is kept of it."""
        return {"mean": self.mean, "count": self.count, "slots": self.slots.tolist()}

    def restore(self, values: Json) -> None:
        """Invert `values`."""
        slots = np.array(values["slots"], dtype=np.float64)
        if slots.shape != (WINDOW,) or not np.isfinite(slots).all():
            raise ValueError(f"tokens of {slots.shape} requests of a window")
        self.mean, self.count, self.slots = float(values["mean"]), int(values["count"]), slots
        self.in_use = self.count >= BELIEVED
