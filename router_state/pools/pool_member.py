"""A member as its pool knows it."""

from __future__ import annotations

from msgspec import Struct

from router_state.packing.framing import Whole

MOST_MEMBERS = 5_000
"""Most members of a pool: sharing a budget between them takes 0.35 s for each of its periods."""
MOST_COUNTED = 2**52
"""Highest number of a grant that a report of an unknown member may name: the numbers after it are
still exact in every JSON reader."""
MOST_NUMBER = 2**53 - 1
"""Highest number of a grant; who has it gets none any more."""


class Member(Struct, array_like=True):
    """One member, as far as its pool knows it.

    Attributes:
        born: the membership's number; moves: of its last report.
        n: number of the last grant; taken: of the last one that it confirmed.
        said_at: when it said something last, seconds since the epoch.
        left: whether it is none any more.
    """

    born: Whole
    moves: Whole = -1
    n: Whole = 0
    taken: Whole = 0
    said_at: float = 0.0
    left: bool = False
