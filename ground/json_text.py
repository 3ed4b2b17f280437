"""Read and write JSON whose texts may hold half of a character, which orjson and msgspec refuse."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import NoReturn

import orjson

from ground.json_values import Document, Json
from ground.texts import is_valid, mended

ESCAPED_HALF = re.compile(rb"\\u[dD][89a-fA-F]")
"""Pattern of what may be half of a character in JSON; whole ones are written so as well."""


def loads(raw: bytes) -> Json:
    """Read strict JSON in which texts may hold half of a character. Raises ValueError."""
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError:
        if not ESCAPED_HALF.search(raw):
            raise
    return _slowly(raw.decode(), parse_constant=_refuse)


def loads_leniently(text: str | bytes) -> Json:
    """Read JSON as senders write it: also halves of characters, NaN and infinities, and numbers
    beyond 64 bits. A byte that is not UTF-8 becomes half of a character. Raises ValueError.

    >>> loads_leniently(b'{"at": Infinity}')
    {'at': inf}
    """
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return _slowly(
            text if isinstance(text, str) else text.decode("utf-8", "surrogateescape"),
            parse_constant=None,
        )


def halved(raw: bytes) -> tuple[Document, bytes] | None:
    """Return a JSON object in which texts hold halves of characters, and its text with U+FFFD in
    place of each; None for everything else.
    """
    if not ESCAPED_HALF.search(raw):
        return None
    try:
        document = loads(raw)
        text = json.dumps(document, ensure_ascii=False)
    except (RecursionError, ValueError):
        return None
    if not isinstance(document, dict) or is_valid(text):
        return None
    return document, mended(text).encode()


def is_whole(value: Json) -> bool:
    """Tell whether no text of a JSON value holds half of a character."""
    return is_valid(json.dumps(value, ensure_ascii=False))


def dumps(value: Json) -> bytes:
    """Write JSON; half of a character becomes its escape. Raises TypeError, ValueError."""
    try:
        return orjson.dumps(value)
    except orjson.JSONEncodeError:
        return json.dumps(value, allow_nan=False).encode()


def _slowly(text: str, *, parse_constant: Callable[[str], NoReturn] | None) -> Json:
    try:
        return json.loads(text, parse_constant=parse_constant)
    except RecursionError:
        raise ValueError("is nested too deep") from None


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")
