"""Modules import each other in one direction, inside functions as well; import-linter sees only
the layers that it is told of.
"""

from __future__ import annotations

import ast
import re
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from paretobandit_streams import FOLDERS as ROOMS

ROOT = Path(__file__).parents[2]
FOLDERS = (*ROOMS, "client/src/paretobandit_client")


def _modules(folder: str) -> dict[str, Path]:
    base = (ROOT / folder).parent
    return {
        ".".join(path.relative_to(base).with_suffix("").parts).removesuffix(".__init__"): path
        for path in (ROOT / folder).rglob("*.py")
    }


def _imports(path: Path, known: dict[str, Path], *, types: bool) -> set[str]:
    """Return the known modules that a module imports, with `types` those for types as well."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if not types and isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            node.body = []
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= names & known.keys() or {node.module}
    return found & known.keys()


def test_no_module_imports_one_that_imports_it() -> None:
    known = {name: path for folder in FOLDERS for name, path in _modules(folder).items()}
    assert len(known) > 300
    graph = {
        name: _imports(path, known, types=name.startswith(("router_state", "agents"))) - {name}
        for name, path in known.items()
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(f"a circle of imports: {' → '.join(error.args[1])}")


def test_nothing_imports_the_laboratory() -> None:
    """`benchmarks` is one name for two places: the product's tests and measures use the first."""
    own, lab = _modules("benchmarks"), _modules("lab/src/benchmarks") | _modules("lab/src/paper")
    assert not own.keys() & lab.keys()
    tools = filter(Path.is_file, (ROOT / "tools").iterdir())
    scripts = [one for one in tools if b"python" in one.read_bytes()[:40]]
    modules = [
        path
        for folder in (*FOLDERS, "benchmarks", "tests", "examples")
        for path in _modules(folder).values()
    ]
    assert scripts and len(modules) > 600
    # Of the words of an import at least the first is written out, and few files have one of them.
    words = {name.partition(".")[0] for name in lab}
    named = [
        path
        for path in (*scripts, *modules)
        if any(word in path.read_text(encoding="utf-8") for word in words)
    ]
    assert words == {"benchmarks", "paper"} and len(named) > 10
    found = {path: _imports(path, lab, types=True) for path in named}
    assert {path: names for path, names in found.items() if names} == {}


IMPORTED = re.compile(r"^\s*(?:from|import) (router_state[.\w]*)", re.MULTILINE)


def test_the_kernel_imports_nothing_of_the_core_and_its_folders_those_below_them() -> None:
    """Import-linter does not read Cython."""
    order = ("numbers", "learning", "costs", "choosing", "pacing", "attempts")
    kernel = ROOT / "router_state" / "kernel"
    paths = [one for end in ("py", "pyx", "pxd", "pyi") for one in kernel.rglob(f"*.{end}")]
    assert len(paths) > 80
    for path in paths:
        own = path.relative_to(kernel).parts[0]
        for used in IMPORTED.findall(path.read_text(encoding="utf-8")):
            assert used.startswith("router_state.kernel"), f"{path} imports {used}"
            folder = used.removeprefix("router_state.kernel").split(".")[1:2]
            if own in order and folder and folder[0] in order:
                assert order.index(folder[0]) <= order.index(own), f"{path} imports {used}"


def test_types_are_said() -> None:
    """`Any` is for what click, LiteLLM and JSON hand over; everything else has a type."""
    paths = [path for folder in FOLDERS for path in _modules(folder).values()]
    lines = sum(path.read_text(encoding="utf-8").count("\n") for path in paths)
    untyped = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in paths
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Name) and node.id == "Any"
    ]
    assert len(set(untyped)) < 1.5e-3 * lines, "\n".join(sorted(set(untyped)))


def test_whatever_goes_wrong_is_caught_in_one_place() -> None:
    """`ground.boundary.Attempt` notes it. The others only let it pass, and say why."""
    pattern = re.compile(r"^\s*except(?: \(?(?:Base)?Exception\b.*)?:", re.MULTILINE)
    found = {
        path.relative_to(ROOT).as_posix()
        for folder in FOLDERS
        for path in _modules(folder).values()
        if pattern.search(path.read_text(encoding="utf-8"))
    }
    assert found <= {
        "agents/partition/lane.py",
        "ground/boundary.py",
        "doors/console/reader.py",
        "streams/faust/membership.py",
        "streams/faust/unreadable.py",
        "streams/state/tables.py",
        "client/src/paretobandit_client/kafka_clients.py",
        "client/src/paretobandit_client/litellm.py",
        "client/src/paretobandit_client/litellm_plans.py",
        "client/src/paretobandit_client/sync.py",
        "client/src/paretobandit_client/verifying.py",
    }


def test_no_comment_stands_behind_a_bracket_that_closes() -> None:
    pattern = re.compile(r"^[ \t]*[\])}]+[:,]?[ \t]*# (?!fmt:)[A-Za-z].*", re.MULTILINE)
    found = {
        path.name: pattern.findall(path.read_text(encoding="utf-8"))
        for folder in FOLDERS
        for path in _modules(folder).values()
    }
    assert not {name: lines for name, lines in found.items() if lines}


def test_no_room_holds_more_than_a_third_of_the_code() -> None:
    lines = {
        folder: sum(
            path.read_text("utf-8").count("\n")
            for ending in ("py", "pyx", "pxd")
            for path in (ROOT / folder).rglob(f"*.{ending}")
        )
        for folder in FOLDERS
    }
    assert max(lines.values()) < sum(lines.values()) / 3, lines


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_says_who_may_enter(room: str) -> None:
    said = ast.get_docstring(ast.parse((ROOT / room / "__init__.py").read_text("utf-8"))) or ""
    assert re.search(r"(may import it|imports it)\b", said), said
