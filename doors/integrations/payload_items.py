"""A bill or a reward found in another system's payload, and how its values are read."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from ground.json_text import loads_leniently
from ground.json_values import Document, Json
from ground.same_model import is_same_model
from paretobandit_client.answering import names_itself
from schemas import Reason

Topic = Literal["costs", "rewards"]
EARLIEST, LATEST = datetime(2000, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)
"""The first time of a label, and the first that is too late: a number that means another time
is of another form."""
MOST_OF_NAME = 64
"""Most characters of a person's name in a source."""
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9._@-]")
COMPACT = {8: "%Y%m%d", 12: "%Y%m%d%H%M", 14: "%Y%m%d%H%M%S"}
"""Forms of a time of digits alone, by how many there are."""


class Unconvertible(Exception):
    """A payload, or an item of one, cannot be mapped; the message names fields, and quotes none of
    their values but names of scores.

    Attributes:
        score: name of the score that cannot be read; None: the item is not a score, or its score
            has no name.
    """

    retriable = False
    score: str | None = None

    def __init__(self, message: str, reason: Reason = Reason.INVALID_FIELD) -> None:
        super().__init__(message)
        self.reason = reason


class NothingHere(Unconvertible):
    """An item holds no bill and no label although it looks as if it should. It is passed over
    where other items of the payload hold some."""


class NotCovered(Unconvertible):
    """An item is of a router that its sender may not use."""


@dataclass(frozen=True, slots=True)
class Found:
    """An event that was found: its topic without the prefix, and its fields; None is left out.

    Attributes:
        attempt: which attempt of its request a bill is of; None: the request has one bill.
        score: name of a label's score; None: it has none.
        label_id: id of a label, so that another value is a correction; None: the label has none.
        notes: fields beside the money that were odd, and left out.
    """

    topic: Topic
    fields: dict[str, object]
    attempt: Hashable = None
    score: str | None = None
    label_id: str | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Item:
    """A part of a payload that is taken or refused by itself: a span, a score, a call.

    Attributes:
        alone: function that returns a payload of the same form with this item alone.
        reads: functions, each of which returns one event that the item holds, or None. Where one of
            them raises Unconvertible, the others still count.
    """

    alone: Callable[[], Json]
    reads: tuple[Callable[[], Found | None], ...] = ()


Finder = Callable[[Document, Mapping[str, str]], Iterable[Item]]
"""Finds the items of a document, whose transport had these headers. Raises Unconvertible if the
document has another form."""


@dataclass(frozen=True, slots=True)
class Defaults:
    """Values for what a payload leaves open: the router, and the source of its labels."""

    router_id: str
    source: str = "judge"


@contextmanager
def of_score(name: str | None) -> Iterator[None]:
    """Name, in the error, the score inside of which something cannot be read."""
    try:
        yield
    except Unconvertible as error:
        error.score = name
        raise


def number(value: Json, name: str) -> float:
    """Return a number, also one written as text. Raises Unconvertible for anything else, true and
    false included, and for what is not finite."""
    try:
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            raise TypeError
        found = float(value)
    except (TypeError, ValueError, OverflowError):
        raise Unconvertible(f"{name}: is not a number") from None
    if not math.isfinite(found):
        raise Unconvertible(f"{name}: is not finite", Reason.NON_FINITE)
    return found


def rfc3339(value: Json, name: str) -> str:
    """Return a time in the form of events, from RFC 3339 text, from digits of a date, or from
    seconds, milliseconds, microseconds or nanoseconds since the epoch.

    Raises:
        Unconvertible: it is not a time, or one before 2000 or after 2100.
    """
    try:
        at = _time(value)
    except (TypeError, ValueError, OverflowError, OSError):
        at = None
    at = at if at is None or at.tzinfo else at.replace(tzinfo=UTC)
    if at is None or not EARLIEST <= at < LATEST:
        raise Unconvertible(f"{name}: is not a time between 2000 and 2100")
    return at.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _time(value: Json) -> datetime:
    if isinstance(value, bool):
        raise TypeError
    digits = str(value).strip()
    if isinstance(value, str) and ("-" in digits or ":" in digits or "T" in digits):
        return datetime.fromisoformat(digits)
    # Eight digits are a date, not a day of 1970; no unit has 12 or 14 of them in this century.
    form = COMPACT.get(len(digits)) if digits.isdecimal() else None
    return _since_epoch(value) if form is None else datetime.strptime(digits, form)


def _since_epoch(value: Json) -> datetime:
    # Tools write seconds, milliseconds or nanoseconds without saying which.
    seconds = float(value)
    for _ in range(3):
        seconds /= 1e3 if seconds > 1e11 else 1.0  # until the year 5138 seconds are fewer
    return datetime.fromtimestamp(seconds, UTC)


def other_model(called: Json, answered: Json, *, provider: Json, host: Json) -> str | None:
    """Return the model that answered if another one was called, as far as the provider's answers
    name models.

    Args:
        host: where the provider was called; None: not known.
    """
    if not (isinstance(called, str) and isinstance(answered, str) and called and answered):
        return None
    if not names_itself(provider, host) or is_same_model(called, answered):
        return None
    return answered


def object_of(value: Json) -> Document:
    """Return an object, which some writers send as its text; an empty one for anything else."""
    if isinstance(value, str):
        try:
            value = loads_leniently(value)
        except ValueError:
            return {}
    return value if isinstance(value, dict) else {}


def person_of(annotator: Json) -> str | None:
    """Return the annotator, as a source names people; None: no annotator is named.

    Args:
        annotator: an id, a name, or a user with an e-mail address.

    >>> person_of({"id": 7, "email": "ada@acme.test"}), person_of("Ada Lovelace")
    ('ada@acme.test', 'Ada-Lovelace')
    """
    if isinstance(annotator, dict):
        annotator = annotator.get("email") or annotator.get("username") or annotator.get("id")
    return (
        None if annotator in (None, "") else _NOT_IN_NAMES.sub("-", str(annotator))[:MOST_OF_NAME]
    )


def either(record: Document, name: str) -> Json:
    """Return a field in either spelling: as protobuf's JSON writes it, `scopeSpans`, or as its
    source does, `scope_spans`."""
    if name in record:
        return record[name]
    return record.get("".join(f"_{one.lower()}" if one.isupper() else one for one in name))
