"""Read YAML that people write for commands: plain values, unique names, bounded size and depth."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml
from yaml.constructor import ConstructorError
from yaml.error import Mark, MarkedYAMLError
from yaml.nodes import MappingNode, Node, ScalarNode

try:
    from yaml import CSafeLoader as SafeLoader
except ImportError:  # PyYAML without libyaml reads the same, ten times slower.
    from yaml import SafeLoader  # type: ignore[assignment]

LARGEST_BYTES = 16 * 2**20
"""Largest file: twice what a record of `pb.routers` may hold."""
DEEPEST = 32
"""Most levels of a document; a router with an inline prior has six."""
MOST_VALUES = 500_000
"""Most values of a file, names included: 8 MiB of numbers are fewer, and a million take ten
seconds."""
LONGEST_NUMBER = 64
"""Most characters of a number: the longest double in full has 24, and PyYAML's base 60 is
quadratic."""
STRING = "tag:yaml.org,2002:str"
FLOAT = "tag:yaml.org,2002:float"


class BadYaml(ValueError):
    """The text can't be read; the message begins with the line and the column."""

    reason = "bad_yaml"
    retriable = False


class _Loader(SafeLoader):
    """A loader that reads numbers as JSON does (`1e-4` is one), and wants names that are text and
    unique."""

    def construct_mapping(self, node: MappingNode, deep: bool = False) -> dict[object, object]:
        seen: dict[str, Mark] = {}
        for key, _ in node.value:
            if key.tag != STRING:
                raise _wrong("a name here is text: put it in quotes", key.start_mark)
            if (first := seen.get(key.value)) is not None:
                raise _wrong(
                    f"{key.value!r} appears twice, first on line {first.line + 1}", key.start_mark
                )
            seen[key.value] = key.start_mark
        return super().construct_mapping(node, deep)

    def construct_object(self, node: Node, deep: bool = False) -> object:
        if isinstance(node, ScalarNode) and node.tag != STRING and len(node.value) > LONGEST_NUMBER:
            raise _wrong(f"a number of {len(node.value):,} characters", node.start_mark)
        try:
            return super().construct_object(node, deep)
        except ValueError as error:  # of a date that no calendar has
            raise _wrong(str(error), node.start_mark) from error


# A copy: `add_implicit_resolver` would change the lists of SafeLoader, for the whole process.
_Loader.yaml_implicit_resolvers = {
    first: list(kinds) for first, kinds in SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver(
    FLOAT, re.compile(r"[-+]?(\d+(\.\d*)?|\.\d+)[eE][-+]?\d+$"), list("-+.0123456789")
)


def read_yaml(path: Path) -> object:
    """Return the value in a file of YAML or JSON; None for an empty file.

    Raises:
        BadYaml: the file is not valid, see `load_yaml`.
        OSError: the file can't be read.
    """
    with path.open("rb") as file:
        # The size on disk is no help: a pipe has none.
        data = file.read(LARGEST_BYTES + 1)
    if len(data) > LARGEST_BYTES:
        raise BadYaml(f"more than {LARGEST_BYTES / 2**20:g} MiB")
    try:
        return load_yaml(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise BadYaml(f"byte {error.start} is not UTF-8") from error


def load_yaml(text: str) -> object:
    """Return the value of a YAML text; None for an empty text.

    Raises:
        BadYaml: it is not YAML, is too deep, repeats a name, or holds an alias or a tag.
    """
    try:
        _require_plain(text)
        return yaml.load(text, Loader=_Loader)
    except MarkedYAMLError as error:
        raise BadYaml(_placed(error)) from error
    except yaml.YAMLError as error:
        raise BadYaml(str(error)) from error


def _require_plain(text: str) -> None:
    """Refuse a document that would grow far beyond its text, before it is built."""
    depth = 0
    for number, event in enumerate(yaml.parse(text, Loader=_Loader)):
        if number > MOST_VALUES:
            raise _wrong(f"more than {MOST_VALUES:,} values", event.start_mark)
        if isinstance(event, yaml.AliasEvent):
            raise _wrong(f"alias *{event.anchor}: write the value itself", event.start_mark)
        # A tag whose value does not fit its type makes PyYAML raise something else than a
        # YAMLError.
        if getattr(event, "tag", None) is not None:
            raise _wrong("a tag: write the value without it", event.start_mark)
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > DEEPEST:
                raise _wrong(f"more than {DEEPEST} levels", event.start_mark)
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


def _wrong(what: str, where: Any) -> ConstructorError:
    return ConstructorError(None, None, what, where)


def _placed(error: MarkedYAMLError) -> str:
    where = error.problem_mark or error.context_mark
    what = ", ".join(part for part in (error.context, error.problem) if part)
    return what if where is None else f"line {where.line + 1}, column {where.column + 1}: {what}"
