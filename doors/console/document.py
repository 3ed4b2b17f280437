"""Check the JSON document that declares a router, fields of newer versions included."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from functools import cache

import orjson
from pydantic import ValidationError

from ground.json_values import Document
from schemas import RouterDeclared
from schemas.fields import innermost, path_of
from schemas.import_marks import MARKS


def faults(document: Document) -> list[str]:
    """Return the faults of a declaration, a line each: the place, and what is wrong there."""
    found = [
        f"{where}: no such field{_meant(name, known)}"
        for where, name, known in _unknown(document, [_schema()], "")
    ]
    try:
        RouterDeclared.model_validate_json(orjson.dumps(document))
    except ValidationError as error:
        wrong = {
            _place(one["loc"]): _plain(one["msg"])
            for one in error.errors(include_url=False, include_context=False)
        }
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


def _plain(message: str) -> str:
    return message.removeprefix("Value error, ").replace("Input should be", "should be")
