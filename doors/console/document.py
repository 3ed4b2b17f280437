"""Check the JSON document that declares a router, fields of newer versions included."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Iterator, Mapping
from functools import cache

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from ground.json_values import Document
from schemas import RouterDeclared
from schemas.fields import innermost, path_of
from schemas.import_marks import MARKS
from schemas.sentences import explained, what_is_wrong

LONGEST_TEXT = 40
"""Most characters of a text that a message quotes."""


def faults(document: Document) -> list[str]:
    """Return the faults of a declaration, a line each: the place, and what is wrong there."""
    found = [
        f"{where}: no such field{_meant(name, known)}"
        for where, name, known in _unknown(document, [_schema()], "")
    ]
    try:
        # orjson would write null for what is not finite.
        RouterDeclared.model_validate_json(json.dumps(document))
    except ValidationError as error:
        wrong = {_place(one["loc"]): _said(one) for one in error.errors(include_url=False)}
        found += [f"{where}: {what}" for where, what in innermost(wrong).items()]
    return list(dict.fromkeys(found))


@cache
def _schema() -> Document:
    return RouterDeclared.model_json_schema()


def _unknown(
    part: object, schemas: Iterable[Document], where: str
) -> Iterator[tuple[str, str, list[str]]]:
    """Yield unknown fields of a part that has one of these schemas: path, name, and the names that
    there are.

    A document is looked at before it is valid: any part may be anything.
    """
    forms = [form for schema in schemas for form in _forms(schema)]
    if isinstance(part, list):
        items = [form["items"] for form in forms if "items" in form]
        for position, item in enumerate(part):
            yield from _unknown(item, items, f"{where}{position}.")
    if not isinstance(part, Mapping):
        return
    known: dict[str, list[Document]] = {}
    for form in forms:
        for name, field in form.get("properties", {}).items():
            known.setdefault(name, []).append(field)
    named = [form["additionalProperties"] for form in forms if "additionalProperties" in form]
    if True in named:
        return  # free JSON, such as params
    for name, value in part.items():
        if name in known or named:
            yield from _unknown(value, known.get(name, named), f"{where}{name}.")
        elif known and name not in MARKS:
            yield f"{where}{name}", str(name), list(known)


def _forms(schema: Document) -> Iterator[Document]:
    """Yield the alternatives of a schema, each without references."""
    if "$ref" in schema:
        yield from _forms(_schema()["$defs"][schema["$ref"].rpartition("/")[2]])
        return
    choices = [*schema.get("anyOf", ()), *schema.get("oneOf", ())]
    if not choices:
        yield schema
    for choice in choices:
        yield from _forms(choice)


def _meant(name: str, known: list[str]) -> str:
    close = difflib.get_close_matches(name, known, n=1)
    return f"; did you mean {close[0]}?" if close else f"; there are {', '.join(known)}"


def _place(location: tuple[int | str, ...]) -> str:
    """Return where a fault is, without pydantic's mark of a wrong key."""
    path = path_of(location)
    parts = path[:-1] if path[-1:] == ("[key]",) else path
    return ".".join(str(part) or '""' for part in parts) or "the router"


def _said(error: ErrorDetails) -> str:
    """Return what is wrong. The file is the reader's own, so a text in it is quoted."""
    kind, value = error["type"], error["input"]
    if not explained(kind):
        return error["msg"].removeprefix("Value error, ").replace("Input should be", "should be")
    found = what_is_wrong(error)
    if isinstance(value, str) and len(value) <= LONGEST_TEXT:
        found = found.replace("is a text;", f"is the text {value!r};", 1)
    if kind == "string_type" and isinstance(value, bool | int | float):
        found += ": put it in quotes"
    return found
