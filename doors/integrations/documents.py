"""Split a payload into its documents, and read what strict JSON refuses but senders write: half of
an emoji, NaN and infinities, numbers beyond 64 bits, a byte order mark.

What is read so leniently is what nobody looks at; ids and money are checked where they are used.
"""

from __future__ import annotations

import json

import orjson

from doors.integrations.found import Item, Unconvertible
from ground.json_values import Document, Json
from schemas import MalformedEvent, Reason

BOM = b"\xef\xbb\xbf"
"""A byte order mark in UTF-8, which Windows tools write before JSON."""
NOT_JSON = (ValueError, RecursionError)
"""Errors of reading a text that is not JSON."""


def documents_of(raw: bytes | None) -> list[Document | Item]:
    """Return the documents of a payload: one, an array of them, or one a line. In the place of what
    is no object stands an item that is refused.

    Raises:
        MalformedEvent: nothing of it is JSON, or it is neither an object nor a list.
    """
    text = (raw or b"").removeprefix(BOM)
    try:
        found = _loads(text)
    except NOT_JSON as error:
        return _lines(text, error)
    documents = found if isinstance(found, list) else [found]
    if not isinstance(found, list | dict):
        raise MalformedEvent(
            Reason.MALFORMED_EVENT, "not an object, nor an array or lines of objects"
        )
    return [one if isinstance(one, dict) else _odd(one) for one in documents]


def _lines(text: bytes, error: Exception) -> list[Document | Item]:
    found: list[Document | Item] = []
    for line in text.splitlines():
        if line.strip():
            try:
                one = _loads(line)
            except NOT_JSON:
                one = None
            found.append(one if isinstance(one, dict) else _odd(line))
    # A document that was cut off is no list of lines; then the first error tells more.
    if not any(isinstance(one, dict) for one in found):
        raise MalformedEvent(
            Reason.MALFORMED_JSON, f"neither JSON nor a line of JSON each: {error}"
        ) from None
    return found


def line_of(value: Json) -> bytes:
    """Write JSON in one line, half emojis and infinities as they came; bytes are a line already."""
    return value if isinstance(value, bytes) else json.dumps(value).encode()


def _loads(text: bytes) -> Json:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        # A byte that is no UTF-8 becomes half of a character: harmless in a prompt, refused in an
        # id.
        return json.loads(text.decode("utf-8", "surrogateescape"))


def _odd(value: Json) -> Item:
    def read() -> None:
        raise Unconvertible("is not a JSON object", Reason.MALFORMED_EVENT)

    return Item(lambda: value, (read,))
