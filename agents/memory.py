"""Bound what a worker remembers, in bytes: while there is room nothing is forgotten before its
time."""

from __future__ import annotations

import math

ALERT_ABOVE, CALM_BELOW = 0.8, 0.7
"""Parts of the limit: above the first one an alert is raised, once until it is below the second
one."""
AIM_AT = 0.95
"""Part of the limit that is left once it was passed, so that the next requests find room."""


class Memory:
    """The share of its limit that the durable table takes, as of the last look.

    Args:
        limit: bytes that it may take; None: no limit.
    """

    def __init__(self, limit: int | None) -> None:
        self._limit = math.inf if limit is None else limit
        self._size = 0
        self._alerted = False

    def look(self, size: int) -> bool:
        """Note how many bytes the table takes; tell whether that is a reason for an alert that was
        not raised yet."""
        self._size = size
        crossed = size > ALERT_ABOVE * self._limit and not self._alerted
        if crossed or size < CALM_BELOW * self._limit:
            self._alerted = crossed
        return crossed

    @property
    def part(self) -> float:
        """Return which part of the limit is taken."""
        return self._size / self._limit

    def keep(self, remembered: int) -> int:
        """Return how many of so many requests may stay; each router gives the same part of its
        own."""
        if self._size <= self._limit:
            return remembered
        return remembered - math.ceil(remembered * (1.0 - AIM_AT * self._limit / self._size))
