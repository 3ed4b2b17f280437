"""Every picture and page has one hand: its colours, its escapes, its one file."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from benchmarks.inks import DARK, LIGHT
from drawing.numbers import NO_PRICE, UNTIL
from drawing.page import ASSETS, MODULES, Chart, Report, Table, page
from router_state.pacing.dollar_dual import UNREACHABLE
from studies.simulate.study_page import _price
from studies.simulate.track import Track
from tests import pages

ROOT = Path(__file__).parents[2]
MARKUP = "</script><img src=x onerror=alert(1)>"


def _luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [
        part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    return float(np.dot(linear, (0.2126, 0.7152, 0.0722)))


def _contrast(one: str, other: str) -> float:
    bright, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (bright + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("inks", [LIGHT, DARK], ids=["light", "dark"])
def test_texts_and_lines_have_contrast(inks: dict[str, str]) -> None:
    for paper in (inks["paper"], inks["rise"]):
        for name in ("ink", "soft", "bad"):
            assert _contrast(inks[name], paper) >= 4.5, name
        for at in range(8):
            assert _contrast(inks[f"c{at}"], paper) >= 3.0, at


class Elements(HTMLParser):
    """The tags of a page, and what its data block holds."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.data = ""
        self._in_data = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._in_data = dict(attrs).get("id") == "report"

    def handle_endtag(self, tag: str) -> None:
        self._in_data = False

    def handle_data(self, data: str) -> None:
        if self._in_data:
            self.data += data


def data_of(text: str) -> dict[str, Any]:
    """Return what a page draws."""
    found: dict[str, Any] = json.loads(Elements(text).data)
    return found


def test_a_page_is_one_file_in_which_names_stay_text() -> None:
    written = page(
        Report(
            title=MARKUP,
            answer=MARKUP,
            others=[MARKUP],
            notes=[MARKUP],
            names=[MARKUP],
            marks=[(1.0, MARKUP)],
            charts=[Chart(MARKUP, [1.0], {MARKUP: [None]}, alarms=[(1.0, MARKUP)])],
            tables=[Table(MARKUP, MARKUP, [MARKUP], [[MARKUP]])],
            lists={MARKUP: [MARKUP]},
        )
    )
    tags = Elements(written).tags
    assert "img" not in [tag for tag, _ in tags]
    assert [tag for tag, _ in tags].count("script") == 2
    assert not [attributes for _, attributes in tags if {"src", "href"} & attributes.keys()]
    assert "http://" not in re.sub(r"http://www\.w3\.org/\S+", "", written)
    data = data_of(written)
    assert data["charts"][0]["series"] == {MARKUP: [None]}
    assert data["tables"][0]["rows"] == [[MARKUP]] and data["lists"] == {MARKUP: [MARKUP]}


def test_tables_and_lists_without_content_are_left_out() -> None:
    data = data_of(
        page(Report(title="a", answer="b", tables=[Table("c", "", [], [])], lists={"d": []}))
    )
    assert data["tables"] == [] and data["lists"] == {}


def test_no_two_modules_of_a_page_give_a_name_twice_and_each_comes_after_those_it_needs() -> None:
    given: list[str] = []
    for at, module in enumerate(MODULES):
        text = (ASSETS / module).read_text()
        needed = re.findall(r'^import .* from "\./(.*)";', text, re.MULTILINE)
        assert set(needed) <= {*MODULES[:at]}, module
        given += re.findall(
            r"^(?:export )?(?:async )?(?:const|let|function|class) (\w+)", text, re.MULTILINE
        )
    assert len(given) == len(set(given))


def test_every_picture_of_a_document_is_there_and_each_for_dark_pages_has_its_size() -> None:
    for path in (ROOT / one for one in pages.PAGES):
        text = path.read_text()
        named = re.findall(r'!\[[^\]]*\]\(([^)]+)\)|(?:src|srcset)="([^"]+)"', text)
        for one in (path.parent / (plain or marked) for plain, marked in named):
            assert one.exists(), f"{path.name}: {one.name}"
            if one.stem.endswith("-dark"):
                twin = one.with_stem(one.stem.removesuffix("-dark"))
                with Image.open(one) as image, Image.open(twin) as light:
                    assert image.size == light.size and image.size[0] <= 2048
        for dark in re.findall(r'srcset="([^"]+)-dark.png"', text):
            assert f'src="{dark}.png"' in text


def test_pages_and_grafana_say_of_lambda_what_terminals_say() -> None:
    script = (ASSETS / "format.js").read_text()
    assert f'"{NO_PRICE}"' in script and f'"{UNTIL}"' in script
    assert float(re.search(r"UNREACHABLE = ([\de]+)", script)[1]) == UNREACHABLE  # type: ignore[index]
    board = json.loads((ROOT / "deploy/grafana/dashboards/routers.json").read_text())
    told = [one["description"] for one in board["panels"] if one["title"] == "λ_t"]
    assert len(told) == 1 and NO_PRICE in told[0] and UNTIL in told[0]
    assert f"{UNREACHABLE:,.0f}" in told[0]


def test_a_line_of_lambda_leaves_out_where_no_price_meets_the_budget() -> None:
    track = Track("live", [])
    for index in range(100):
        known: dict[str, Any] = {"model": "a", "reward": 0.5, "cost_usd": 0.1, "budget_usd": 0.2}
        price = UNREACHABLE if index % 2 else 0.5
        track.observe(index, **known, lambda_t=price, modelled=False)
    track.finish()
    assert (track.total.mean_lambda_t, track.total.without_price) == (0.5, 50)
    assert _price(track.total) == "0.5; none for 50%"
    only = Track("live", [])
    only.observe(0, **known, lambda_t=UNREACHABLE, modelled=False)
    only.finish()
    assert _price(only.total) == NO_PRICE
