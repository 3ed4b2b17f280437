"""Find the begin and end of a period: hours, days, weeks and months in a time zone, or two
dates."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from typing import Literal
from zoneinfo import ZoneInfo

from router_state.errors import InvalidConfig

Per = Literal["hour", "day", "week", "month"]
HOUR = 3600.0
"""Seconds of an hour."""
LATEST = datetime(9000, 1, 1, tzinfo=UTC).timestamp()
"""Latest time of the calendar; later times come from a wrong clock and count as this one."""
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MONDAY = datetime(1970, 1, 5)
"""A Monday at midnight, from which weeks and other periods are counted."""
FIRST_OF_MONTH = datetime(1970, 1, 1)
GUESSED_WITHIN = 3
"""Number of periods on either side of the first guess that are tried; the zone's offset moves the
guess by one.
"""


@lru_cache(maxsize=256)
def zone_of(name: str) -> tzinfo:
    """Return a time zone by its IANA name.

    Raises:
        InvalidConfig: this machine does not know the name.
    """
    if name == "UTC":
        return UTC
    try:
        return ZoneInfo(name)
    # The name is not that of a file, or not a path at all.
    except (KeyError, ValueError, OSError):
        raise InvalidConfig(
            f"time zone {name!r} is not known here: an IANA name, for example Europe/Berlin"
        ) from None


def bounded(at: float) -> float:
    """Return a time, seconds since the epoch, within the calendar."""
    return min(max(at, 0.0), LATEST)


def local(at: float, zone: str) -> datetime:
    """Return the wall clock's time in a zone, as a time without a zone."""
    moment = EPOCH + timedelta(seconds=bounded(at))
    return moment.astimezone(zone_of(zone)).replace(tzinfo=None)


def utc_offset(at: float, zone: str) -> float:
    """Return the seconds by which the wall clock is ahead of UTC."""
    moment = (EPOCH + timedelta(seconds=bounded(at))).astimezone(zone_of(zone))
    offset = moment.utcoffset()
    return 0.0 if offset is None else offset.total_seconds()


def period_at(at: float, *, per: Per, zone: str, starts: float | None) -> tuple[float, float]:
    """Return begin and end of the period that contains a time, in seconds since the epoch.

    Days, weeks and months follow the wall clock, so a day may have 23 or 25 hours. A month that is
    too short for a day of the month uses its last day. Hours have 3,600 seconds.

    Args:
        starts: begin of any period; None: periods begin at midnight, on Mondays, on the first of
            the month.
    """
    at = bounded(at)
    if per == "hour":
        first = 0.0 if starts is None else starts
        begin = first + (at - first) // HOUR * HOUR
        # Rounding in the division may give a neighbouring period.
        begin += HOUR if at >= begin + HOUR else -HOUR if at < begin else 0.0
        return begin, begin + HOUR
    if starts is not None:
        anchor = local(starts, zone)
    else:
        anchor = FIRST_OF_MONTH if per == "month" else MONDAY
    guess = _guess(local(at, zone), anchor, per)
    for k in range(guess - GUESSED_WITHIN, guess + GUESSED_WITHIN + 1):
        end = _epoch(_boundary(anchor, per, k + 1), zone)
        if at < end:
            return _epoch(_boundary(anchor, per, k), zone), end
    raise AssertionError("a period is not near its guess")


def _guess(now: datetime, anchor: datetime, per: Per) -> int:
    if per == "month":
        return (now.year - anchor.year) * 12 + now.month - anchor.month
    return (now - anchor).days // (7 if per == "week" else 1)


def _boundary(anchor: datetime, per: Per, k: int) -> datetime:
    """Return the wall clock's time at which the k-th period after the anchor begins."""
    if per != "month":
        return anchor + timedelta(days=k * (7 if per == "week" else 1))
    months = anchor.year * 12 + anchor.month - 1 + k
    first = anchor.replace(year=months // 12, month=months % 12 + 1, day=1)
    return first + timedelta(days=min(anchor.day, _days(first)) - 1)


def _days(first: datetime) -> int:
    """Return the number of days of the month that begins at `first`."""
    following = (first + timedelta(days=31)).replace(day=1)
    return (following - first).days


def _epoch(wall: datetime, zone: str) -> float:
    """Return a wall clock's time in seconds since the epoch.

    A time that the wall clock shows twice means the first of both; a skipped time means the moment
    of the skip, or one after it.
    """
    return wall.replace(tzinfo=zone_of(zone)).timestamp()
