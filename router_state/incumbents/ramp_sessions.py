"""The evidence of a ramp that draws sessions: its unit is a session, not a request.

Requests of a session are alike, and all of them are answered by the same side. Their terms (see
`ramp_guard`) are added up, and the mean per request is a ratio of two sums over sessions: Σ term ÷
Σ labels. It is off as the mean of term − value·labels is (Cochran 1977, "Sampling Techniques",
2.11), see `studies.proof.difference`. A session counts from its first label on, with what is known
of it. Of a session that was forgotten, further labels count as those of another one.
"""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite

from msgspec import Struct

from router_state.changes import Journal
from router_state.drawers import Drawers
from router_state.incumbents.anytime import half_width
from router_state.incumbents.ramp_guard import LEAST_LABELS, MISSED_BY_A_STEP

PIECE = "\x1framped"
"""Prefix of the names of pieces that hold the sessions of a ramp's step."""


class Labelled(Struct):
    """A session of the present step: Σ of its terms, its labels, and the time of the last one."""

    term: float
    labels: int
    at: float


class Sums(Struct, array_like=True):
    """Sums over the sessions of a step.

    Attributes:
        incumbent, router: sessions of either side.
        squares, crossed, sizes: Σ term², Σ term·labels, Σ labels².
    """

    incumbent: int = 0
    router: int = 0
    squares: float = 0.0
    crossed: float = 0.0
    sizes: float = 0.0


class SessionEvidence:
    """The sessions of a step, and sums over them.

    Attributes:
        known: remembered sessions of the step, by their ids; further labels are added to their
            sums.
        sums: over all sessions of the step.
    """

    __slots__ = ("known", "sums")

    def __init__(self, journal: Journal) -> None:
        self.known, self.sums = Drawers(Labelled, PIECE, journal), Sums()

    def clear(self) -> None:
        """Begin another step."""
        self.known.clear()
        self.sums = Sums()

    def judged(self, session: str | None, term: float, *, routed: bool, at: float) -> None:
        """Add the term of a label to the sums; `session` None: its request has none."""
        one = None if session is None else self.known.find(session)
        sums, before = self.sums, one or Labelled(0.0, 0, at)
        after = Labelled(before.term + term, before.labels + 1, max(before.at, at))
        if one is None:
            sums.router, sums.incumbent = sums.router + routed, sums.incumbent + (not routed)
        sums.squares += after.term * after.term - before.term * before.term
        sums.crossed += after.term * after.labels - before.term * before.labels
        sums.sizes += float(after.labels**2 - before.labels**2)
        if session is not None:
            self.known.use(session, after)

    def interval(self, total: float, labels: int) -> tuple[float, float] | None:
        """Return the interval of the difference per request; None: there are too few sessions yet.

        Args:
            total: Σ of all terms; labels: how many there are.
        """
        sums = self.sums
        if min(sums.incumbent, sums.router) < LEAST_LABELS:
            return None
        n, value = sums.incumbent + sums.router, total / labels
        off = sums.squares - 2.0 * value * sums.crossed + value * value * sums.sizes
        half = half_width(n, off / (n - 1), missed=MISSED_BY_A_STEP) * n / labels
        return value - half, value + half

    def restore(self, sums: Sums, piece: Callable[[str], bytes]) -> None:
        """Restore the stored sessions and sums. Raises DamagedState."""
        self.sums = sums
        if sums.incumbent + sums.router:
            self.known.restore(piece)

    def is_sound(self) -> bool:
        """Tell whether its numbers can be true."""
        sums = self.sums
        finite = all(map(isfinite, (sums.squares, sums.crossed, sums.sizes)))
        labelled = all(one.labels > 0 for one in self.known)
        return (
            finite
            and labelled
            and min(sums.incumbent, sums.router) >= 0
            and (len(self.known) <= sums.incumbent + sums.router and self.known.are_sound())
        )
