"""Write times as they are on the wire."""

from __future__ import annotations

from datetime import UTC, datetime

FOREVER = datetime(9999, 1, 1, tzinfo=UTC).timestamp()
"""Latest time of a declaration; later ones are taken for it: programs that have no "never" write
the last moment of 9999, which a float rounds into the year 10000."""
EARLIEST = datetime(1, 1, 1, tzinfo=UTC).timestamp()
"""Earliest time that can be written: a declaration may name it."""


def utc(seconds: float) -> datetime:
    """Return seconds since the epoch as an aware time.

    Bounded, as a state may hold any time that a declaration named, and a clock may show anything.
    """
    return datetime.fromtimestamp(min(max(seconds, EARLIEST), FOREVER), UTC)
