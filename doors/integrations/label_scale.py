"""Turn people's labels in labelling tools into rewards."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import NamedTuple

from doors.integrations.label_tools import Given
from doors.integrations.payload_items import Unconvertible

WORDS = {
    "👍": 1.0,
    "good": 1.0,
    "up": 1.0,
    "yes": 1.0,
    "true": 1.0,
    "correct": 1.0,
    "👎": 0.0,
    "bad": 0.0,
    "down": 0.0,
    "no": 0.0,
    "false": 0.0,
    "incorrect": 0.0,
}
"""Rewards of words, in lower case."""
CANNOT = frozenset({"can't tell", "cant tell", "cant-tell", "cant_tell", "unsure", "skip", "?"})
"""Words of people who can't tell."""


class Scale(NamedTuple):
    """The lowest and the highest number that people may give."""

    low: float
    high: float

    def reward(self, value: float) -> float:
        """Return the reward of a number. Raises Unconvertible."""
        if not (math.isfinite(value) and self.low <= value <= self.high):
            raise Unconvertible(
                f"{value:g} is not on the scale from {self.low:g} to {self.high:g}: say which one "
                "it is, for example --scale 0:10"
            )
        return (value - self.low) / (self.high - self.low)


def reward_of(given: Given, scale: Scale) -> float | None:
    """Return a person's reward; None: the person can't tell. Raises Unconvertible."""
    value = given.value
    if isinstance(value, str):
        word = value.strip().casefold()
        if word in CANNOT:
            return None
        if word in WORDS:
            return WORDS[word]
        try:
            value = float(word)
        except ValueError:
            raise Unconvertible(
                f"{value!r} is not a label: a number, or one of {', '.join(WORDS)}, can't tell"
            ) from None
    if value is None:
        return None
    if isinstance(value, list | dict):
        raise Unconvertible("has several answers where one number or word is wanted")
    return (Scale(0.0, 1.0) if given.whole else scale).reward(float(value))


def chosen(given: list[Given], question: str | None) -> list[Given]:
    """Return the answers to one question, and the people who can't tell.

    Raises:
        Unconvertible: there are several questions and none is named, or the named one is missing.
    """
    names = sorted({one.question for one in given if one.question is not None})
    if question is None and len(names) > 1:
        raise Unconvertible(
            f"people were asked {', '.join(names)}: say with --question which one is the reward"
        )
    if question is not None and names and question not in names:
        raise Unconvertible(f"nobody was asked {question!r}: there are {', '.join(names)}")
    return [one for one in given if one.question in (None, question or one.question)]


def last_labels(given: Iterable[Given], source_of: Callable[[Given], str]) -> list[Given]:
    """Return the last label of each source and request: the latest by date or, without dates, the
    last one in the file."""
    found: dict[tuple[str, str], Given] = {}
    for one in given:
        key = one.request_id, source_of(one)
        before = found.get(key)
        if before is None or not _is_earlier(one, before):
            found[key] = one
    return list(found.values())


def _is_earlier(one: Given, other: Given) -> bool:
    first, second = _moment(one.at), _moment(other.at)
    return first is not None and second is not None and first < second


def _moment(at: str | None) -> datetime | None:
    """Return a date of a file; one without a zone is in UTC. None: it is no date."""
    try:
        found = datetime.fromisoformat(at) if isinstance(at, str) else None
    except ValueError:
        return None
    return found if found is None or found.tzinfo is not None else found.replace(tzinfo=UTC)
