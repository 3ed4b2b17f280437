"""Read and write JSON whose texts may hold half of a character, which orjson and msgspec refuse."""

from __future__ import annotations

import json
import re

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
    try:
        return json.loads(raw.decode(), parse_constant=_refuse)
    except RecursionError:
        raise ValueError("is nested too deep") from None


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


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")
