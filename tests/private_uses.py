"""Find where the product uses private names of Faust, mode and aiokafka."""

from __future__ import annotations

import ast
import importlib
import inspect
import textwrap
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
ROOMS = (
    *("agents", "client/src", "commands", "doors", "drawing", "ground", "router_state", "schemas"),
    *("streams", "studies", "watching"),
)
FRAMEWORKS = ("faust", "mode", "aiokafka")
PUBLIC = (
    *("aiokafka", "aiokafka.abc", "aiokafka.admin", "aiokafka.admin.config_resource"),
    *("aiokafka.codec", "aiokafka.errors", "aiokafka.helpers", "aiokafka.partitioner"),
    *("aiokafka.structs", "faust", "faust.types", "faust.types.auth", "faust.types.fixups"),
    *("mode", "mode.types"),
)
"""Modules that the libraries document for applications, and those of types and plain functions."""
OTHERS = frozenset({"_asdict", "_exit", "_fields", "_protected_args", "_replace", "_value_"})
"""Names of named tuples, enumerations, `os` and click."""


def _private(name: str) -> bool:
    return len(name) > 1 and name.startswith("_") and not name.startswith("__")


def _framework(module: str) -> bool:
    return module.split(".", maxsplit=1)[0] in FRAMEWORKS


def modules() -> Iterator[Path]:
    """Yield the files of the product."""
    for room in ROOMS:
        yield from sorted((ROOT / room).rglob("*.py"))


def accesses(source: str) -> Iterator[str]:
    """Yield the private names that a file takes of any object but `self`, and does not define."""
    tree = ast.parse(source)
    own = set(_defined(tree))
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(id="self" | "cls")):
                continue
            case ast.Attribute(value=ast.Call(func=ast.Name(id="super"))):
                continue
            case ast.Attribute(attr=name) if _private(name) and not {name} & (own | OTHERS):
                yield name


def inherited(path: Path) -> Iterator[str]:
    """Yield the private names of the frameworks that classes of a file use or define, as they
    derive from the frameworks' classes.
    """
    source = path.read_text(encoding="utf-8")
    if not any(f"{one}." in source or f"{one} import" in source for one in FRAMEWORKS):
        return
    name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removeprefix("client.src.")
    for cls in vars(importlib.import_module(name)).values():
        if inspect.isclass(cls) and cls.__module__ == name:
            theirs = frozenset().union(
                *(_names_of(base) for base in cls.__mro__ if _framework(base.__module__))
            )
            tree = ast.parse(textwrap.dedent(inspect.getsource(cls)))
            yield from (set(_defined(tree)) | set(_of_self(tree))) & theirs


def imports(source: str) -> Iterator[tuple[str, str]]:
    """Yield module and name of what a file imports from a framework's undocumented modules."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.ImportFrom(module=str(module), names=names) if _framework(module):
                for one in names:
                    if not {module, f"{module}.{one.name}"} & {*PUBLIC}:
                        yield module, one.name
            case ast.Import(names=names):
                for one in names:
                    if _framework(one.name) and one.name not in PUBLIC:
                        yield one.name, ""


def has(owner: object, name: str) -> bool:
    """Tell whether a module or class has a name, also where its methods alone set it."""
    return hasattr(owner, name) or (
        inspect.isclass(owner)
        and any(name in _names_of(base) for base in owner.__mro__ if _framework(base.__module__))
    )


@cache
def _names_of(cls: type) -> frozenset[str]:
    tree = ast.parse(textwrap.dedent(inspect.getsource(cls)))
    return frozenset(_defined(tree))


def _defined(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                found = name
            case ast.Attribute(attr=name, value=ast.Name(id="self"), ctx=ast.Store()):
                found = name
            case ast.AnnAssign(target=ast.Name(id=name)) | ast.Name(id=name, ctx=ast.Store()):
                found = name
            case _:
                continue
        if _private(found):
            yield found


def _of_self(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(attr=name, value=ast.Name(id="self" | "cls")) if _private(name):
                yield name
            case ast.Attribute(attr=name, value=ast.Call(func=ast.Name(id="super"))) if _private(
                name
            ):
                yield name
