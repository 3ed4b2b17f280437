"""The examples in docstrings say what happens."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOMS = ("ground", "schemas", "router_state", "agents", "streams", "drawing", "doors", "studies")
ROOMS_ABOVE = ("watching", "commands", "benchmarks", "client/src/paretobandit_client")
MODULES = sorted(
    path.relative_to(ROOT)
    for room in (*ROOMS, *ROOMS_ABOVE)
    for path in ROOT.glob(f"{room}/**/*.py")
    if ">>> " in path.read_text(encoding="utf-8")
)


def test_there_are_examples() -> None:
    assert len(MODULES) > 5


@pytest.mark.parametrize("path", MODULES, ids=str)
def test_the_examples_of_a_module_hold(path: Path) -> None:
    name = ".".join(path.with_suffix("").parts).removeprefix("client.src.")
    found = doctest.testmod(importlib.import_module(name))
    assert found.attempted > 0 and found.failed == 0
