"""Bound the bytes of a worker's remembered requests; within the bound nothing is forgotten
early.
"""

from __future__ import annotations

import math

ALERT_ABOVE, CALM_BELOW = 0.8, 0.7
"""Parts of the limit. Above the first an alert is raised; a further alert needs a fall below the
second first.
"""
AIM_AT = 0.95
"""Part of the limit to which memory is reduced once it was exceeded."""


class Memory:
    """The bytes of the durable table as a share of their limit, when last measured.

    Args:
        limit: most bytes of the table; None: no limit.
    """

    def __init__(self, limit: int | None) -> None:
        self._limit = math.inf if limit is None else limit
        self._size = 0
        self._alerted = False

    def look(self, size: int) -> bool:
        """Note the bytes that the table takes; return whether an alert must be raised."""
        self._size = size
        crossed = size > ALERT_ABOVE * self._limit and not self._alerted
        if crossed or size < CALM_BELOW * self._limit:
            self._alerted = crossed
        return crossed

    @property
    def part(self) -> float:
        """Return the bytes taken as a part of the limit."""
        return self._size / self._limit

    def keep(self, remembered: int) -> int:
        """Return the number of a router's requests that may stay; every router forgets the same
        share.
        """
        if self._size <= self._limit:
            return remembered
        return remembered - math.ceil(remembered * (1.0 - AIM_AT * self._limit / self._size))
