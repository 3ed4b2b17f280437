"""Write a router's declaration as a YAML file, read it back, and compare two declarations."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import yaml

from doors.console.document import faults
from doors.console.failures import Failure
from ground.files.yaml_text import BadYaml, load_yaml, read_yaml
from ground.json_values import Document, Json
from schemas.routers import ModelDeclared

ABSENT = "–"
"""Sign for a value that one side does not have."""
LONGEST = 60
"""Most characters of a value in a line of differences."""


def as_yaml(document: Document) -> str:
    """Return a declaration as YAML for people: `router_id` comes first, the other fields in their
    declared order.
    """
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
    except BadYaml as error:
        raise Failure(f"{path} is not YAML of a router: {error}") from error
    if not isinstance(document, dict):
        raise Failure(f"{path} holds no router: `pbstream routers show ID > {path}` writes one")
    if found := faults(document):
        raise Failure(
            "\n".join([f"{path} declares no router:", *(f"  {fault}" for fault in found)])
        )
    return document


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
    """Set the field at a path. None removes the field, and every object that becomes empty by its
    removal.
    """
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


class Whole(str):
    """A level of a path that was written in quotes, and is one name whatever dots it holds."""

    __slots__ = ()


def full_path(document: Document, path: list[str]) -> list[str]:
    """Return a path in which names that hold dots are whole: of `models.gpt-4.1.input_price_per_m`
    the model is gpt-4.1, where it is in the portfolio, or a field of a model follows its name.

    >>> full_path({"models": {"gpt-4.1": {}}}, ["models", "gpt-4", "1", "offers", "vision"])
    ['models', 'gpt-4.1', 'offers', 'vision']
    """
    found: list[str] = []
    part: Json = document
    while path:
        count = _levels_of_name(part, path, is_model=found == ["models"])
        name = ".".join(path[:count])
        part = part.get(name) if isinstance(part, dict) else None
        found, path = [*found, name], path[count:]
    return found


def _levels_of_name(part: Json, path: list[str], *, is_model: bool) -> int:
    if isinstance(path[0], Whole):
        return 1
    for count in range(len(path), 0, -1):
        if isinstance(part, dict) and ".".join(path[:count]) in part:
            return count
    fields = ModelDeclared.model_fields if is_model else {}
    return next((count for count in range(1, len(path)) if path[count] in fields), 1)


def shown(value: object) -> str:
    """Write a value on one line."""
    if value is None:
        return ABSENT
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}… ({len(text):,} characters)"
