"""Bound the bytes that a worker remembers; within the bound nothing is forgotten early."""

from __future__ import annotations

import math

ALERT_ABOVE, CALM_BELOW = 0.8, 0.7
"""Parts of the limit: above the first an alert is raised, and again only after falling below the
second."""
AIM_AT = 0.95
"""Part of the limit to which memory is reduced once it was exceeded."""


class Memory:
    """The memory of the durable table as a part of its limit, at the last look.

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
        """Return how many of a router's requests may stay; every router gives up the same part."""
        if self._size <= self._limit:
            return remembered
        return remembered - math.ceil(remembered * (1.0 - AIM_AT * self._limit / self._size))
