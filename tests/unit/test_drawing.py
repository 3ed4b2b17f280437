"""Every picture and page has one hand: its colours, its scale, its escapes."""

from __future__ import annotations

import math
import re
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from jinja2 import UndefinedError

from streams.drawing.figure import figure, save_png
from streams.drawing.inks import INKS
from streams.drawing.lines import Line, Tick, line_chart
from streams.drawing.page import page

BLUE = INKS["line-0"][0]


def _luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [
        part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    return float(np.dot(linear, (0.2126, 0.7152, 0.0722)))


def _contrast(one: str, other: str) -> float:
    bright, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (bright + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_texts_and_lines_have_contrast(scheme: int) -> None:
    paper = INKS["paper"][scheme]
    for name in ("ink", "quiet", "over"):
        assert _contrast(INKS[name][scheme], paper) >= 4.5, name
    assert _contrast(INKS["ink"][scheme], INKS["ours"][scheme]) >= 4.5
    for name, shades in INKS.items():
        if name.startswith("line-"):
            assert _contrast(shades[scheme], paper) >= 3.0, name


def test_a_colour_is_known_by_its_value() -> None:
    lights = [light for light, _ in INKS.values()]
    assert len(set(lights)) == len(lights)


def chart(points: list[tuple[float, float | None]], title: str = "λ_t", **more: float) -> str:
    return line_chart(title, [Line("one", BLUE, points)], x_max=100, **more)


def test_a_chart_takes_every_colour_from_the_page() -> None:
    svg = line_chart(
        r"Spend ÷ <budget> \1",
        [Line("one", BLUE, [(0, 1.0), (50, 2.0)])],
        x_max=100,
        level=1.0,
        events=[20.0],
        ticks=[Tick(30.0, BLUE)],
    )
    root = ElementTree.fromstring(svg)
    assert root.get("aria-label") == r"Spend ÷ <budget> \1" and root.get("role") == "img"
    assert "#" not in re.sub(r"(url\(|href=\")#", "", svg)
    for kind in ("line", "level", "mark", "number", "alert"):
        assert f'class="{kind}"' in svg


def test_charts_of_one_page_share_no_id() -> None:
    ids = [set(re.findall(r' id="([^"]+)"', chart([(0, 1.0)], title))) for title in ("a", "b")]
    assert all(one.isdisjoint(other) for one, other in pairwise(ids))


@pytest.mark.parametrize(
    "points",
    [
        [],
        [(0, None)],
        [(0, 0.0), (100, 0.0)],
        [(0, math.inf), (50, math.nan), (100, 1.0)],
        [(0, 1e-300), (100, 1e300)],
    ],
    ids=["none", "hole", "zeros", "infinite", "huge"],
)
def test_degenerate_lines_are_drawn(points: list[tuple[float, float | None]]) -> None:
    ElementTree.fromstring(chart(points))


def test_a_single_outlier_is_cut_and_said_and_many_are_not() -> None:
    flat = [(float(at), 1.0) for at in range(100)]
    assert "1 point above the scale, up to 200" in chart([*flat, (100, 200.0)])
    many = [(float(at), 200.0 if at % 4 == 0 else 1.0) for at in range(100)]
    assert "above the scale" not in chart(many)


def test_the_same_figure_is_the_same_file(tmp_path: Path) -> None:
    for name in ("one.png", "two.png"):
        made, grid = figure()
        grid[0, 0].plot([1, 2], [3, 4])
        save_png(made, tmp_path / name)
    assert (tmp_path / "one.png").read_bytes() == (tmp_path / "two.png").read_bytes()


def test_a_page_escapes_what_it_is_given_and_misses_nothing(tmp_path: Path) -> None:
    template = tmp_path / "small.html"
    template.write_text('{% extends "page.html" %}{% block body %}<p>{{ said }}</p>{% endblock %}')
    written = page(template, {"title": "<b>", "said": "</p><script>alert(1)</script>"})
    assert "<script>" not in written and "<h1>&lt;b&gt;</h1>" in written
    with pytest.raises(UndefinedError):
        page(template, {"title": ""})
