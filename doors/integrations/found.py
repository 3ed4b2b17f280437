"""A bill or a reward found in another system's payload, and how its values are read."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from ground.json_values import Json
from schemas import Reason

Topic = Literal["costs", "rewards"]


class Unconvertible(Exception):
    """A payload cannot be mapped; the message names fields, and quotes none of their values."""

    retriable = False

    def __init__(self, message: str, reason: Reason = Reason.INVALID_FIELD) -> None:
        super().__init__(message)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Found:
    """An event that was found: its topic without the prefix, and its fields; None is left out."""

    topic: Topic
    fields: dict[str, object]


@dataclass(frozen=True, slots=True)
class Defaults:
    """Values for what a payload leaves open: the router, and the source of its labels."""

    router_id: str
    source: str = "judge"


def status_of(error: str) -> str:
    """Return the status of a failed call, from the name or the code of its error."""
    name = error.lower()
    if "ratelimit" in name.replace("_", "") or "429" in name:
        return "rate_limited"
    if "timeout" in name.replace("_", "") or name in ("408", "504"):
        return "timeout"
    if "contentpolicy" in name.replace("_", "") or "content_filter" in name:
        return "refused"
    return "cancelled" if "cancel" in name else "error"


def number(value: Json, name: str) -> float:
    """Return a number. Raises Unconvertible for anything else, true and false included."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Unconvertible(f"{name}: is not a number")
    return float(value)


def rfc3339(value: Json, name: str) -> str:
    """Return a time in the form of events, from RFC 3339 text or from seconds, milliseconds or
    nanoseconds since the epoch.

    Raises:
        Unconvertible: it is not a time.
    """
    try:
        if isinstance(value, str) and not value.isdigit():
            at = datetime.fromisoformat(value)
        else:
            # Tools write seconds, milliseconds or nanoseconds without saying which.
            seconds = float(value)
            while seconds > 1e11:  # until the year 5138 seconds are fewer
                seconds /= 1e3
            at = datetime.fromtimestamp(seconds, UTC)
        return (
            (at if at.tzinfo else at.replace(tzinfo=UTC))
            .astimezone(UTC)
            .isoformat()
            .replace("+00:00", "Z")
        )
    except (TypeError, ValueError, OverflowError, OSError):
        raise Unconvertible(f"{name}: is not a time") from None
