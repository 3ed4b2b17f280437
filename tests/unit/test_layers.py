"""Modules import each other in one direction, inside functions as well; import-linter sees only
the layers that it is told of.
"""

from __future__ import annotations

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("streams", "agents", "router_state", "schemas", "client/src/paretobandit_client")


def _modules(folder: str) -> dict[str, Path]:
    base = (ROOT / folder).parent
    return {
        ".".join(path.relative_to(base).with_suffix("").parts).removesuffix(".__init__"): path
        for path in (ROOT / folder).rglob("*.py")
    }


def _imports(path: Path, known: dict[str, Path]) -> set[str]:
    """Return the modules that a module imports when it runs: for types alone does not count."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
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
    graph = {name: _imports(path, known) - {name} for name, path in known.items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(f"a circle of imports: {' → '.join(error.args[1])}")
