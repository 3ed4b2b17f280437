"""Convert the bytes of another system's payload, in any known form, to checked events."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

import orjson

from doors.integrations import cloudevents, langfuse, litellm_log, otel
from doors.integrations.documents import documents_of, line_of
from doors.integrations.payload_items import (
    Defaults,
    Finder,
    Found,
    Item,
    NotCovered,
    NothingHere,
    Unconvertible,
)
from doors.integrations.remembered import Remembered
from ground.json_values import Document
from ground.texts import NOT_UNICODE, is_valid
from paretobandit_client.side_numbers import fitting
from schemas import CostReported, MalformedEvent, Reason, RewardObserved, decode

SCHEMAS: dict[str, type[CostReported] | type[RewardObserved]] = {
    "costs": CostReported,
    "rewards": RewardObserved,
}
"""Schema of the events that payloads become, by topic."""
IDS = {"request_id", "session_id"}
"""Fields that are texts, also where a sender counts."""
Refusal = Unconvertible | MalformedEvent
T = TypeVar("T")


def finder_of(form: str, defaults: Defaults) -> Finder:
    """Return the function that finds items in documents of a form."""
    if form == "cloudevents":
        return lambda document, headers: cloudevents.items_in(document, defaults, headers)
    items_in = {
        "otel": otel.items_in,
        "litellm": litellm_log.items_in,
        "langfuse": langfuse.items_in,
    }[form]
    return lambda document, headers: items_in(document, defaults)


@dataclass(frozen=True, slots=True)
class Taken:
    """An event, and the index of the payload's item that it was found in."""

    index: int
    topic: str
    event: CostReported | RewardObserved


@dataclass(frozen=True, slots=True)
class RefusedItem:
    """An item that was refused, the reason, and a line of JSON that holds the item; None: the item
    is nested too deep to be written again.
    """

    index: int
    error: Refusal
    line: bytes | None

    def as_json(self) -> Document:
        """Return the refusal as its sender gets it."""
        return {"index": self.index, "reason": self.error.reason.value, "detail": str(self.error)}


@dataclass(slots=True)
class Converted:
    """The outcome of a payload: events, refused items, items passed over as they are not wanted
    or hold nothing, and warnings."""

    raw: bytes
    taken: list[Taken] = field(default_factory=list)
    refused: list[RefusedItem] = field(default_factory=list)
    passed_over: int = 0
    warnings: list[str] = field(default_factory=list)

    @property
    def letter(self) -> bytes:
        """The refused items, a line each: a payload of the same form. Where no item was taken, it
        is the payload byte for byte.
        """
        lines = list(dict.fromkeys(one.line for one in self.refused))
        written = [line for line in lines if line is not None]
        return b"\n".join(written) if self.taken and written == lines else self.raw


def convert(
    raw: bytes | None,
    finder: Finder,
    *,
    headers: Mapping[str, str] | None = None,
    remembered: Remembered | None = None,
    scores: Collection[str] = (),
    may: Callable[[str], bool] = lambda router_id: True,
) -> Converted:
    """Return the events and refusals that the items of a payload become.

    The payload is one JSON document, an array of them, or one a line.

    Args:
        remembered: requests and scores of earlier payloads; None: this is the only payload.
        scores: names of the scores that become rewards; empty: the only score of the payload.
        may: tells whether the sender may use a router, which an item may name itself.

    Raises:
        MalformedEvent: it is not JSON at all, or holds no object.
    """
    known = Remembered() if remembered is None else remembered
    done = Converted(raw or b"")
    found, nothing = _read_all(_items(raw, finder, headers or {}), scores, done)
    # All names of scores are known before the first score counts.
    known.note_scores(one for _, _, one in found)
    for index, item, one in found:
        try:
            if one.topic == "rewards" and not known.wants(one, scores):
                done.passed_over += 1
            else:
                _take(index, one, known, done, may=may)
        except (Unconvertible, MalformedEvent) as error:
            done.refused.append(_refused(index, item, error))
    if not done.taken and not done.refused and not done.passed_over:
        done.refused = nothing
    else:
        done.passed_over += len(nothing)
    done.refused.sort(key=lambda one: one.index)
    return done


def _read_all(
    items: Iterator[Item], scores: Collection[str], done: Converted
) -> tuple[list[tuple[int, Item, Found]], list[RefusedItem]]:
    """Return what items hold, with their indices, and the items that hold nothing although they
    look as if they should; add what cannot be read to what was refused."""
    found: list[tuple[int, Item, Found]] = []
    nothing: list[RefusedItem] = []
    for index, item in enumerate(items):
        for read in item.reads:
            try:
                one = _guarded(read)
            except NothingHere as error:
                nothing.append(_refused(index, item, error))
            except Unconvertible as error:
                # A score that was not chosen need not be readable.
                if scores and error.score is not None and error.score not in scores:
                    done.passed_over += 1
                else:
                    done.refused.append(_refused(index, item, error))
            else:
                if one is not None:
                    found.append((index, item, one))
    return found, nothing


def _items(raw: bytes | None, finder: Finder, headers: Mapping[str, str]) -> Iterator[Item]:
    """Yield the items of all documents; a document of another form is an item that is refused."""
    for document in documents_of(raw):
        if isinstance(document, Item):
            yield document
            continue
        try:
            yield from _guarded(partial(_all_of, finder, document, headers))
        except Unconvertible as error:
            yield Item(partial(_same, document), (_raising(error),))


def _all_of(finder: Finder, document: Document, headers: Mapping[str, str]) -> list[Item]:
    return list(finder(document, headers))


def _same(document: Document) -> Document:
    return document


def _guarded(read: Callable[[], T]) -> T:
    """Return what a reader finds. It expects an item of the right form: of any other error only the
    type is reported, as its text may quote a prompt."""
    try:
        return read()
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise Unconvertible(f"the document has another form ({type(error).__name__})") from None


def _raising(error: Unconvertible) -> Callable[[], None]:
    def read() -> None:
        raise error

    return read


def _refused(index: int, item: Item, error: Refusal) -> RefusedItem:
    try:
        line = line_of(item.alone())
    except RecursionError:
        line = None
    return RefusedItem(index, error, line)


def _take(
    index: int, one: Found, known: Remembered, done: Converted, *, may: Callable[[str], bool]
) -> None:
    """Add the event of an item to the taken events. Raises Unconvertible, MalformedEvent."""
    notes = list(one.notes)
    schema = SCHEMAS[one.topic]
    # Others are ignored as on the wire, whatever they hold.
    told = one.fields.keys() & schema.model_fields.keys()
    fields = {name: one.fields[name] for name in told if one.fields[name] is not None}
    for name in IDS & fields.keys():
        if type(fields[name]) is int:
            fields[name] = str(fields[name])
    if one.topic == "costs":
        fields, odd = fitting(fields)
        notes += odd
    event = decode(schema, _dumps(fields))
    # Refused items are not remembered.
    if not may(event.router_id):
        raise NotCovered("router_id: the key does not cover this router")
    revised = known.revised(one, fields)
    if revised != fields:
        event = decode(schema, _dumps(revised))
    done.taken.append(Taken(index, one.topic, event))
    done.warnings += [f"item {index}: {note}" for note in notes]


def _dumps(fields: Mapping[str, object]) -> bytes:
    for name, value in fields.items():
        if isinstance(value, str) and not is_valid(value):
            raise Unconvertible(f"{name}: {NOT_UNICODE}")
        # orjson would write null for it, which reads as if nothing had been said.
        if isinstance(value, float) and not math.isfinite(value):
            raise Unconvertible(f"{name}: is not finite", Reason.NON_FINITE)
    try:
        return orjson.dumps({name: one for name, one in fields.items() if one is not None})
    except orjson.JSONEncodeError:
        raise Unconvertible("a field is not JSON") from None
