"""Files, modules, targets, names, variables and topics that the pages name are there."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from paretobandit_streams import FOLDERS
from schemas import EVENTS
from streams.settings import Settings
from tests.pages import PAGES, ROOT

TEXTS = {page: (ROOT / page).read_text(encoding="utf-8") for page in PAGES}
HOUSE = [page for page in PAGES if page != "CHANGELOG.md"]
"""Pages about this checkout as it is."""
SOURCES = "\n".join(
    path.read_text(encoding="utf-8")
    for folder in (
        *FOLDERS,
        "paretobandit_streams",
        "benchmarks",
        "client/src",
        "lab/src",
        "tests",
        "tools",
        ".ci",
    )
    for path in sorted((ROOT / folder).glob("**/*"))
    if path.suffix in (".py", ".pyx", ".pxd", ".js") or path.parent.name in ("tools", ".ci")
    if path.is_file() and path != Path(__file__)
)
FILES = {
    path.name
    for folder in (*FOLDERS, "benchmarks", "client", "deploy", "docs", "docker", "lab", "tests")
    for path in (ROOT / folder).glob("**/*")
} | {path.name for path in ROOT.iterdir()}
MADE = re.compile(r"(\.cache|build|runs)/|.*[A-Z]{4}.*")
"""Paths that a command makes, and paths with a NAME to be filled in."""


def paths(text: str) -> Iterator[str]:
    """Yield the paths from the top of the checkout that are not there."""
    top = {one.name for one in ROOT.iterdir()}
    for path in re.findall(r"`((?:[\w.-]+/)+[\w.-]*)(?:::?[\w\[\]:]+)?`", text):
        ours = path.partition("/")[0] in top and not MADE.match(path)
        if ours and not (ROOT / path).exists():
            yield path


def files(text: str) -> Iterator[str]:
    """Yield the names of Python files that no file has."""
    yield from (name for name in re.findall(r"`(\w+\.pyx?)`", text) if name not in FILES)


def modules(text: str) -> Iterator[str]:
    """Yield the modules of `python -m` that are not there, of those of this checkout."""
    for name in re.findall(r"python -m ([a-z_]+(?:\.[a-z_]+)+)", text):
        path = name.replace(".", "/")
        bases = (ROOT, ROOT / "lab/src", ROOT / "client/src")
        if not any((base / path).is_dir() or (base / f"{path}.py").exists() for base in bases):
            yield name


def targets(text: str) -> Iterator[str]:
    """Yield the targets of `make`, named as commands, that the Makefile lacks."""
    known = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M)
    named = re.findall(r"(?:`|^)make ([a-z][a-z-]*)", text, re.M)
    yield from (name for name in named if name not in known)


def names(text: str) -> Iterator[str]:
    """Yield functions and methods, written as calls or behind their class, that no code has."""
    for called, name in re.findall(r"`((?:\w+\.)*([a-z_]\w*))\(\)`", text):
        if not re.search(rf"def {name}\(|^function {name}\(", SOURCES, re.MULTILINE):
            yield called
    for owner, name in re.findall(r"`([A-Z][a-z]\w+)\.([a-z_]+)`", text):
        if f"class {owner}" not in SOURCES or not re.search(rf"\b{name}\b", SOURCES):
            yield f"{owner}.{name}"


def variables(text: str) -> Iterator[str]:
    """Yield the variables `PB_...` that are no settings and that no code reads."""
    known = {f"PB_{name.upper()}" for name in Settings.model_fields}
    for name in re.findall(r"\bPB_[A-Z_]*[A-Z]\b", text):
        if name.removesuffix("_FILE") not in known and name not in SOURCES:
            yield name


def topics(text: str) -> Iterator[str]:
    """Yield the topics `pb.NAME` that the service does not have."""
    headers = set(re.findall(r'"(pb\.[\w.]+)"', SOURCES))
    known = {f"pb.{name}" for name in (*EVENTS, "dlq")}
    for name in re.findall(r"`(pb\.[a-z_]+)`", text):
        if name not in known | headers and name not in SOURCES:
            yield name


@pytest.mark.parametrize(
    "missing",
    [paths, files, modules, targets, names, variables, topics],
    ids=lambda one: one.__name__,
)
def test_pages_name_only_what_is_there(missing: Callable[[str], Iterator[str]]) -> None:
    assert [(page, one) for page in HOUSE for one in missing(TEXTS[page])] == []


@pytest.mark.parametrize(
    ("missing", "text"),
    [
        (paths, "`agents/nowhere.py`"),
        (files, "`no_such_file.py`"),
        (modules, "`python -m benchmarks.never`"),
        (targets, "`make nothing`"),
        (names, "`Lane.no_such_method_here`"),
        (names, "`no_such_function()`"),
        (variables, "`PB_NO_SUCH_THING`"),
        (topics, "`pb.nothing_of_it`"),
    ],
)
def test_what_is_not_there_is_found(missing: Callable[[str], Iterator[str]], text: str) -> None:
    assert len(list(missing(text))) == 1
