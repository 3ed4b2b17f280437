"""Read and write JSON whose texts may hold half of a character, which orjson and msgspec refuse."""

from __future__ import annotations

import json
import re

import orjson

from ground.json_values import Json
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


def halves_of(raw: bytes) -> list[str] | None:
    """Return the fields of a JSON object with half of a character in them, by name; None for
    everything that holds none.
    """
    if not ESCAPED_HALF.search(raw):
        return None
    try:
        document = loads(raw)
        texts = {
            name: json.dumps({name: value}, ensure_ascii=False) for name, value in document.items()
        }
    except (AttributeError, RecursionError, ValueError):
        return None
    return [name for name, text in texts.items() if not is_valid(text)] or None


def whole(raw: bytes) -> bytes:
    """Return JSON with U+FFFD for each half of a character. Raises ValueError."""
    return mended(json.dumps(loads(raw), ensure_ascii=False)).encode()


def dumps(value: Json) -> bytes:
    """Write JSON; half of a character becomes its escape. Raises TypeError, ValueError."""
    try:
        return orjson.dumps(value)
    except orjson.JSONEncodeError:
        return json.dumps(value, allow_nan=False).encode()


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")
