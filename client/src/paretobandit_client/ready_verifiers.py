"""Verifiers of texts that are ready to use. Any callable that takes an answer is one, too; none of
these calls a model.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from importlib import import_module

import msgspec

Looks = Callable[[str], bool]


def non_empty(answer: str) -> bool:
    """Tell whether an answer has more than white space.

    >>> non_empty("No."), non_empty(" ")
    (True, False)
    """
    return bool(answer.strip())


def is_json(answer: str) -> bool:
    """Tell whether an answer is JSON, and nothing else: neither a fence around it nor NaN.

    >>> is_json('{"a": 1}'), is_json("Here it is: {}")
    (True, False)
    """
    try:
        msgspec.json.decode(answer)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return False
    return True


def matches(pattern: str, flags: int = 0) -> Looks:
    """Return a verifier that searches for a regular expression; `^` and `$` bind it to the whole
    answer.

    >>> matches(r"^\\d+$")("42"), matches(r"^\\d+$")("about 42")
    (True, False)
    """
    found = re.compile(pattern, flags)
    return lambda answer: found.search(answer) is not None


def json_schema(schema: Mapping[str, object]) -> Looks:
    """Return a verifier that passes JSON which a schema describes; it needs jsonschema.

    Raises:
        RuntimeError: jsonschema is not installed.
        jsonschema.SchemaError: it is no schema.
    """
    try:
        validators, referencing = map(import_module, ("jsonschema.validators", "referencing"))
    except ImportError as error:
        raise RuntimeError("json_schema needs jsonschema: pip install jsonschema") from error
    kind = validators.validator_for(schema)
    kind.check_schema(schema)
    # With a registry of its own, nothing that the schema refers to is fetched from anywhere.
    fits = kind(schema, registry=referencing.Registry()).is_valid
    return lambda answer: is_json(answer) and fits(msgspec.json.decode(answer))
