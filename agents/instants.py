"""Write times as they are on the wire."""

from __future__ import annotations

from datetime import UTC, datetime

from router_state.periods.calendar import FOREVER

EARLIEST = datetime(1, 1, 1, tzinfo=UTC).timestamp()
"""Earliest time that can be written: a declaration may name it."""


def utc(seconds: float) -> datetime:
    """Return seconds since the epoch as an aware time.

    Bounded, as a state may hold any time that a declaration named, and a clock may show anything.
    """
    return datetime.fromtimestamp(min(max(seconds, EARLIEST), FOREVER), UTC)
