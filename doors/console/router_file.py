"""Write a router's declaration as a YAML file, read it back, and compare two declarations."""

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
"""Most characters of a value in a line of differences."""


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
        Failure: the file is not a declaration; the message lists every fault with its place.
    """
    try:
        document = read_yaml(path)
        # YAML has dates and NaN, and a declaration is JSON.
        value = json.dumps(document, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise Failure(f"{path} is not YAML of a router: {error}") from error
    if not isinstance(document, dict):
        raise Failure(f"{path} holds no router: `pbstream routers show ID > {path}` writes one")
    if found := faults(orjson.loads(value)):
        raise Failure(
            "\n".join([f"{path} declares no router:", *(f"  {fault}" for fault in found)])
        )
    return orjson.loads(value)  # type: ignore[no-any-return]


def changes(before: Document, after: Document) -> list[Document]:
    """Return the differences, each {"what": a path, "before": a value, "after": a value}; None
    where the value is absent.
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
    """Return the value of a text written as in a file; None for an empty text.

    Raises:
        Failure: it is not YAML.
    """
    try:
        return load_yaml(text)
    except BadYaml as error:
        raise Failure(f"{text!r} is not YAML: {error}") from error


def put(document: Document, path: list[str], value: object) -> None:
    """Set the field at a path. None removes it, and every object that this leaves empty."""
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
    """Write a value on one line."""
    if value is None:
        return ABSENT
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}… ({len(text):,} characters)"
