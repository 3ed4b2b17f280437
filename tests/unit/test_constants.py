"""The tables of constants are those of the code, and pages of measurements have a date."""

from __future__ import annotations

import re

import pytest

from benchmarks import constants

LAB = constants.PAGE.parents[1] / "lab"
DATED = re.compile(r"^Dated 20\d\d-\d\d-\d\d: ", re.MULTILINE)


def test_the_tables_of_constants_are_current() -> None:
    page = constants.PAGE.read_text(encoding="utf-8")
    assert constants.BEGIN in page and constants.END in page
    assert constants.written(page) == page, "run `python -m benchmarks.constants`"


def test_a_page_of_measurements_says_of_when_it_is() -> None:
    pages = [page for page in LAB.glob("*.md") if page.name != "index.md"]
    undated = [page.name for page in pages if not DATED.search(page.read_text(encoding="utf-8"))]
    assert len(pages) > 10 and undated == []


def test_a_constant_that_changes_makes_the_page_stale(monkeypatch: pytest.MonkeyPatch) -> None:
    page = constants.PAGE.read_text(encoding="utf-8")
    monkeypatch.setattr("router_state.kernel.learning.counts.BELIEVED", 21.0)
    assert constants.written(page) != page


def test_a_constant_that_moved_is_named_with_the_place_to_mend() -> None:
    for place in ("router_state.config:GONE", "router_state.gone:MEMORY"):
        with pytest.raises(LookupError, match="point `ROWS` in "):
            constants.value_of(place)
