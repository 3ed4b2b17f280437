"""Write times as they are on the wire."""

from __future__ import annotations

from datetime import UTC, datetime

FOREVER = datetime(9999, 1, 1, tzinfo=UTC).timestamp()
"""Latest time of a declaration, which stands for all later ones. Programs without a "never" write
the last moment of 9999, which a float rounds into the year 10000.
"""
EARLIEST = datetime(1, 1, 1, tzinfo=UTC).timestamp()
"""Earliest time that can be written: a declaration may name it."""


def utc(seconds: float) -> datetime:
    """Return seconds since the epoch as an aware time.

    The time is clipped to what can be written: a declaration may name any time, and a clock may
    show any.
    """
    return datetime.fromtimestamp(min(max(seconds, EARLIEST), FOREVER), UTC)
