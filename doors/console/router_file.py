"""One file for a router: its declaration as YAML, what a file would change, and everything that is
wrong with one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import orjson
import yaml

from doors.console.document import faults
from doors.console.failures import Failure
from ground.files.yaml_text import BadYaml, load_yaml, read_yaml
from ground.json_values import Document, Json

ABSENT = "–"
"""Sign for a value that one side does not have."""
LONGEST = 60
"""Characters of a value in a line of differences."""


def as_yaml(document: Document) -> str:
    """Write a declaration for people: the router first, then as it was declared."""
    first = {"router_id": document["router_id"]}
    text: str = yaml.safe_dump(
        {**first, **document}, sort_keys=False, allow_unicode=True, width=120
    )
    return text


def read_file(path: Path) -> Document:
    """Read a declaration from YAML or JSON.

    Raises:
        Failure: it is none; every fault of it, with its place.
    """
    try:
        document = read_yaml(path)
        # YAML has dates and NaN, and a declaration is JSON.
        value = json.dumps(document, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise Failure(f"{path} is no YAML of a router: {error}") from error
    if not isinstance(document, dict):
        raise Failure(f"{path} holds no router: `pbstream routers show ID > {path}` writes one")
    if found := faults(orjson.loads(value)):
        raise Failure(
            "\n".join([f"{path} declares no router:", *(f"  {fault}" for fault in found)])
        )
    return orjson.loads(value)  # type: ignore[no-any-return]


def changes(before: Document, after: Document) -> list[Document]:
    """Return what differs: {"what": a path, "before": a value, "after": a value}; a value that is
    not there is None.
    """
    old, new = dict(_leaves(before)), dict(_leaves(after))
    return [
        {"what": path, "before": old.get(path), "after": new.get(path)}
        for path in dict.fromkeys([*old, *new])
        if old.get(path) != new.get(path)
    ]


def _leaves(document: Mapping[str, object], at: str = "") -> Iterator[tuple[str, object]]:
    for name, value in document.items():
        if isinstance(value, Mapping) and value:
            yield from _leaves(value, f"{at}{name}.")
        # A field that is null and one that is left out mean the same.
        elif value is not None:
            yield f"{at}{name}", value


def value_of(text: str) -> Json:
    """Return what a value means that is written as in a file; nothing for an empty one.

    Raises:
        Failure: it is no YAML.
    """
    try:
        return load_yaml(text)
    except BadYaml as error:
        raise Failure(f"{text!r} is no YAML: {error}") from error


def put(document: Document, path: list[str], value: object) -> None:
    """Change a field, where its path leads; None takes it away, and what is left empty with it."""
    *inner, name = path
    if not inner:
        if value is None:
            document.pop(name, None)
        else:
            document[name] = value
        return
    part = document.setdefault(inner[0], {})
    if not isinstance(part, dict):
        raise Failure(f"{inner[0]} has no fields")
    put(part, [*inner[1:], name], value)
    if not part:
        del document[inner[0]]


def shown(value: object) -> str:
    """Write a value in a line."""
    if value is None:
        return ABSENT
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}… ({len(text):,} characters)"
