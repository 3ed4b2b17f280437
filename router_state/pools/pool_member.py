"""A member as its pool knows it."""

from __future__ import annotations

from msgspec import Struct

from router_state.packing.framing import Whole

MOST_MEMBERS = 5_000
"""Most members of a pool: sharing one period of a budget among this many takes 0.35 s."""
MOST_COUNTED = 2**52
"""Highest number of a grant in a report of an unknown member: numbers after it are still exact in
every JSON reader.
"""
MOST_NUMBER = 2**53 - 1
"""Highest number of a grant; a member that has it gets no further grants."""


class Member(Struct, array_like=True):
    """The pool's knowledge of one member.

    Attributes:
        born: the membership's number; moves: counter of changes in the last report.
        n: number of the last set of grants; taken: number of the last set that the member
            confirmed.
        reported_at: time of the last report, seconds since the epoch.
        left: whether the member has left the pool.
    """

    born: Whole
    moves: Whole = -1
    n: Whole = 0
    taken: Whole = 0
    reported_at: float = 0.0
    left: bool = False
