"""A file's name says what is in it, so no two files of the product have the same one."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROOMS = (
    "agents",
    "client/src",
    "commands",
    "doors",
    "drawing",
    "ground",
    "router_state",
    "schemas",
    "streams",
    "studies",
    "watching",
)
SHARED = frozenset({"__init__", "__main__"})
"""Names that Python gives."""


def named() -> dict[str, set[Path]]:
    """Return the modules of the product by their names; a `.pyx` and its stub are one."""
    found: dict[str, set[Path]] = defaultdict(set)
    for room in ROOMS:
        for path in (ROOT / room).rglob("*.py*"):
            if path.suffix in (".py", ".pyx") and path.stem not in SHARED:
                found[path.stem].add(path.relative_to(ROOT))
    return found


def test_no_two_files_have_the_same_name() -> None:
    twice = {name: sorted(map(str, paths)) for name, paths in named().items() if len(paths) > 1}
    assert twice == {}


def test_every_room_is_looked_at() -> None:
    found = {path for paths in named().values() for path in paths}
    assert all(any(path.is_relative_to(room) for path in found) for room in ROOMS)
