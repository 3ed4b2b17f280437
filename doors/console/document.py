"""Check the JSON document that declares a router, fields of newer versions included."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping

import orjson
from pydantic import BaseModel, ValidationError

from ground.json_values import Document
from schemas import RouterDeclared
from schemas.priors import Reference
from schemas.routers import Caps, ModelDeclared


def faults(document: Document) -> list[str]:
    """Return everything that is wrong with a declaration, a line each: where, and what."""
    found = [
        f"{where}: no such field{_meant(name, kind)}" for where, name, kind in _unknown(document)
    ]
    try:
        RouterDeclared.model_validate_json(orjson.dumps(document))
    except ValidationError as error:
        found += [
            f"{_place(one['loc'])}: {_plain(one['msg'])}"
            for one in error.errors(include_url=False, include_context=False)
        ]
    return list(dict.fromkeys(found))


def _unknown(document: Document) -> Iterator[tuple[str, str, type[BaseModel]]]:
    """Yield unknown fields: path, name, and the model that lacks them."""
    parts: list[tuple[str, object, type[BaseModel]]] = [
        ("", document, RouterDeclared),
        ("caps.", document.get("caps"), Caps),
        ("projection.", document.get("projection"), Reference),
    ]
    models = document.get("models")
    # A document is looked at before it is valid: any part may be anything.
    if isinstance(models, Mapping):
        parts += [(f"models.{name}.", model, ModelDeclared) for name, model in models.items()]
    for where, part, kind in parts:
        if isinstance(part, Mapping):
            yield from (
                (f"{where}{name}", str(name), kind)
                for name in part
                if name not in kind.model_fields
            )


def _meant(name: str, kind: type[BaseModel]) -> str:
    close = difflib.get_close_matches(name, kind.model_fields, n=1)
    return f"; did you mean {close[0]}?" if close else f"; there are {', '.join(kind.model_fields)}"


def _place(path: tuple[int | str, ...]) -> str:
    # pydantic marks that a key of a mapping is wrong, not its value, which helps nobody here.
    parts = [str(part) for part in path if part != "[key]"]
    return ".".join(part or '""' for part in parts) or "the router"


def _plain(message: str) -> str:
    return message.removeprefix("Value error, ").replace("Input should be", "should be")
