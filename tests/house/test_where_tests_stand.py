"""Tests stand where the code that they test stands, and code of some size is tested by name."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from paretobandit_streams import FOLDERS
from tests.conftest import LONGEST, TOGETHER
from tests.pages import ROOT

CLIENT = "client.src.paretobandit_client"
ROOMS = {room: ROOT / room for room in FOLDERS} | {"client": ROOT.joinpath(*CLIENT.split("."))}
"""The folder of each room of the product, by the name of the folder of its tests."""
WHOLE = frozenset(
    {"containers", "fixtures", "house", "integration", "parity", "reference", "release", "worlds"}
)
"""Folders of tests that are about no single room."""
LARGE = 150
"""A file of the product with more lines has to be named by a test."""
STILL = frozenset(
    {
        "agents.table.pool_records",
        "commands.cli.convert_and_ingest",
        "commands.cli.cost_and_reward",
        "commands.cli.dlq_command",
        "commands.cli.fit_command",
        "commands.cli.models",
        "commands.cli.models_add",
        "commands.cli.pools_command",
        "commands.cli.replay",
        "commands.cli.request",
        "commands.cli.router_files",
        "commands.dead_letter_search",
        "doors.console.changing_declarations",
        "doors.gateway.documented",
        "doors.integrations.otel",
        "paretobandit_client.kafka",
        "router_state.kernel.choosing.portfolio",
        "router_state.kernel.learning.evidence",
        "router_state.kernel.numbers.linear",
        "router_state.kernel.pacing.window_scores",
        "router_state.latency.pricing",
        "router_state.periods.budget_fields",
        "router_state.planned",
        "router_state.pools.pool_period",
        "streams.faust.allowed_operations",
        "studies.audit.answers",
        "studies.audit.declarations_in_force",
        "studies.audit.feedback_booked",
        "studies.audit.pool_sums",
        "studies.audit.recovered_state",
        "studies.simulate.direct",
        "studies.simulate.shared_lines",
        "watching.dashboard.dashboard_app",
    }
)
"""Large files that no test names: they are tested through others. No other file may come in."""


def files_of_tests() -> list[Path]:
    """Return every file of tests of the service and of the client."""
    return sorted((ROOT / "tests").rglob("test_*.py"))


def code() -> Iterator[tuple[str, Path]]:
    """Yield each file of the product with the name of its room."""
    for room, folder in ROOMS.items():
        for path in folder.rglob("*.py*"):
            if path.suffix in (".py", ".pyx") and not path.stem.startswith("__"):
                yield room, path


def module_of(path: Path) -> str:
    """Return the name by which a file is imported."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts).removeprefix("client.src.")


@cache
def named() -> frozenset[str]:
    """Return the modules that tests import, also where a package hands on what they have."""
    found: set[str] = set()
    for path in (ROOT / "tests").rglob("*.py"):
        for module, name in imports(path):
            found |= {module, f"{module}.{name}", handed_on(module).get(name, module)}
    return frozenset(found)


def imports(path: Path) -> Iterator[tuple[str, str]]:
    """Yield module and name of all that a file imports; the name is empty for a whole module."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.Import(names=names):
                yield from ((one.name, "") for one in names)
            case ast.ImportFrom(module=str(module), names=names):
                yield from ((module, one.name) for one in names)


@cache
def handed_on(package: str) -> dict[str, str]:
    """Return the names that a package's `__init__` imports from its modules, with these modules."""
    path = ROOT.joinpath(*package.replace("paretobandit_client", CLIENT).split("."), "__init__.py")
    return {name: module for module, name in imports(path)} if path.is_file() else {}


def test_a_folder_of_tests_is_a_room_or_is_about_all_of_them() -> None:
    folders = {path.relative_to(ROOT / "tests").parts[0] for path in files_of_tests()}
    assert folders <= {*ROOMS, *WHOLE}


def test_tests_of_a_room_stand_in_folders_of_that_room() -> None:
    for path in files_of_tests():
        room, *inner = path.relative_to(ROOT / "tests").parent.parts
        if room in ROOMS:
            assert ROOMS[room].joinpath(*inner).is_dir(), f"{path}: no such folder in the product"


def test_a_test_with_the_name_of_a_file_stands_in_the_folder_of_that_file() -> None:
    homes: dict[tuple[str, str], set[Path]] = {}
    for room, path in code():
        homes.setdefault((room, path.stem), set()).add(path.parent.relative_to(ROOMS[room]))
    for path in files_of_tests():
        room, *inner = path.relative_to(ROOT / "tests").parent.parts
        there = homes.get((room, path.stem.removeprefix("test_")))
        assert there is None or Path(*inner) in there, f"{path} is not where its file is: {there}"


def test_no_two_files_of_tests_have_the_same_name() -> None:
    names = Counter(
        path.name for path in (*files_of_tests(), *(ROOT / "lab/tests").rglob("test_*.py"))
    )
    assert [name for name, count in names.items() if count > 1] == []


def test_a_large_file_is_named_by_a_test() -> None:
    own = {path.stem.removeprefix("test_") for path in files_of_tests()}
    large = {
        module_of(path): path
        for _, path in code()
        if path.read_text(encoding="utf-8").count("\n") > LARGE
    }
    unnamed = {one for one, path in large.items() if one not in named() and path.stem not in own}
    assert unnamed - STILL == set(), "a test of its own, or one that imports what it has"
    assert STILL - unnamed == set(), "take these out of STILL: they are named now, or small"


def test_files_that_the_order_of_tests_names_are_there_once() -> None:
    files = Counter(path.name for path in (ROOT / "tests").rglob("test_*.py"))
    named = [*LONGEST, *(name for names in TOGETHER for name in names)]
    assert [name for name in named if files[f"test_{name}.py"] != 1] == []


def test_a_release_looks_at_every_page_that_a_test_opens() -> None:
    looking = {
        path
        for path in (ROOT / "tests").rglob("test_*.py")
        if re.search(r"\bfits\(browser|mark\.looks", path.read_text())
    }
    (listed,) = re.findall(r"^PAGES = (.*)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    named = {
        path for pattern in re.findall(r"tests/[\w/*]+\.py", listed) for path in ROOT.glob(pattern)
    }
    assert len(looking) > 5 and looking <= named
