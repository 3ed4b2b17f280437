"""The tables of constants are those of the code."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks import constants

ROOM = constants.PAGE.parents[2] / "router_state"
CORE = [path for ending in ("py", "pyx") for path in sorted(ROOM.rglob(f"*.{ending}"))]
IN_CYTHON = re.compile(r"^(?:    |cdef \w+ )?([A-Z][A-Z0-9_]+) = [-\d.]", re.MULTILINE)
"""A number of the kernel: at the top, typed or not, or a line of an enum."""


def numbers_of(path: Path) -> Iterator[str]:
    """Yield the names that a module gives numbers, or tuples and arithmetic of them, at its top."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".pyx":
        yield from IN_CYTHON.findall(text)
        return
    for node in ast.parse(text).body:
        if isinstance(node, ast.Assign) and _is_number(node.value):
            names = [one for target in node.targets for one in ast.walk(target)]
            yield from (one.id for one in names if isinstance(one, ast.Name))


def _is_number(value: ast.expr) -> bool:
    written = [one.value for one in ast.walk(value) if isinstance(one, ast.Constant)]
    return any(isinstance(one, int | float) for one in written) and not any(
        isinstance(one, ast.Call | ast.Dict | ast.JoinedStr) for one in ast.walk(value)
    )


def test_the_tables_of_constants_are_current() -> None:
    page = constants.PAGE.read_text(encoding="utf-8")
    assert constants.BEGIN in page and constants.END in page
    assert constants.written(page) == page, "run `python -m benchmarks.constants`"


def test_a_constant_that_changes_makes_the_page_stale(monkeypatch: pytest.MonkeyPatch) -> None:
    page = constants.PAGE.read_text(encoding="utf-8")
    monkeypatch.setattr("router_state.kernel.learning.counts.BELIEVED", 21.0)
    assert constants.written(page) != page


def test_a_constant_that_moved_is_named_with_the_place_to_mend() -> None:
    for place in ("router_state.config:GONE", "router_state.gone:MEMORY"):
        with pytest.raises(LookupError, match="point `ROWS` in "):
            constants.value_of(place)


def test_no_two_numbers_of_the_core_have_one_name() -> None:
    """What has one name is taken for one thing, and is changed for both."""
    named = Counter(name for path in CORE for name in numbers_of(path))
    assert len(named) > 150 and named["HORIZON"] == named["Z90"] == 1
    # Of two formats.
    del named["VERSION"]
    assert not {name for name, count in named.items() if count > 1}
