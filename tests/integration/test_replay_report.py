"""The command writes a report that a real browser draws without a network."""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from click.testing import CliRunner

from benchmarks.history import ROUTER, write_history
from benchmarks.inks import DARK, LIGHT
from commands.cli import main
from commands.demo.report import Report
from commands.demo.shocks import SHOCKS
from drawing.page import Chart, page
from drawing.page import Report as Written
from drawing.pareto import Pareto, Point
from studies.warm_start.worth import worth_of
from studies.warm_start.worth_page import render
from tests.commands.demo.test_demo_parts import played, scenario
from tests.drawing.test_drawing import MARKUP, data_of
from tests.integration.browsing import chromium, point_at, until, violations
from tests.studies.warm_start.test_worth import observed

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

MODELS = ("small", "middle", "large")
SCENARIO = """
name: "Quality <falls> & recovers"
policies: [live, paper, middle]
events:
  - {kind: quality, model: middle, to: 0.3, at: "33%", until: "67%"}
"""


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(3)
    folder, n = tmp_path_factory.mktemp("history"), 1500
    models = {
        name: {"input_price_per_m": p, "output_price_per_m": q}
        for name, p, q in zip(MODELS, (0.1, 0.5, 1.2), (0.1, 1.5, 10.0), strict=True)
    }
    write_history(
        folder,
        declared={
            "models": models,
            "budget_usd_per_request": 6e-4,
            "dimensions": 6,
            "profile": "live",
        },
        models=MODELS,
        contexts=np.column_stack([rng.normal(size=(n, 5)), np.ones(n)]),
        rewards=np.clip(np.array([0.78, 0.9, 0.94]) + rng.normal(0, 0.05, (n, 3)), 0, 1),
        costs=np.array([2.9e-5, 5.3e-4, 1.5e-2]) * rng.lognormal(0, 0.4, (n, 3)),
    )
    return folder


@pytest.fixture(scope="module")
def report(history: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    scenario, path = folder / "scenario.yaml", folder / "report.html"
    scenario.write_text(SCENARIO)
    arguments = [
        "replay",
        "--from",
        str(history),
        "--router",
        ROUTER,
        "--scenario",
        str(scenario),
        "--report",
        str(path),
    ]
    result = CliRunner().invoke(main, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return path


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    with chromium(tmp_path_factory.mktemp("chromium"), "browser", "performance") as driver:
        yield driver


SHOWN = """return [...document.querySelectorAll('figure.chart')].map(one => ({
    title: one.querySelector('h3').textContent,
    told: one.querySelector('svg')?.ariaLabel ?? one.querySelector('.note').textContent,
    width: one.querySelector('.plot').clientWidth,
    names: [...one.querySelectorAll('.word')].map(label => label.textContent)}))"""
DRAWN = """const [chart, kind, name] = arguments;
    const ink = document.body.appendChild(document.createElement('i'));
    ink.style.color = `var(${name})`;
    const wanted = getComputedStyle(ink).color;
    ink.remove();
    return [...chart.querySelectorAll(kind)].filter(
        one => getComputedStyle(one).stroke === wanted && one.getTotalLength() > 0).length"""


def opened(browser: Chrome, page: Path) -> list[dict[str, Any]]:
    """Open a report; return its charts when all of them are drawn."""
    browser.get(page.as_uri())
    wanted = len(data_of(page.read_text())["charts"])
    drawn = "figure.chart :is(svg, .note)"
    until(browser, lambda on: len(on.find_elements("css selector", drawn)) == wanted)
    return browser.execute_script(SHOWN)


def test_a_browser_draws_every_line_and_asks_for_nothing_else(
    report: Path, browser: Chrome
) -> None:
    browser.get("about:blank")
    browser.get_log("performance")  # what the browser's own start page asked for
    charts = opened(browser, report)
    assert "Quality <falls> & recovers" in browser.title
    titles = [chart["title"] for chart in charts]
    assert titles[:2] == ["Spend ÷ budget", "Mean reward"] and "Share of middle" in titles
    drawn = browser.find_elements("css selector", "figure.chart")
    for chart, found in zip(drawn[:2], charts, strict=False):
        names = [name.split(" ", 1)[1] for name in found["names"]]
        assert names == ["live", "paper", "middle"] and found["width"] > 300
        assert browser.execute_script(DRAWN, chart, ".event", "--soft") == 2
        assert all(browser.execute_script(DRAWN, chart, ".series", f"--c{at}") for at in range(3))
    dots = browser.find_elements("css selector", ".pareto .dot")
    assert [dot.get_attribute("class") for dot in dots] == ["dot c0", "dot c1", "dot c2"]
    assert len(rows_under(browser, "Phases")) == 9
    assert rows_under(browser, "Alerts")
    assert browser.get_log("browser") == []
    asked = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    urls = [
        entry["params"]["request"]["url"]
        for entry in asked
        if entry["method"] == "Network.requestWillBeSent"
    ]
    assert urls == [report.as_uri()]


def rows_under(browser: Chrome, title: str) -> list[list[str]]:
    """Return the cells of the table below a title."""
    script = """const head = [...document.querySelectorAll('h2')].find(
        one => one.textContent === arguments[0]);
        return [...head.nextElementSibling.querySelectorAll('tbody tr')].map(
        row => [...row.children].map(cell => cell.textContent))"""
    return browser.execute_script(script, title)


def test_charts_say_the_numbers_of_their_data(report: Path, browser: Chrome) -> None:
    figures = json.loads(report.with_suffix(".json").read_bytes())
    charts = {chart["title"]: chart["told"] for chart in opened(browser, report)}
    (binned,) = re.findall(r"mean of (\d+) requests", report.read_text())
    start = (figures["requests"] - 1) // int(binned) * int(binned)
    for title, key in (("Mean reward", "reward"), ("Spend ÷ budget", "cost_over_budget")):
        for policy in ("live", "paper", "middle"):
            (told,) = re.findall(rf"(\d+\.?\d*) {policy}", charts[title])
            last = [one for one in figures["policies"][policy]["series"] if one["from"] >= start]
            weights = [one["requests"] for one in last]
            value = np.average([one[key] for one in last], weights=weights)
            assert float(told) == pytest.approx(value, rel=6e-3)


def test_pointing_at_a_chart_reads_all_of_them_at_that_place(report: Path, browser: Chrome) -> None:
    charts = opened(browser, report)
    plot = browser.find_element("css selector", "figure.chart .plot")
    point_at(browser, plot)
    read = browser.execute_script(SHOWN)
    assert len(browser.find_elements("css selector", ".pointed")) == len(charts) == len(read)
    (place,) = {re.search(r", at request ([\d,]+):", one["told"])[1] for one in read}  # type: ignore[index]
    assert 0 < int(place.replace(",", "")) < 1500
    assert read[0]["names"] != charts[0]["names"]
    point_at(browser, browser.find_element("css selector", "h1"))
    assert browser.execute_script(SHOWN) == charts


def test_the_answer_comes_first_and_events_are_numbered(report: Path, browser: Chrome) -> None:
    opened(browser, report)
    answer = browser.find_element("css selector", "h1 + .answer").text
    assert re.match(r"(live|middle|paper) earned 0\.\d{3} per request, at \$", answer)
    others = [item.text for item in browser.find_elements("css selector", "ul.others li")]
    assert len(others) >= 3 and all("±" in other for other in others)
    assert any("beside the best fixed mix of models" in other for other in others)
    page = browser.find_element("css selector", "body").text
    assert "Over 1,500 requests" in page and "pbstream" in page
    marks = [one.text for one in browser.find_elements("css selector", ".events li")]
    assert [re.sub(r"\s+", " ", mark) for mark in marks] == [
        "1 request 495 middle: quality to 0.3",
        "2 request 1,005 end: middle: quality to 0.3",
    ]
    (points,) = re.findall(r"mean of (\d+) requests", page)
    assert int(points) >= 20


@pytest.fixture(scope="module")
def pages(report: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return a page of each command that writes one, with markup in the names of two."""
    folder = tmp_path_factory.mktemp("pages")
    of = SHOCKS["price-rise"](scenario(250))
    Report(of, played(of), "live", MARKUP).save(folder)
    worth = replace(observed(0.1), models=("cheap", MARKUP))
    (folder / "worth.html").write_text(render(worth_of(worth)))
    return {"replay": report, "demo": folder / "demo.html", "worth": folder / "worth.html"}


# Widths change the layout and schemes the colours: each of both.
@pytest.mark.looks
@pytest.mark.parametrize(("width", "scheme"), [(390, "light"), (1280, "dark")])
@pytest.mark.parametrize("name", ["replay", "demo", "worth"])
def test_every_page_reads_in_any_light_and_at_any_width(
    pages: dict[str, Path], browser: Chrome, name: str, scheme: str, width: int
) -> None:
    media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    screen = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    try:
        opened(browser, pages[name])
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width
        paper = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
        inks = LIGHT if scheme == "light" else DARK
        shown = "#" + "".join(f"{int(part):02x}" for part in re.findall(r"\d+", paper)[:3])
        assert shown == inks["paper"]
        faults = violations(browser)
        assert faults == [], json.dumps(faults, indent=1)
        assert browser.find_elements("css selector", "img") == []
        assert browser.get_log("browser") == []
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


@pytest.mark.parametrize("name", ["demo", "worth"])
def test_markup_in_names_stays_text(pages: dict[str, Path], browser: Chrome, name: str) -> None:
    opened(browser, pages[name])
    text = browser.execute_script("return document.body.innerText")
    assert MARKUP in text


def test_a_page_runs_no_script_but_its_own(report: Path, browser: Chrome) -> None:
    opened(browser, report)
    browser.execute_cdp_cmd(
        "Runtime.evaluate",
        {
            "expression": "const made = document.createElement('script');"
            "made.text = 'window.ran = true'; document.body.append(made)"
        },
    )
    assert not browser.execute_script("return window.ran")
    browser.get_log("browser")


def test_what_the_scale_cuts_is_said_and_many_high_points_are_not_cut(
    tmp_path: Path, browser: Chrome
) -> None:
    at = [float(place) for place in range(101)]
    single = Chart("single", at, {"one": [1.0] * 100 + [200.0]})
    many = Chart("many", at, {"one": [200.0 if place % 4 == 0 else 1.0 for place in range(101)]})
    path = tmp_path / "cut.html"
    degenerate = [
        Chart("none", [], {}),
        Chart("holes", [1.0, 2.0], {"one": [None, None]}),
        Chart("zeros", [1.0, 2.0], {"one": [0.0, 0.0]}),
        Chart("huge", [1.0, 2.0], {"one": [1e-300, 1e300]}),
        Chart("infinite", [1.0, 2.0, 3.0], {"one": [math.inf, math.nan, 1.0]}),
    ]
    path.write_text(page(Written(title="Cut", answer="", charts=[single, many, *degenerate])))
    told = {chart["title"]: chart["told"] for chart in opened(browser, path)}
    assert "Above the scale: 1 point, up to 200." in told["single"]
    assert "Above" not in told["many"] and "Above" not in told["huge"]
    assert told["none"] == told["holes"] == "Nothing to show yet."
    assert browser.get_log("browser") == []


def test_json_and_csv_hold_the_numbers_of_the_page(report: Path, browser: Chrome) -> None:
    figures = json.loads(report.with_suffix(".json").read_bytes())
    with report.with_suffix(".phases.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["policy"] for row in rows] == ["live"] * 3 + ["paper"] * 3 + ["middle"] * 3
    assert float(rows[7]["reward"]) == figures["policies"]["middle"]["phases"][1]["reward"] == 0.3
    opened(browser, report)
    assert float(rows_under(browser, "Phases")[5][3]) == 0.3


def test_verify_says_that_history_was_reproduced(history: Path) -> None:
    result = CliRunner().invoke(
        main, ["replay", "--from", str(history), "--router", ROUTER, "--verify"]
    )
    assert result.exit_code == 0
    assert "1,500 decisions made again: 1,500 equal, 1,500 of them to the bit." in result.output


def test_verify_of_a_router_without_history_fails(history: Path) -> None:
    result = CliRunner().invoke(
        main, ["replay", "--from", str(history), "--router", "nobody", "--verify"]
    )
    assert result.exit_code == 1


@pytest.mark.looks
def test_alerts_are_ticks_in_the_colour_of_their_policy(tmp_path: Path, browser: Chrome) -> None:
    series: dict[str, list[float | None]] = {"one": [1.0, 1.0, 1.0], "two": [None, None, None]}
    chart = Chart("Spend", [0.0, 50.0, 100.0], series, alarms=[(20.0, "two"), (70.0, "two")])
    path = tmp_path / "alerts.html"
    path.write_text(page(Written(title="a", answer="", names=["one", "two"], charts=[chart])))
    opened(browser, path)
    (drawn,) = browser.find_elements("css selector", "figure.chart")
    assert browser.execute_script(DRAWN, drawn, ".alarm", "--c1") == 2
    assert browser.execute_script(DRAWN, drawn, ".alarm", "--c0") == 0


BOXES = """const middle = one => { const box = one.getBoundingClientRect();
      return [box.x + box.width / 2, box.y + box.height / 2]; };
    const all = kind => [...document.querySelectorAll(`.pareto ${kind}`)];
    return Object.fromEntries(['.model', '.star', '.budget', '.mixes', '.tail', '.interval']
      .map(kind => [kind, all(kind).map(middle)]))"""


@pytest.mark.looks
@pytest.mark.parametrize("dear", [1e-2, 5e-4])
def test_the_picture_has_every_point_at_its_place(
    tmp_path: Path, browser: Chrome, dear: float
) -> None:
    models = [Point("a", 1e-4, 0.6, 0.02), Point("maker/b", dear, 0.9, 0.05, measured=False)]
    star, tail = Point("this router", 3e-4, 0.8, 0.01), [(2e-4, 0.7), (2.5e-4, 0.75), (3e-4, 0.8)]
    shown = Pareto(models, star, tail, budget_usd=2e-4)
    path = tmp_path / "picture.html"
    written = Written(
        title="P", answer=shown.sentence(), pareto=shown.document(), facts=shown.facts(9)
    )
    path.write_text(page(written))
    opened(browser, path)
    until(browser, lambda on: on.find_elements("css selector", ".star"))
    at = browser.execute_script(BOXES)
    (a, b), (router,), (budget,) = at[".model"], at[".star"], at[".budget"]
    # From a hundred times on the axis of dollars is logarithmic.
    scale = math.log10 if dear == 1e-2 else float

    def across(cost: float) -> float:
        share = (scale(cost) - scale(1e-4)) / (scale(dear) - scale(1e-4))
        return float(a[0] + (b[0] - a[0]) * share)

    assert router[0] == pytest.approx(across(3e-4), abs=1.5)
    assert budget[0] == pytest.approx(across(2e-4), abs=1.5)
    # The star's box is higher than its middle: its lower points are inside the circle.
    assert router[1] == pytest.approx(a[1] + (b[1] - a[1]) * (0.8 - 0.6) / 0.3, abs=3)
    assert len(at[".mixes"]) == 1 and len(at[".tail"]) == 2 and len(at[".interval"]) == 2
    assert len(browser.find_elements("css selector", ".model.expected")) == 1
    words = [one.text for one in browser.find_elements("css selector", ".pareto .word")]
    assert sorted(words) == ["a", "b", "this router"]
    assert browser.get_log("browser") == []
