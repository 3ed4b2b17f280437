"""Private names of Faust, mode and aiokafka stand in one folder, each with its reason."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from streams.faust.private_names import PRIVATE, Private
from tests.private_uses import ROOT, accesses, has, imports, inherited, modules

FENCE = ROOT / "streams" / "faust"


def uses(path: Path) -> set[str]:
    """Return the private names that a file uses, imported ones with their module."""
    source = path.read_text(encoding="utf-8")
    return {
        *accesses(source),
        *inherited(path),
        *(f"{module}.{name}" for module, name in imports(source)),
    }


def test_no_other_folder_uses_a_private_name() -> None:
    found = {
        path.relative_to(ROOT).as_posix(): uses(path)
        for path in modules()
        if FENCE not in path.parents
    }
    assert {path: names for path, names in found.items() if names} == {}


def test_each_private_name_has_its_reason_and_none_is_listed_that_is_not_used() -> None:
    listed = {
        name if ":" in one.owner else f"{one.owner}.{name}" for one in PRIVATE for name in one.names
    }
    used = set[str]().union(*(uses(path) for path in FENCE.rglob("*.py")))
    assert used == listed


@pytest.mark.parametrize("one", PRIVATE, ids=lambda one: f"{one.owner} {one.names[0]}")
def test_a_private_name_is_in_the_installed_library(one: Private) -> None:
    module, _, cls = one.owner.partition(":")
    owner = importlib.import_module(module)
    for name in one.names:
        if not cls and not hasattr(owner, name):
            importlib.import_module(f"{module}.{name}")
        assert has(getattr(owner, cls) if cls else owner, name), name
    assert one.why.endswith(".")


@pytest.mark.parametrize(
    "source",
    [
        "def look(app): return app._crash",
        "def look(self): return self.app.consumer._thread",
        "def look(app): app.consumer._fetcher = None",
    ],
)
def test_a_private_name_of_another_object_is_seen(source: str) -> None:
    assert list(accesses(source))


@pytest.mark.parametrize(
    "source",
    [
        "from aiokafka.conn import AIOKafkaConnection",
        "from aiokafka.consumer import fetcher",
        "import faust.tables.recovery",
    ],
)
def test_an_undocumented_module_is_seen(source: str) -> None:
    assert list(imports(source))
    assert not list(imports("import faust\nfrom aiokafka.errors import KafkaError"))


def test_what_a_derived_class_takes_from_its_base_is_seen() -> None:
    assert {"_init_fixups", "_crash"} <= set(inherited(FENCE / "faust_app.py"))
    assert "_thread" in set(inherited(FENCE / "transport.py"))
