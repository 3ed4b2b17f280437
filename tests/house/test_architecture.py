"""What docs/explanation/architecture.md names is there, and stands where it says."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/explanation/architecture.md").read_text(encoding="utf-8")
FILES = sorted(
    set(re.findall(r"`([a-z_]+(?:/[a-z_0-9]+)*/(?:[a-z_0-9]+\.(?:pyx?|md|svg))?)`", PAGE))
)
NAMED = [
    (name, path)
    for name, path in re.findall(
        r"`([A-Za-z_]+(?:\.[a-z_]+)?)`\s+(?:in |\()`([a-z_/0-9]+\.pyx?)`", PAGE
    )
    if not name.startswith("pb.")
]
IDENTIFIERS = {
    name
    for name in re.findall(r"`([A-Za-z_]+(?:\.[A-Za-z_]+)?)`", PAGE)
    if not name.startswith("pb.") and name not in ("paper", "request_id")
}
STEPS = ("take", "applying", "contain", "pack", "send", "land", "answer", "finish")


def test_every_file_and_folder_that_is_named_exists() -> None:
    assert [path for path in FILES if not (ROOT / path).exists()] == [], "mend the page"


@cache
def defined(path: str) -> frozenset[str]:
    """Return the classes, functions and `Class.method`s of a file, by those names."""
    found = set()
    # What is compiled has its names in its stub.
    path = path.replace(".pyx", ".pyi")
    for node in ast.parse((ROOT / path).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ClassDef):
            methods = (ast.FunctionDef, ast.AsyncFunctionDef)
            found |= {f"{node.name}.{one.name}" for one in node.body if isinstance(one, methods)}
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            found.add(node.name)
    return frozenset(found)


def test_what_is_named_stands_in_its_file() -> None:
    assert [(name, path) for name, path in NAMED if name not in defined(path)] == [], (
        "mend the page: these are not in their files"
    )


def test_every_class_and_function_that_is_named_is_in_a_file_that_is_named() -> None:
    there = frozenset().union(*(defined(path) for path in FILES if path.endswith((".py", ".pyx"))))
    assert IDENTIFIERS - there == set(), (
        "name the file of each as well, `NAME` (`FILE`), or write it without backticks"
    )


def test_enough_is_named_for_the_tests_above_to_mean_something() -> None:
    assert len(FILES) > 50 and len(NAMED) >= 10


def test_the_steps_of_a_group_are_the_lanes_methods_in_their_order_and_it_numbers_them() -> None:
    source = (ROOT / "agents/partition/lane.py").read_text(encoding="utf-8")
    assert re.findall(r"^    (\d)\. `(\w+)`", source, re.MULTILINE) == [
        (str(number), step) for number, step in enumerate(STEPS, 1)
    ]
    # Steps 3 and 4 are part of 2.
    found = [source.index(f"def {step}(") for step in STEPS]
    assert found == sorted(found)


def test_the_picture_is_sound() -> None:
    ElementTree.parse(ROOT / "docs/explanation/architecture.svg")
