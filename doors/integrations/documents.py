"""Split a payload into its documents. Senders write documents that strict JSON refuses: with half
of an emoji, NaN and infinities, numbers beyond 64 bits, or a byte order mark.

Only fields that are not used are read this leniently; ids and money are checked where they are
used. A byte that is not UTF-8 is harmless in a prompt, and refused in an id.
"""

from __future__ import annotations

import json
import re
from typing import NoReturn

from doors.integrations.payload_items import Item, Unconvertible
from ground.json_text import loads_leniently
from ground.json_values import Document, Json
from schemas import MalformedEvent, Reason

BOM = b"\xef\xbb\xbf"
"""A byte order mark in UTF-8, which Windows tools write before JSON."""
_SPACE = re.compile(r"\s*")
NOT_JSON = (ValueError, RecursionError)
"""Errors of reading a text that is not JSON."""


def documents_of(raw: bytes | None) -> list[Document | Item]:
    """Return the documents of a payload: one, an array of them, one a line, or one after the other.
    A value that is not an object becomes a refused item.

    Raises:
        MalformedEvent: nothing of it is JSON, or it is neither an object nor a list.
    """
    text = (raw or b"").removeprefix(BOM)
    try:
        found = loads_leniently(text)
    except NOT_JSON as error:
        lines = _lines(text)
        readable = sum(isinstance(one, dict) and bool(one) for one in lines)
        if readable < len(lines):
            lines = _one_after_the_other(text) or lines * bool(readable)
        # A document that was cut off is no list of lines; then the first error tells more.
        return lines or _refuse(error)
    documents = found if isinstance(found, list) else [found]
    if not isinstance(found, list | dict):
        raise MalformedEvent(
            Reason.MALFORMED_EVENT, "not an object, nor an array or lines of objects"
        )
    return [one if isinstance(one, dict) else _odd(one) for one in documents]


def _one_after_the_other(text: bytes) -> list[Document | Item]:
    """Return objects that follow each other, as `jq` and streams of deliveries write them; none if
    it is anything else."""
    found: list[Document | Item] = []
    rest, at = text.decode("utf-8", "surrogateescape").strip(), 0
    try:
        while at < len(rest):
            one, at = json.JSONDecoder().raw_decode(rest, at)
            if not isinstance(one, dict):
                return []
            found.append(one)
            at = _SPACE.match(rest, at).end()  # type: ignore[union-attr]  # it matches nothing, too
    except NOT_JSON:
        return []
    return found


def _lines(text: bytes) -> list[Document | Item]:
    """Return one document per line; a line without a document becomes a refused item."""
    found: list[Document | Item] = []
    for line in text.splitlines():
        if line.strip():
            try:
                one = loads_leniently(line)
            except NOT_JSON:
                one = None
            found.append(one if isinstance(one, dict) else _odd(line))
    return found


def _refuse(error: Exception) -> NoReturn:
    raise MalformedEvent(
        Reason.MALFORMED_JSON, f"neither JSON nor a line of JSON each: {error}"
    ) from None


def line_of(value: Json) -> bytes:
    """Write JSON as one line, half emojis and infinities included; bytes are returned unchanged."""
    return value if isinstance(value, bytes) else json.dumps(value).encode()


def _odd(value: Json) -> Item:
    def read() -> None:
        raise Unconvertible("is not a JSON object", Reason.MALFORMED_EVENT)

    return Item(lambda: value, (read,))
