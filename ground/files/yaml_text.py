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
INT = "tag:yaml.org,2002:int"
FLOAT = "tag:yaml.org,2002:float"
TIMESTAMP = "tag:yaml.org,2002:timestamp"

ADVICE = {
    "cannot start any token": "indent with spaces, not with tabs, and put the text in quotes",
    "mapping values are not allowed": "write `name: value` on a line of its own, with a blank "
    "behind the colon",
    "did not find expected": "lines of one level begin in the same column",
    "unexpected end of stream": "a quote is open",
}
"""Advice about a fault, by a part of PyYAML's sentence."""


class BadYaml(ValueError):
    """The text can't be read; the message begins with the line and the column."""

    reason = "bad_yaml"
    retriable = False


class _Loader(SafeLoader):
    """A loader whose values are those of JSON: numbers in decimals (`1e-4` is one), and dates and
    `.nan` as text. It wants names that are text and unique."""

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
        return super().construct_object(node, deep)


# A copy: `add_implicit_resolver` would change the lists of SafeLoader, for the whole process.
_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in kinds if tag not in (INT, FLOAT, TIMESTAMP)]
    for first, kinds in SafeLoader.yaml_implicit_resolvers.items()
}
# YAML takes 010 for 8, and 1:30 for 90.
_Loader.add_implicit_resolver(
    INT, re.compile(r"[-+]?(0|[1-9][0-9_]*|0x[0-9a-fA-F_]+)$"), list("-+0123456789")
)
_Loader.add_implicit_resolver(
    FLOAT,
    re.compile(r"[-+]?(\d[\d_]*\.[\d_]*|\.\d+|\d[\d_]*(?=[eE]))([eE][-+]?\d+)?$"),
    list("-+.0123456789"),
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
        raise BadYaml(f"byte {error.start} is not UTF-8: save the file as UTF-8") from error


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
    if where is None:
        return what
    advice = next((f"; {advice}" for part, advice in ADVICE.items() if part in what), "")
    return f"line {where.line + 1}, column {where.column + 1}: {what}{advice}"
