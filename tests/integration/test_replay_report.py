"""The command writes a report that a real browser draws without a network."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from selenium.webdriver import Chrome

from benchmarks.paper.history import ROUTER, write_history
from streams.cli import main
from streams.demo.report import Report
from streams.demo.shocks import SHOCKS
from tests.integration.browsing import chromium
from tests.unit.test_cli_demo import played, scenario

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


def test_a_browser_draws_every_line_and_asks_for_nothing_else(
    report: Path, browser: Chrome
) -> None:
    browser.get("about:blank")
    browser.get_log("performance")  # what the browser's own start page asked for
    browser.get(report.as_uri())
    assert "Quality <falls> & recovers" in browser.title
    charts = browser.find_elements("css selector", "svg.chart")
    titles = [chart.get_attribute("aria-label") for chart in charts]
    assert titles[:2] == ["Spend ÷ budget", "Mean reward"] and "Share of middle" in titles
    for chart in charts[:2]:
        sizes = [path.size for path in chart.find_elements("css selector", ".line path")]
        assert len(sizes) == 3 and all(size["width"] > 300 for size in sizes)
        assert len(chart.find_elements("css selector", ".mark")) == 2
    assert len(browser.find_elements("css selector", "#phases tbody tr")) == 9
    assert browser.find_elements("css selector", "#alerts tbody tr")
    assert browser.execute_script(
        "return document.documentElement.scrollWidth <= window.innerWidth"
    )
    assert browser.get_log("browser") == []
    asked = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    urls = [
        entry["params"]["request"]["url"]
        for entry in asked
        if entry["method"] == "Network.requestWillBeSent"
    ]
    assert urls == [report.as_uri()]


def test_the_answer_comes_first_and_events_are_numbered_in_the_charts(
    report: Path, browser: Chrome
) -> None:
    browser.get(report.as_uri())
    answer = browser.find_element("css selector", "h1 + .answer").text
    assert re.match(r"(live|middle|paper) earned 0\.\d{3} per request, at \$", answer)
    others = [item.text for item in browser.find_elements("css selector", ".answer + ul li")]
    assert len(others) == 2 and all("±" in other for other in others)
    page = browser.find_element("css selector", "body").text
    assert "Over 1,500 requests" in page and "pbstream" in page
    assert "1 at request" in page
    first = browser.find_element("css selector", "svg.chart")
    assert [number.text for number in first.find_elements("css selector", ".number")] == [
        "1",
        "2",
    ]
    (points,) = re.findall(r"mean of (\d+) requests", page)
    assert int(points) >= 20


def _luminance(colour: str) -> float:
    parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
    linear = [
        part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    return float(np.dot(linear, (0.2126, 0.7152, 0.0722)))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_and_lines_have_contrast_in_light_and_in_dark(
    report: Path, browser: Chrome, scheme: str
) -> None:
    browser.execute_cdp_cmd(
        "Emulation.setEmulatedMedia",
        {"features": [{"name": "prefers-color-scheme", "value": scheme}]},
    )
    browser.get(report.as_uri())
    style = "return getComputedStyle(arguments[0])[arguments[1]]"
    paper = _luminance(
        browser.execute_script(
            style, browser.find_element("css selector", "body"), "backgroundColor"
        )
    )
    assert (paper > 0.5) == (scheme == "light")
    looked_at = (
        ("p.note", "color", 4.5),
        ("svg text", "fill", 4.5),
        ("svg .line path", "stroke", 3.0),
        ("td", "color", 4.5),
    )
    for selector, kind, least in looked_at:
        for element in browser.find_elements("css selector", selector)[:5]:
            shown = _luminance(browser.execute_script(style, element, kind))
            assert (max(shown, paper) + 0.05) / (min(shown, paper) + 0.05) >= least, (
                selector,
                scheme,
            )


def test_on_a_telephone_nothing_is_cut_off_at_the_side(report: Path, browser: Chrome) -> None:
    narrow = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", narrow)
    browser.get(report.as_uri())
    assert browser.execute_script("return window.innerWidth") == 390
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 390
    sizes = (
        "return [...document.querySelectorAll('svg text')].map(one => "
        "one.getBoundingClientRect().height)"
    )
    assert min(size for size in browser.execute_script(sizes) if size) >= 9
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_json_and_csv_hold_the_numbers_of_the_page(report: Path, browser: Chrome) -> None:
    figures = json.loads(report.with_suffix(".json").read_bytes())
    with report.with_suffix(".phases.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["policy"] for row in rows] == ["live"] * 3 + ["paper"] * 3 + ["middle"] * 3
    assert float(rows[7]["reward"]) == figures["policies"]["middle"]["phases"][1]["reward"] == 0.3
    browser.get(report.as_uri())
    shown = browser.find_element(
        "css selector", "#phases tbody tr:nth-child(6) td:nth-child(4)"
    ).text
    assert float(shown) == 0.3


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


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_of_the_demo_reads_in_the_dark_and_on_a_telephone(
    tmp_path: Path, browser: Chrome, scheme: str
) -> None:
    of = SHOCKS["price-rise"](scenario(250))
    Report(of, played(of), "live", "price-rise").save(tmp_path)
    browser.execute_cdp_cmd(
        "Emulation.setEmulatedMedia",
        {"features": [{"name": "prefers-color-scheme", "value": scheme}]},
    )
    narrow = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", narrow)
    browser.get((tmp_path / "demo.html").as_uri())
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 390
    style = "return getComputedStyle(arguments[0])[arguments[1]]"
    ours = browser.find_element("css selector", "tr.ours")
    for element, under in ((browser.find_element("css selector", "p"), "body"), (ours, "tr.ours")):
        ground = browser.find_element("css selector", under)
        paper = _luminance(browser.execute_script(style, ground, "backgroundColor"))
        ink = _luminance(browser.execute_script(style, element, "color"))
        assert (paper > 0.5) == (scheme == "light")
        assert (max(ink, paper) + 0.05) / (min(ink, paper) + 0.05) >= 4.5
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
