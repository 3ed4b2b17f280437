"""The dashboard in a real browser: what it shows is what the topics say, and nothing runs that a
topic holds.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit
from uuid import uuid4

import httpx
import numpy as np
import pytest
import uvicorn
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from commands.broker.wire import free_ports
from commands.demo.demo_clients import Traffic
from commands.demo.demo_play import Scenario
from commands.demo.player import Player
from doors.gateway.api_keys import Keys, new_key
from drawing import numbers
from drawing.numbers import NO_PRICE, UNTIL, dual
from drawing.pareto import Pareto
from schemas import (
    AlertRaised,
    LambdaUpdated,
    ModelDeclared,
    RouteDecided,
    RouterDeclared,
    encode,
)
from streams.log.service_topics import create_topics
from streams.settings import Settings, load_settings
from tests.integration.browsing import (
    ENTER,
    NETWORK_CHANGED,
    SHOTS,
    TAB,
    faults,
    fits,
    follow,
    load,
    violations,
)
from tests.integration.commands import done, new_service, running_worker, until
from tests.integration.forked import inherited, start
from tests.watching.dashboard.test_dashboard_folds import (
    NOW,
    Record,
    bill,
    label,
    route,
    standing,
    state,
)
from watching.dashboard.assets import FOLDERS
from watching.dashboard.serve_dashboard import server_of
from watching.dashboard.visitors import Sessions
from watching.joined import Joined
from watching.tally import Tally

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

CSS = "css selector"
ROUTER = "chat.v1"
MARKUP = "<img src=x onerror=alert(1)>"
MODELS = ("small", MARKUP, "large")
COUNT, DIMENSIONS = 240, 4
KEY, LINE = new_key("ada", routers="*")
PATIENCE = 60.0


def played() -> Scenario:
    """Return a course with a change of prices and of the budget on its way."""
    rng = np.random.default_rng(5)

    def declared(factor: float, budget: float) -> RouterDeclared:
        prices = zip(MODELS, (0.1, 0.5 * factor, 5.0), strict=True)
        models = {
            name: ModelDeclared(input_price_per_m=p, output_price_per_m=2 * p, onboarding_pulls=5)
            for name, p in prices
        }
        return RouterDeclared(
            router_id=ROUTER,
            models=models,
            budget_usd_per_request=budget,
            dimensions=DIMENSIONS,
        )

    return Scenario(
        models=MODELS,
        prompts=[f"prompt {number}" for number in range(COUNT)],
        rewards=np.clip(np.array([0.7, 0.85, 0.95]) + rng.normal(0, 0.05, (COUNT, 3)), 0, 1),
        costs=np.array([3e-5, 3e-4, 3e-3]) * rng.lognormal(0, 0.3, (COUNT, 3)),
        available=np.ones((COUNT, 3), dtype=bool),
        declarations=((0, declared(1.0, 4e-4)), (120, declared(0.5, 3e-4))),
        contexts=np.column_stack([rng.normal(size=(COUNT, DIMENSIONS - 1)), np.ones(COUNT)]),
    )


@pytest.fixture(scope="module")
def settings(kafka: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Settings]:
    made = new_service(kafka, "dash")
    log = tmp_path_factory.mktemp("dash") / "worker.log"
    with running_worker(made, environment={"PB_ENCODER_BACKEND": "none"}, log=log):
        asyncio.run(Player(made, Traffic(played(), in_flight=20)).play())
        yield made


@contextmanager
def dashboard(
    bootstrap: str, prefix: str, folder: Path, *options: str, **environment: str
) -> Iterator[str]:
    port = free_ports(1)[0]
    given = {
        "PB_BOOTSTRAP": bootstrap,
        "PB_PREFIX": prefix,
        "PB_DASHBOARD_PORT": str(port),
        **environment,
    }
    log = folder / f"dashboard-{port}.log"
    process = start(["commands.cli", "dashboard", *options], log=log, env=inherited() | given)
    address = f"http://127.0.0.1:{port}/"
    try:
        until(lambda: reached(address + "livez"), f"a dashboard; {log.read_text()}")
        yield address
    finally:
        process.terminate()
        assert process.wait(20) == 0, log.read_text()


def reached(address: str) -> bool:
    try:
        with urllib.request.urlopen(address, timeout=2.0):
            return True
    except OSError:
        return False


@pytest.fixture(scope="module")
def address(settings: Settings, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with dashboard(
        settings.bootstrap,
        settings.prefix,
        tmp_path_factory.mktemp("board"),
        "--admin",
        PB_DASHBOARD_ADMIN_KEYS=LINE,
        PB_APP_ID=settings.app_id,
        PB_PARTITIONS=str(settings.partitions),
    ) as found:
        until(lambda: reached(found + "readyz"), "the past to be read")
        yield found


@pytest.fixture(autouse=True)
def quiet(browser: Chrome) -> Iterator[None]:
    browser.get_log("browser")
    yield
    # What is fetched again by itself may fail where a network of the machine comes or goes.
    assert [one for one in faults(browser) if NETWORK_CHANGED not in one] == []


@pytest.fixture(scope="module")
def told(settings: Settings) -> dict[str, list[Any]]:
    """Return every record of the router, as a plain consumer reads it."""

    async def read() -> dict[str, list[Any]]:
        found: dict[str, list[Any]] = {}
        for name in ("routes", "costs", "rewards", "lambda"):
            found[name] = []
            async with AIOKafkaConsumer(bootstrap_servers=settings.bootstrap) as consumer:
                places = [
                    TopicPartition(settings.topic(name), number)
                    for number in range(settings.partitions)
                ]
                consumer.assign(places)
                await consumer.seek_to_beginning()
                ends = await consumer.end_offsets(places)
                while any([await consumer.position(place) < ends[place] for place in places]):
                    for batch in (await consumer.getmany(timeout_ms=200)).values():
                        found[name] += [json.loads(one.value) for one in batch]
        return found

    return asyncio.run(read())


def text(browser: Chrome, selector: str) -> str:
    return browser.execute_script(
        "return document.querySelector(arguments[0])?.textContent ?? ''", selector
    )


def open_page(browser: Chrome, address: str, page: str, *, ready: str) -> None:
    browser.get("about:blank")
    load(browser, address + page)
    until(lambda: browser.find_elements(CSS, ready), ready)


def facts(browser: Chrome) -> dict[str, str]:
    """Return the numbers beside the picture, by their names."""
    script = """return [...document.querySelectorAll('.tiles > div')].map(
        one => [one.firstChild, one.lastChild.firstChild].map(part => part.textContent))"""
    return dict(browser.execute_script(script))


def picture(told: dict[str, list[Any]]) -> Pareto:
    """Return the picture that the topics tell."""
    tally, joined = Tally(), Joined[object]()
    for one in told["routes"]:
        decision = RouteDecided.model_validate_json(json.dumps(one))
        assert joined.add(decision)
        tally.decide(decision)
    for name, take, field in (
        ("costs", tally.bill, "cost_usd"),
        ("rewards", tally.label, "reward"),
    ):
        for one in told[name]:
            request = joined.get(ROUTER, one["request_id"])
            assert request is not None
            take(request, one[field])
    return tally.pareto(MODELS, budget_usd=told["lambda"][-1]["budget_usd_per_request"])


def cells(browser: Chrome, selector: str) -> list[list[str]]:
    script = """return [...document.querySelectorAll(arguments[0])].map(
        row => [...row.children].map(cell => cell.textContent))"""
    return browser.execute_script(script, selector)


def test_the_table_says_what_the_topics_say(
    address: str, browser: Chrome, told: dict[str, list[Any]]
) -> None:
    open_page(browser, address, "", ready=".rows .row a[href]")
    state = told["lambda"][-1]
    ratio = state["spend_usd"] / state["settled"] / state["budget_usd_per_request"]
    quality = float(np.mean([event["reward"] for event in told["rewards"]]))
    expected = picture(told)
    (row,) = cells(browser, ".rows .row")
    assert row[0] == ROUTER
    assert float(row[1].removeprefix("÷ budget")) == pytest.approx(ratio, abs=6e-4)
    assert row[3] == f"Quality{quality:.3f}"
    assert row[4] == f"Saved{numbers.number(100 * (expected.saved or 0.0), 0)}%"
    # Of a single router the page begins with its own answer.
    assert text(browser, ".lead-answer") == expected.sentence()
    assert facts(browser) == {name: value for name, value, _ in expected.facts(COUNT)}
    assert "0 in flight" in text(browser, "main")
    heads = browser.execute_script(
        "return [...document.querySelectorAll('.heads button')].slice(1).map(one => one.title)"
    )
    assert len(heads) == 9 and all(heads)


def test_one_router_says_what_the_topics_say(
    address: str, browser: Chrome, told: dict[str, list[Any]]
) -> None:
    open_page(browser, address, f"#/router/{ROUTER}", ready="figure.chart svg")
    model_of = {route["request_id"]: route["model"] for route in told["routes"]}
    labels = {model: [] for model in MODELS}
    bills = {model: [] for model in MODELS}
    for event in told["rewards"]:
        labels[model_of[event["request_id"]]].append(event["reward"])
    for event in told["costs"]:
        bills[model_of[event["request_id"]]].append(event["cost_usd"])
    rows = {row[0]: row for row in cells(browser, ".scroll tbody tr")}
    assert set(rows) == set(MODELS)
    for model, row in rows.items():
        mean = np.mean(labels[model])
        doubt = 1.96 * np.std(labels[model], ddof=1) / len(labels[model]) ** 0.5
        assert row[4] == f"{mean:.3f} ± {doubt:.3f} ({len(labels[model])})"
        dollars = float(row[3].removeprefix("$").replace("−", "-"))
        assert dollars == pytest.approx(np.mean(bills[model]), rel=0.01)
    # Of the last hundred decisions and those of the same moment.
    chosen = Counter(route["model"] for route in told["routes"])
    shares = {model: float(row[6].removesuffix("%")) / 100 for model, row in rows.items()}
    assert sum(shares.values()) == pytest.approx(1.0, abs=0.02)
    assert max(shares, key=lambda model: shares[model]) in chosen
    assert rows[MARKUP][1] == "$0.25 / $0.5"
    for model, row in rows.items():
        mean, deviation = expected_now(told["routes"], model)
        assert row[5] == f"{mean:.3f} ± {deviation:.3f}"
    news = text(browser, ".news")
    assert "budget $0.0004 → $0.0003" in news
    assert f"{MARKUP}: $0.5/$1 → $0.25/$0.5" in news
    assert len(browser.find_elements(CSS, ".chart svg")) == 4


def expected_now(routes: list[Any], model: str) -> tuple[float, float]:
    """Return what the decisions expected of a model's quality, and how far that may be off: means
    that forget, of some 200 decisions.
    """
    seen = [one for route in routes for one in route["candidates"] if one["model"] == model]
    mean = deviation = 0.0
    for n, candidate in enumerate(seen, start=1):
        weight = max(1 / 200, 1 / n)
        mean += weight * (candidate["mean"] - mean)
        deviation += weight * (candidate["deviation"] - deviation)
    return mean, deviation


def test_a_decision_shows_the_doubt_that_the_topic_says(
    address: str, browser: Chrome, told: dict[str, list[Any]]
) -> None:
    route = told["routes"][200]
    open_page(browser, address, f"#/decision/{ROUTER}/{route['request_id']}", ready="svg.whisker")
    rows = {row[0]: row for row in cells(browser, ".scroll tbody tr") if row[1].startswith("±")}
    assert set(rows) == set(MODELS)
    for one in route["candidates"]:
        shown = [cell.replace("−", "-") for cell in rows[one["model"]]]
        assert shown[1] == f"± {one['deviation']:.4f}"
        terms = (one["shared"], one["mean"] - one["shared"])
        assert [float(cell) for cell in shown[2:4]] == pytest.approx(terms, abs=6e-5)
        low, high = (float(cell.removeprefix("$")) for cell in shown[4].split(" to "))
        assert (low, high) == pytest.approx((one["cost_low_usd"], one["cost_high_usd"]), rel=0.01)
        assert float(shown[5].removesuffix("%")) == pytest.approx(100 * one["unpaid"], abs=0.06)
    assert len(browser.find_elements(CSS, "svg.whisker path.spread")) == len(MODELS)


def test_a_decision_leads_with_its_sentence_and_has_a_row_for_each_model(
    address: str, browser: Chrome, told: dict[str, list[Any]]
) -> None:
    route = told["routes"][200]
    open_page(browser, address, f"#/decision/{ROUTER}/{route['request_id']}", ready="svg.whisker")
    assert text(browser, ".answer").startswith(f"{route['model']}: it")
    tables = "section[aria-label='Candidates'] .scroll"
    rows = cells(browser, f"{tables}:first-child tbody tr")
    assert rows[0][0] == f"→ {route['model']}" and rows[0][-1] == "chosen"
    candidates = {one["model"]: one for one in route["candidates"]}
    for name, earns, _, costs, bills, why in rows:
        one = candidates[name.removeprefix("→ ")]
        assert earns == f"{one['mean']:.3f} ± {one['deviation']:.3f}"
        dollars = float(costs.removeprefix("$").replace("−", "-"))
        assert dollars == pytest.approx(one["expected_cost_usd"], rel=1e-3)
        assert " to $" in bills and why
    assert not browser.find_element(CSS, "details.scores table").is_displayed()
    scored = cells(browser, "details.scores .scroll:nth-of-type(1) tbody tr")
    assert len(scored) == len(MODELS)
    for row in scored:
        mean, bonus, penalty, score = (float(cell.replace("−", "-")) for cell in row[1:5])
        assert mean + bonus + penalty == pytest.approx(score, abs=2.1e-4)
    page = text(browser, "main")
    assert route["model"] in page and "0." in page and "null" not in page
    cost = next(one for one in told["costs"] if one["request_id"] == route["request_id"])
    label = next(one for one in told["rewards"] if one["request_id"] == route["request_id"])
    assert "Bill: $" in page and f"Label: {label['reward']} by judge" in page
    bill = float(re.search(r"Bill: \$([\d.e−]+\d)", page)[1].replace("−", "-"))  # type: ignore[index]
    assert bill == pytest.approx(cost["cost_usd"], rel=0.01)
    assert page.count("behind: ") + page.count("chosen") + page.count("would cost") >= 2


def test_numbers_are_written_as_terminals_write_them(address: str, browser: Chrome) -> None:
    open_page(browser, address, "#/", ready=".row")
    values = [None, 0.0, -0.0001, 0.25, -0.25, 12.5, -537_000.4, 1e6]
    written = browser.execute_async_script(
        """
        const [values, done] = arguments;
        import("/assets/format.js").then((format) => done(values.map((value) => [
            format.fixed(value), format.signed(value), format.percent(value), format.dual(value, 4),
            format.until(value)])));
        """,
        values,
    )
    for value, (fixed, signed, percent, price, until_then) in zip(values, written, strict=True):
        assert (fixed, signed) == (numbers.number(value), numbers.number(value, signed=True))
        assert percent == ("–" if value is None else f"{numbers.number(100 * value, 0)}%")
        if value is None or value >= 0.0:
            assert price == dual(value)
            assert until_then == (UNTIL if price == NO_PRICE else "")


def test_a_request_that_nobody_knows_is_said_so(address: str, browser: Chrome) -> None:
    open_page(browser, address, f"#/decision/{ROUTER}/nobody", ready="main .fault")
    assert "no decision" in text(browser, "main .fault")


def test_what_topics_hold_stays_text(address: str, browser: Chrome) -> None:
    open_page(browser, address, f"#/router/{ROUTER}", ready="figure.chart svg")
    assert browser.find_elements(CSS, "main img") == []
    assert MARKUP in text(browser, "main")
    open_page(browser, address, "#/router/%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E", ready="h1")
    assert browser.find_elements(CSS, "img") == [] and MARKUP in text(browser, "h1")


def test_the_page_takes_nothing_from_elsewhere(address: str, browser: Chrome) -> None:
    with urllib.request.urlopen(address) as answer:
        policy = answer.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy
    open_page(browser, address, f"#/router/{ROUTER}", ready="figure.chart svg")
    script = "return performance.getEntriesByType('resource').map(one => one.name)"
    loaded = browser.execute_script(script)
    assert all(name.startswith(address) for name in loaded)
    named = {urlsplit(name).path.rpartition("/")[2] for name in loaded}
    files = [path for folder in FOLDERS for path in folder.rglob("*") if path.name in named]
    assert len(files) > 5 and sum(path.stat().st_size for path in files) <= 125_000
    ran = browser.execute_async_script(
        """const done = arguments[0], script = document.createElement('script');
        addEventListener('securitypolicyviolation', () => done('refused'), {once: true});
        try { script.text = 'window.ran = true'; document.body.append(script); }
        catch { done('refused'); }
        setTimeout(() => done(window.ran ? 'ran' : 'not run'), 500)"""
    )
    assert ran != "ran"
    browser.get_log("browser")


CUT = """return [...document.querySelectorAll('.scroll')].filter(
    one => one.scrollWidth > one.clientWidth).map(one => one.ariaLabel)"""
OVERLAPPING = """const meet = (a, b) => a.left < b.right && b.left < a.right
      && a.top < b.bottom && b.top < a.bottom;
    return [...document.querySelectorAll('.pareto svg')].flatMap(picture => {
      const words = [...picture.querySelectorAll('.word')], all = picture.getBoundingClientRect();
      const boxes = words.map(one => one.getBoundingClientRect());
      const text = at => words[at].textContent;
      return boxes.flatMap((box, at) => [
        ...boxes.slice(0, at).flatMap((one, of) => meet(box, one) ? [[text(at), text(of)]] : []),
        ...(box.right > all.right + 1 || box.left < all.left - 1 ? [[text(at)]] : [])]); })"""
GRIDS = """return [...document.querySelectorAll('.tiles, .charts')].map(grid => [...grid.children]
    .map(one => one.getBoundingClientRect()).map(box => [box.x, box.y, box.width, box.height]
    .map(Math.round)))"""
SIZES = """return [...new Set([...document.querySelectorAll('main *, header *')].filter(one =>
    one.checkVisibility() && [...one.childNodes].some(part => part.nodeType === 3 &&
    part.textContent.trim())).map(one => parseFloat(getComputedStyle(one).fontSize)))]"""
LEGENDS = """return [...document.querySelectorAll('main *')].filter(one => /legend/i.test(
    one.tagName + one.className) || /: --/.test(one.firstChild?.nodeValue ?? ''))
    .map(one => one.outerHTML)"""
SCALE = (12, 15, 18.75, 23.4375, 29.295)


def uneven(grid: list[list[int]]) -> list[Any]:
    """Return what is wrong with boxes (x, y, width, height) that should stand in rows and columns
    of one size.
    """
    wrong: list[Any] = [sizes for sizes in (_spread(grid, 2), _spread(grid, 3)) if len(sizes) > 1]
    columns, rows = _spread(grid, 0), _spread(grid, 1)
    return wrong if len(columns) * len(rows) == len(grid) else [*wrong, (columns, rows)]


def _spread(grid: list[list[int]], at: int) -> list[int]:
    """Return the different values of a column, a pixel of rounding apart."""
    values = sorted({box[at] for box in grid})
    return [one for n, one in enumerate(values) if n == 0 or one - values[n - 1] > 1]


# Widths change the layout and schemes the colours: each of both.
@pytest.mark.looks
@pytest.mark.parametrize(("width", "scheme"), [(390, "light"), (768, "dark"), (1440, "light")])
def test_every_page_reads_in_any_light_and_at_any_width(
    address: str, browser: Chrome, told: dict[str, list[Any]], scheme: str, width: int
) -> None:
    SHOTS.mkdir(parents=True, exist_ok=True)
    media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    screen = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    request_id = told["routes"][200]["request_id"]
    pages = {
        "routers": ("", ".rows .row a[href]"),
        "router": (f"#/router/{ROUTER}", "figure.chart svg"),
        "decision": (f"#/decision/{ROUTER}/{request_id}", "svg.whisker"),
        "compare": (f"#/compare/{ROUTER}/nobody", "figure.chart svg"),
    }
    try:
        for name, (page, ready) in pages.items():
            open_page(browser, address, page, ready=ready)
            assert browser.execute_script("return document.documentElement.scrollWidth") <= width
            assert width > 500 or browser.execute_script(CUT) == []
            grids = browser.execute_script(GRIDS)
            assert name == "decision" or [uneven(grid) for grid in grids] == [[]] * len(grids)
            assert len(grids) == {"routers": 1, "router": 2, "decision": 1, "compare": 1}[name]
            sizes = browser.execute_script(SIZES)
            assert not {one for one in sizes if min(abs(one - it) for it in SCALE) > 0.1}
            assert browser.execute_script(LEGENDS) == []
            assert name == "decision" or browser.execute_script(OVERLAPPING) == []
            assert browser.save_screenshot(str(SHOTS / f"{name}-{scheme}-{width}.png"))
            faults = violations(browser)
            assert faults == [], f"{name}: {json.dumps(faults, indent=1)}"
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


@pytest.mark.looks
def test_the_keyboard_reaches_a_router_and_its_decisions(address: str, browser: Chrome) -> None:
    open_page(browser, address, "", ready=".rows .row a[href]")
    names = []
    for _ in range(20):
        browser.switch_to.active_element.send_keys(TAB)
        names.append(browser.switch_to.active_element.text or "search")
        if browser.execute_script("return Boolean(document.activeElement.closest('.rows'))"):
            break
    assert names[0] == "Skip to the content" and names[-1] == ROUTER and "search" in names
    browser.switch_to.active_element.send_keys(ENTER)
    until(lambda: browser.find_elements(CSS, "figure.chart svg"), "the router's page")
    field = browser.find_element("id", "request")
    field.send_keys("r-00001", ENTER)
    until(lambda: browser.find_elements(CSS, "svg.whisker"), "the decision")
    assert browser.title.startswith("Decision r-00001")


def test_the_search_finds_routers_by_their_models(address: str, browser: Chrome) -> None:
    open_page(browser, address, "", ready=".rows .row a[href]")
    field = browser.find_element("id", "search")
    field.send_keys("no such thing")
    until(lambda: "No router" in text(browser, ".empty"), "that nothing was found")
    field.clear()
    field.send_keys("larg")
    until(lambda: cells(browser, ".rows .row"), "the router that has the model")


def test_decisions_are_filtered_by_model_reason_cost_and_label(
    address: str, browser: Chrome, told: dict[str, list[Any]]
) -> None:
    labels = {one["request_id"]: one["reward"] for one in told["rewards"]}
    bills = {one["request_id"]: one["cost_usd"] for one in told["costs"]}
    chosen = Counter(one["model"] for one in told["routes"]).most_common(1)[0][0]
    of_model = [one for one in told["routes"] if one["model"] == chosen]
    reason = of_model[-1]["reason"]
    dollars, earned = (
        float(np.median([known[one["request_id"]] for one in of_model]))
        for known in (bills, labels)
    )
    wanted = [
        one["request_id"]
        for one in sorted(of_model, key=lambda one: -one["seq"])
        if one["reason"] == reason
        and bills[one["request_id"]] >= dollars
        and labels[one["request_id"]] <= earned
    ]
    asked = {"model": chosen, "reason": reason, "cost_from": dollars, "label_to": earned}
    answer = httpx.get(f"{address}api/routers/{ROUTER}/decisions", params=asked).json()
    assert [one["request_id"] for one in answer["decisions"]] == wanted[:25] != []
    assert all(one["cost_usd"] == bills[one["request_id"]] for one in answer["decisions"])
    for wrong in ({"cost_from": "nan"}, {"label_to": "much"}, {"model": "x" * 201}):
        path = f"{address}api/routers/{ROUTER}/decisions"
        assert httpx.get(path, params=wrong).status_code in (400, 422)
    open_page(browser, address, f"#/router/{ROUTER}", ready="figure.chart svg")
    rows = "section[aria-labelledby=decisions] tbody tr"
    browser.find_element(CSS, ".filters button").click()
    until(lambda: len(cells(browser, rows)) == 25, "the last decisions")
    browser.find_element(CSS, f"#of-model option[value={json.dumps(chosen)}]").click()
    until(lambda: {row[2] for row in cells(browser, rows)} == {chosen}, "those of a model")
    browser.find_element(CSS, f"#of-reason option[value={reason}]").click()
    for name, value in (("cost-from", dollars), ("label-to", earned)):
        browser.find_element("id", f"of-{name}").send_keys(repr(value), TAB)
    shown = lambda: [row[0] for row in cells(browser, rows)]  # noqa: E731
    until(lambda: shown() == wanted[:25], "those of the cost and the label")
    browser.find_element("id", "of-label-from").send_keys("1", TAB)
    until(lambda: not shown(), "that there is none")
    assert "None of the last" in text(browser, "section[aria-labelledby=decisions]")
    fits(browser)


def test_an_alarm_leads_to_its_moment_and_to_the_decisions_before_it(
    address: str, browser: Chrome, settings: Settings, told: dict[str, list[Any]]
) -> None:
    example = cast(Any, AlertRaised.model_config["json_schema_extra"])["examples"][0]
    given = {**example, "router_id": ROUTER, "model": "small"}
    alert = AlertRaised.model_validate_json(json.dumps(given))
    when = datetime.fromisoformat(told["routes"][120]["decided_at"]).timestamp()

    async def send() -> None:
        async with AIOKafkaProducer(bootstrap_servers=settings.bootstrap) as producer:
            await producer.send_and_wait(
                settings.topic("alerts"), encode(alert), ROUTER.encode(), None, int(1000 * when)
            )

    asyncio.run(send())
    open_page(browser, address, "", ready=".rows .row a[href]")
    alarms = f".rows a[href='#/router/{ROUTER}/alarms']"
    until(lambda: browser.find_elements(CSS, alarms), "the alarm").pop().click()
    until(lambda: browser.find_elements(CSS, ".news button"), "the events")
    until(
        lambda: browser.execute_script("return document.activeElement.className") == "news",
        "that the events are in sight",
    )
    (told_of,) = [
        one for one in browser.find_elements(CSS, ".news button") if "quality fell" in one.text
    ]
    told_of.click()
    until(lambda: browser.find_elements(CSS, "figure.chart .pointed"), "its moment")
    rows = "section[aria-labelledby=decisions] tbody tr"
    found = until(lambda: cells(browser, rows), "the decisions before it")
    before = [one for one in told["routes"] if one["model"] == "small" and one["seq"] <= 121]
    assert found[0][0] in {one["request_id"] for one in before[-2:]}
    assert {row[2] for row in found} == {"small"}
    assert "Up to 2" in text(browser, "section[aria-labelledby=decisions]")
    browser.find_element("xpath", "//button[text()='Show the newest']").click()
    newest = max((one for one in told["routes"] if one["model"] == "small"), key=lambda o: o["seq"])
    until(lambda: cells(browser, rows)[0][0] == newest["request_id"], "the newest ones")
    fits(browser)


def test_a_change_on_the_topics_appears_by_itself(
    address: str, browser: Chrome, settings: Settings
) -> None:
    open_page(browser, address, f"#/router/{ROUTER}", ready="figure.chart svg")
    before = text(browser, ".lead-answer"), facts(browser)
    more = Traffic(played(), in_flight=20, request_ids="again")
    asyncio.run(Player(settings, more).play())
    until(lambda: f"{2 * COUNT} decided" in text(browser, "main"), "the new decisions")
    until(lambda: before != (text(browser, ".lead-answer"), facts(browser)), "the new answer")


def test_a_scenario_is_replayed_from_the_page_and_compared(address: str, browser: Chrome) -> None:
    open_page(browser, address, f"#/what-if/{ROUTER}", ready="fieldset.event [name=model] option")
    browser.find_element("id", "name").send_keys("Dearer <b>", ENTER)
    until(lambda: browser.find_elements(CSS, "section.result"), "the result")
    assert text(browser, "section.result h3") == "Dearer <b>"
    rows = cells(browser, "section.result .scroll tbody tr")
    assert {row[0] for row in rows} == {"declared", "recorded"}
    whole = [row for row in rows if row[1] == "all of it"]
    asked = int(whole[0][2].replace(",", ""))
    assert len(whole) == 2 and asked % COUNT == 0
    assert all(0.5 < float(row[3]) < 1.0 for row in rows)
    charts = "section.result figure.chart"
    titles = [one.text for one in browser.find_elements(CSS, f"{charts} h3")]
    assert titles[:2] == ["Spend ÷ budget", "Mean reward"]
    until(lambda: browser.find_elements(CSS, f"{charts} svg"), "a chart")
    svg = browser.find_element(CSS, f"{charts}:nth-of-type(2) svg")
    drawn = svg.get_attribute("aria-label")
    assert re.match(r"Mean reward, at the end: 0\.\d+ declared, 0\.\d+ recorded", drawn or "")
    marks = text(browser, "section.result .events")
    assert marks.startswith("1request") and "budget $0.0004 → $0.0003" in marks
    browser.find_element(CSS, "section.result summary").click()
    more = [one.text for one in browser.find_elements(CSS, f"{charts} h3")]
    assert {f"Share of {model}" for model in MODELS} <= set(more)
    compared = browser.find_elements(CSS, ".pareto .dot")
    assert len(compared) == len(whole)
    # What was is compared with what would be, before the models alone and their mixes.
    assert len(browser.find_elements(CSS, ".pareto .arrow")) <= 1
    assert browser.find_elements(CSS, ".pareto .mixes")
    assert len(browser.find_elements(CSS, ".pareto .model.quiet")) == len(MODELS)
    assert len({one.get_attribute("class") for one in compared}) == len(compared)
    SHOTS.mkdir(parents=True, exist_ok=True)
    assert browser.find_element("tag name", "main").screenshot(str(SHOTS / "what-if.png"))
    fits(browser)


def test_the_page_says_where_the_money_goes_and_what_another_budget_buys(
    address: str, browser: Chrome
) -> None:
    open_page(browser, address, f"#/router/{ROUTER}", ready="figure.chart svg")
    for title, found in (("Where the money goes", "tbody tr"), ("What would another", "svg")):
        box = f"section[aria-label^='{title}'] "
        browser.execute_script("document.querySelector(arguments[0]).click()", box + "button")
        until(lambda there=box + found: browser.find_elements(CSS, there), title)
    rows = cells(browser, "section[aria-label^='Where'] tbody tr")
    shares = [float(re.search(r"\((\d+)%\)", row[2])[1]) for row in rows]  # type: ignore[index]
    assert sum(shares) == pytest.approx(100, abs=len(shares))
    rows = cells(browser, "section[aria-label^='What'] tbody tr")
    assert [row[0] for row in rows][6:] == ["as recorded", *(f"always {m}" for m in sorted(MODELS))]
    assert browser.execute_script(OVERLAPPING) == []
    earned = [float(row[2]) for row in rows[:6]]
    said = "A larger budget earns less" in text(browser, "section[aria-label^='What']")
    # The numbers are rounded: two that look alike may be a little less.
    assert said if earned != sorted(earned) else not said or len(set(earned)) < len(earned)
    fits(browser)


def test_a_study_can_be_cancelled_and_one_runs_at_a_time(address: str, browser: Chrome) -> None:
    open_page(browser, address, f"#/what-if/{ROUTER}", ready="fieldset.event [name=model] option")
    script = """const [path, body, done] = arguments;
        const send = (method, path) => fetch(path, {method, body: method === 'POST' ? body : null,
            headers: {'x-pbstream': '1', 'content-type': 'application/json'}});
        (async () => {
            const first = await (await send('POST', path)).json();
            const second = await send('POST', path);
            const ended = await (await send('DELETE', `${path}/${first.number}`)).json();
            done([first.status, second.status, ended.status]);
        })()"""
    body = json.dumps({"kind": "frontier"})
    path = f"api/routers/{ROUTER}/studies"
    assert browser.execute_async_script(script, path, body) == ["running", 429, "cancelled"]
    forged = browser.execute_async_script(
        "fetch(arguments[0], {method: 'POST', body: '{}'}).then(one => arguments[1](one.status))",
        path,
    )
    assert forged == 403


def sign_in(browser: Chrome) -> None:
    browser.find_element("id", "access").click()
    field = until(lambda: browser.find_elements(CSS, "dialog #key"), "the dialog")[0]
    field.send_keys(KEY, ENTER)
    until(lambda: "sign out" in text(browser, "#access"), "the session")


def test_an_operator_changes_a_router_after_seeing_what_will_change(
    address: str, browser: Chrome, settings: Settings
) -> None:
    open_page(browser, address, f"#/router/{ROUTER}", ready="figure.chart svg")
    assert not browser.find_element(CSS, "section[aria-label^=Change]").is_displayed()
    sign_in(browser)
    filled = "section[aria-label^=Change] fieldset.model input"
    until(lambda: browser.find_elements(CSS, filled), "the form")
    try:
        budget = browser.find_element("id", "change-budget")
        budget.clear()
        budget.send_keys("0.0005")
        browser.find_element("id", "change-leaves-2").click()
        browser.find_element("id", "change-new-model").send_keys("<i>new</i>")
        for name, price in (("in", "0.2"), ("out", "0.4")):
            browser.find_element("id", f"change-new-{name}").send_keys(price)
        browser.find_element("id", "change-new-model").send_keys(ENTER)
        until(lambda: browser.find_elements(CSS, "dialog.confirm"), "the question")
        told = {row[0]: row[1:] for row in cells(browser, "dialog tbody tr")}
        assert told["budget_usd_per_request"] == ["0.0003", "0.0005"]
        assert told["models.<i>new</i>.input_price_per_m"] == ["–", "0.2"]
        assert f"models.{sorted(MODELS)[1]}.input_price_per_m" in told or len(told) > 4
        fits(browser)
        browser.find_element(CSS, "dialog button.first").click()
        until(lambda: "In force" in text(browser, "section[aria-label^=Change]"), "the change")
        until(lambda: "<i>new</i> joins" in text(browser, ".news"), "it as an event")
        assert browser.find_elements(CSS, "main i") == []
    finally:
        browser.find_element("id", "access").click()
        until(lambda: "sign in" in text(browser, "#access"), "the session's end")


def test_a_change_on_what_is_not_in_force_any_more_is_refused(
    address: str, browser: Chrome
) -> None:
    open_page(browser, address, f"#/router/{ROUTER}", ready="figure.chart svg")
    script = """const [path, body, done] = arguments;
        fetch(path, {method: 'POST', body,
            headers: {'x-pbstream': '1', 'content-type': 'application/json'}})
        .then(async one => done([one.status, (await one.json()).reason]))"""
    changes = [{"path": ["budget_usd_per_request"], "value": 0.001}]
    path, body = f"api/routers/{ROUTER}/declaration", {"based_on": 0, "changes": changes}
    call = lambda: browser.execute_async_script(script, path, json.dumps(body))  # noqa: E731
    assert call() == [403, "forbidden"]
    sign_in(browser)
    assert call() == [422, "stale_config"]
    body["changes"] = [{"path": ["snapshot"], "value": "x"}]
    assert call()[1] in ("invalid_field", "stale_config")


def test_a_body_that_is_no_plain_json_is_refused_wherever_one_is_taken(address: str) -> None:
    with httpx.Client(base_url=address, headers={"x-pbstream": "1"}, timeout=PATIENCE) as operator:
        assert operator.post("api/session", json={"key": KEY}).status_code == 200
        router = f"api/routers/{ROUTER}"
        spoiled = (
            *(b'{"x":' * deep + b"1" + b"}" * deep for deep in (250, 300, 1000, 60_000 // 6)),
            b'{"key": "\\ud800"}',
            b'{"key": "\xff"}',
            b'{"key": NaN}',
            b"7",
            b"",
        )
        strange = (
            b"9" * 400,
            b"18446744073709551616",
            b"1e308",
            b"true",
            b'{"x":' * 190 + b"1" + b"}" * 190,
        )
        for path in ("api/session", *(f"{router}/{w}" for w in ("preview", "declaration"))):
            for body in spoiled:
                _refused(operator, path, body)
        for value in (*strange, *spoiled):
            change = b'{"changes": [{"path": ["budget_usd_per_request"], "value": %s}]}'
            _refused(operator, f"{router}/preview", change % value, least=200)  # or its faults
            change = b'{"based_on": %s, "changes": [{"path": ["models", "m"], "value": %s}]}'
            _refused(operator, f"{router}/declaration", change % (value, value))
            _refused(operator, f"{router}/preview", b'{"changes": %s}' % value)
            _refused(operator, f"{router}/studies", b'{"kind": %s}' % value)
            study = b'{"kind": "what_if", "since": %s, "scenario": {"name": %s}}'
            _refused(operator, f"{router}/studies", study % (value, value))
        sent = operator.post("api/session", content=b'{"key": 1}', headers={"content-type": "x/y"})
        assert sent.status_code == 415


def _refused(client: httpx.Client, path: str, body: bytes, *, least: int = 400) -> None:
    sent = client.post(path, content=body, headers={"content-type": "application/json"})
    assert least <= sent.status_code < 500, (path, body[:40], sent.text)


@contextmanager
def served(
    settings: Settings,
    sessions: Sessions | None = None,
    *,
    states: int = 0,
    events: Sequence[tuple[str, Any]] = (),
    records: Sequence[tuple[str, Any, float]] = (),
) -> Iterator[str]:
    """Serve a dashboard from this process, one that has read so many routers' states, these events
    and these records with their times already.
    """
    made = server_of(settings, sessions or Sessions(None, None))
    example = cast(Any, LambdaUpdated.model_config["json_schema_extra"])["examples"][0]
    for number in range(states):
        value = json.dumps({**example, "router_id": f"r{number:05d}"}).encode()
        record = SimpleNamespace(key=b"r%05d" % number, value=value, timestamp=0, offset=number)
        made.board.fleet.observe("lambda", record, now=time.time())
    for name, event, at in (*((*one, NOW) for one in events), *records):
        given: Any = Record(event, key=event.router_id, at=at)
        made.board.fleet.observe(name, given, now=at)
    server = uvicorn.Server(made.config)
    thread = Thread(target=server.run)
    thread.start()
    try:
        until(lambda: server.started, "the server")
        yield f"http://127.0.0.1:{settings.dashboard_port}/"
    finally:
        made.board.closing.set()
        server.should_exit = True
        thread.join(30)


def test_without_routers_the_page_says_what_to_do(kafka: str, browser: Chrome) -> None:
    name, port = f"empty-{uuid4().hex[:8]}", free_ports(1)[0]
    empty = load_settings(bootstrap=kafka, prefix=f"{name}.", partitions=1, dashboard_port=port)
    asyncio.run(create_topics(empty))
    with served(empty) as address:
        load(browser, address)
        until(lambda: "pbstream models add" in text(browser, ".empty"), "what to do")
        assert not browser.find_element("id", "search").is_displayed()
        fits(browser)
        browser.get("about:blank")


def test_a_router_without_a_decision_says_what_to_type_and_draws_nothing(
    settings: Settings, address: str, browser: Chrome
) -> None:
    words = "models add small --input-price 1 --output-price 2 --dimensions 3 --router quiet"
    done(settings, *words.split())
    open_page(browser, address, "#/router/quiet", ready=".empty pre")
    until(lambda: not browser.find_elements(CSS, ".empty[hidden] pre"), "what to type")
    assert "pbstream request" in text(browser, ".empty pre")
    assert "--router quiet" in text(browser, ".empty pre")
    charts = browser.find_elements(CSS, "figure.chart")
    assert charts and not any(chart.is_displayed() for chart in charts)
    fits(browser)


def away() -> Settings:
    broker, port = free_ports(2)
    return load_settings(bootstrap=f"127.0.0.1:{broker}", dashboard_port=port)


def test_a_new_router_has_a_list_of_first_steps_each_ticked_when_it_was_seen(
    browser: Chrome,
) -> None:
    made = [("routes", route("r1")), ("costs", bill("r1", 1e-4)), ("rewards", label("r1", 0.9))]
    for count, step in enumerate(("pbstream cost", "pbstream reward", ""), start=1):
        with served(away(), events=made[:count]) as address:
            open_page(browser, address, "#/router/chat", ready=".pareto .model")
            steps = browser.find_element(CSS, "section[aria-label='First steps']")
            assert steps.is_displayed() == (count < 3)
            if count < 3:
                assert len(browser.find_elements(CSS, ".steps .seen")) == 1 + count
                assert text(browser, ".steps pre").startswith(step)
            else:
                assert "too few requests yet" in text(browser, ".lead-answer")
            # No account of a worker yet.
            assert "0.0 requests/s, no alarm." in text(browser, "main")
            assert len(browser.find_elements(CSS, ".pareto .star")) == (count == 3)
            assert len(browser.find_elements(CSS, ".pareto .expected")) == 3
            fits(browser)
            browser.get("about:blank")


def burst(*, late: float, many: int = 200) -> list[tuple[str, Any, float]]:
    """Return the records of a minute of traffic some hours ago, and of one request just now."""
    found: list[tuple[str, Any, float]] = []
    begin = time.time() - late
    for number in range(many + 1):
        at = begin + 0.3 * number if number < many else begin + late
        name = f"r-{number}"
        known: dict[str, Any] = {
            "decided": number + 1,
            "settled": number + 1,
            "spend_usd": 1e-4 * (number + 1),
        }
        found += [
            ("routes", route(name, "abc"[number % 3]), at),
            ("costs", bill(name, 1e-4), at),
            ("rewards", label(name, 0.5 + 0.4 * (number % 2)), at),
            ("lambda", state(lambda_t=number / many, **known), at),
        ]
    return found


LINES = """return [...document.querySelectorAll('figure.chart')].map(chart => {
    const line = chart.querySelector('.series'), box = line?.getBoundingClientRect();
    const path = line?.getAttribute('d') ?? '';
    return [path.split('M').length - 1, path.split('L').length,
        chart.querySelectorAll('.gap').length, box?.width]; })"""
TICKS = """return [...document.querySelectorAll('figure.chart')].map(
    chart => chart.querySelectorAll('.when').length)"""


@pytest.mark.parametrize("late", [7200.0, 3 * 86_400.0])
def test_after_one_late_request_trends_keep_their_shape_and_the_gap_is_a_gap(
    browser: Chrome, late: float
) -> None:
    screen = {"width": 390, "height": 900, "deviceScaleFactor": 1, "mobile": True}
    with served(away(), records=burst(late=late)) as address:
        open_page(browser, address, "#/router/chat", ready="figure.chart .series")
        for pieces, points, gaps, wide in browser.execute_script(LINES):
            assert (pieces, gaps) == (2, 1) and points > 40 and wide > 200

        def choose(name: str) -> None:
            browser.find_element(CSS, f"[data-range={name}]").click()
            pressed = f"[data-range={name}][aria-pressed=true]"
            until(lambda: browser.find_elements(CSS, pressed), name)

        choose("requests")
        for pieces, points, gaps, _ in browser.execute_script(LINES):
            assert (pieces, gaps) == (1, 0) and points > 40
        choose("hour")
        for pieces, points, gaps, _ in browser.execute_script(LINES):
            assert (pieces, points, gaps) == (1, 1, 0)  # the late one alone
        choose("week")
        assert [line[:1] + line[2:3] for line in browser.execute_script(LINES)] == [[2, 0]] * 4
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
        try:
            for name in ("all", "hour", "day", "week", "requests"):
                choose(name)
                until(lambda: min(browser.execute_script(TICKS)) > 1, f"ticks of {name}")
            assert browser.execute_script("return document.documentElement.scrollWidth") <= 390
        finally:
            browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        fits(browser)
        browser.get("about:blank")


CUT_OUT = """const [worlds, done] = arguments;
    import("/assets/ranges.js").then(({cut}) => done(worlds.map(({bins, range, now}) => {
        const found = cut(bins, range, now), one = found.columns.one;
        return {at: found.at, one, gaps: found.seen.gaps ?? [], place: bins.at.map(found.place)};
    })))"""


def test_traffic_however_thin_has_gaps_only_where_it_stopped(browser: Chrome) -> None:
    rng = np.random.default_rng(3)
    worlds: list[tuple[dict[str, Any], Any, Any]] = []
    for number in range(60):
        # One request an hour is as much a line as a hundred a second.
        steps = rng.uniform(0.5, 1.5, size=(count := int(rng.integers(30, 256))))
        steps *= 10.0 ** rng.uniform(-1.0, 3.6)
        if holed := number % 2 == 0:
            steps[count // 2] = 0.5 * steps.sum()
        at = NOW - 1.0 - steps.sum() + steps.cumsum()
        requests = rng.integers(0, 3, size=count).cumsum() + 1
        bins: dict[str, Any] = {
            "begins": at.tolist(),
            "at": at.tolist(),
            "requests": requests.tolist(),
        }
        bins["columns"] = {"one": at.tolist()}
        ranges = {"hour": 3600.0, "day": 86_400.0, "week": 7 * 86_400.0, "all": 1e12}
        for name, seconds in ranges.items():
            world: dict[str, Any] = {"bins": bins, "range": name, "now": NOW}
            shown = at >= NOW - seconds
            seen = name == "all" or steps[count // 2] > seconds / 100
            worlds.append((world, holed and seen and shown[count // 2 - 1], shown.sum()))
        worlds.append(({"bins": bins, "range": "requests", "now": NOW}, False, 0))
    with served(away()) as address:
        load(browser, address)
        found = browser.execute_async_script(CUT_OUT, [one for one, _, _ in worlds])
        browser.get("about:blank")
    for cut, (world, holed, shown) in zip(found, worlds, strict=True):
        assert len(cut["gaps"]) == holed, world["range"]
        if world["range"] == "requests":
            assert cut["at"] == sorted(set(world["bins"]["requests"]))
            assert cut["place"] == world["bins"]["requests"]
            assert cut["one"][-1] == world["bins"]["at"][-1]
        else:
            assert cut["at"] == cut["one"] and len(cut["at"]) == shown


@pytest.mark.looks
def test_words_of_the_picture_have_the_colours_of_their_dots(browser: Chrome) -> None:
    with served(away(), records=burst(late=60.0)) as address:
        open_page(browser, address, "#/router/chat", ready=".pareto .model")
        colours = browser.execute_script(
            """const of = (all, name) => [...document.querySelectorAll(all)].map(
                one => getComputedStyle(one).getPropertyValue(name));
            return [of('.pareto .model', '--ink-of'), of('.pareto .word:not(.bold)', 'fill'),
                of('.pareto .model', 'fill')]"""
        )
        assert sorted(colours[1]) == sorted(colours[2]) and len(set(colours[1])) == 3
        browser.get("about:blank")


def test_the_money_of_a_period_says_what_is_used_left_and_expected(browser: Chrome) -> None:
    ends = datetime.now(UTC) + timedelta(days=3.2)
    month = {**standing(20.0, 5.0), "ends": ends.isoformat().replace("+00:00", "Z")}
    month |= {"forecast_usd": 16.0, "forecast_low_usd": 12.0, "forecast_high_usd": 22.0}
    names = [name for name in month if name not in ("pool", "line", "lease_until")]
    budgets = [{name: month[name] for name in names}]
    for decided, forecast in ((0, "–"), (9, "$16")):
        told = state(budgets=budgets, decided=decided)
        with served(away(), events=[("lambda", told)]) as address:
            open_page(browser, address, "#/router/chat", ready="figure.money")
            money = browser.find_element(CSS, "figure.money")
            assert "$20 per month" in money.text
            shown = {name: value for name, value in facts(browser).items() if name}
            assert (shown["Spent"], shown["Left"]) == ("$5", "$15")
            assert shown["Forecast at its end"] == forecast and shown["Time left"] == "3.2 days"
            assert ("no traffic seen yet" in money.text) == (not decided)
            assert ("$12 to $22" in money.text) == bool(decided)
            assert len(browser.find_elements(CSS, "figure.money .limit")) == bool(decided)
            fits(browser)
            browser.get("about:blank")


def test_routers_are_compared_as_far_as_a_visitor_may_see_them(browser: Chrome) -> None:
    others = [(name, again(event, "mail"), at + 3.0) for name, event, at in burst(late=600.0)]
    with served(away(), records=[*burst(late=600.0), *others]) as address:
        open_page(browser, address, "", ready=".rows .row a[href]")
        browser.find_element("partial link text", "Compare").click()
        until(lambda: browser.find_elements(CSS, "figure.chart .series"), "the comparison")
        rows = cells(browser, ".scroll tbody tr")
        assert sorted(row[0] for row in rows) == ["chat", "mail"]
        assert len(browser.find_elements(CSS, ".pareto .dot")) == 2
        lines = "figure.chart:first-child .series"
        assert len(browser.find_elements(CSS, lines)) == 2
        browser.find_element(CSS, "[data-range=requests]").click()
        assert len(browser.find_elements(CSS, lines)) == 2
        follow(browser, "leave out")
        until(lambda: len(cells(browser, ".scroll tbody tr")) == 1, "the other one alone")
        field = browser.find_element("id", "another")
        field.send_keys("nobody", ENTER)
        until(lambda: "no router nobody" in text(browser, ".warn"), "that it is unknown")
        assert "null" not in text(browser, "main")
        fits(browser)
        browser.get("about:blank")
    key, line = new_key("reader", routers="mail")
    with served(away(), Sessions(Keys.parse(line), None), records=others) as address:
        asked = {"authorization": f"Bearer {key}"}
        path = f"{address}api/compared?router=chat&router=mail"
        assert httpx.get(path).status_code in (401, 403)
        for wrong in ("", "?router=a%20b", f"?{'&'.join(f'router=r{at}' for at in range(8))}"):
            assert httpx.get(f"{address}api/compared{wrong}").status_code in (400, 422)
        with httpx.Client(base_url=address, headers={"x-pbstream": "1", **asked}) as reader:
            assert reader.post("api/session", json={"key": key}).status_code == 200
            assert reader.get("api/compared?router=chat&router=mail").status_code == 403


def again(event: Any, router_id: str) -> Any:
    return event.model_copy(update={"router_id": router_id})


def test_a_broker_that_is_away_is_said_plainly(browser: Chrome) -> None:
    broker, port = free_ports(2)
    with served(load_settings(bootstrap=f"127.0.0.1:{broker}", dashboard_port=port)) as address:
        load(browser, address)
        until(lambda: f"127.0.0.1:{broker}" in text(browser, "#trouble"), "that Kafka is away")
        assert text(browser, "#status") == "not live"
        fits(browser)
        assert not reached(address + "readyz")
        browser.get("about:blank")


def test_a_fling_through_ten_thousand_routers_makes_no_rows_and_loads_no_charts(
    browser: Chrome,
) -> None:
    broker, port = free_ports(2)
    away = load_settings(bootstrap=f"127.0.0.1:{broker}", dashboard_port=port)
    with served(away, states=10_000) as address:
        open_page(browser, address, "", ready=".rows .row a[href]")
        made = browser.execute_async_script(
            """const done = arguments[0], rows = document.querySelector('.rows');
            const step = document.documentElement.scrollHeight / 60;
            let at = 0;
            window.made = 0;
            new MutationObserver(all => { for (const one of all) for (const row of one.addedNodes)
                if (!row.known) { row.known = true; window.made += 1; }
            }).observe(rows, {childList: true});
            (function go() { scrollBy(0, step); ++at < 60 ? setTimeout(go, 30) : done(made); })()"""
        )
        # Of none is it known what its best model would have cost.
        assert re.fullmatch(r"10,000 routers spent \$[\d,.]+\.", text(browser, ".answer"))
        assert made < 100  # a row for each that the window has room for, not for each step
        bottom = "return document.querySelector('.rows').getBoundingClientRect().bottom"
        until(lambda: browser.execute_script(bottom) <= 910, "the end of the table")
        last = ".rows .row[aria-rowindex='10001']:not([data-wait]) a"
        until(lambda: browser.find_elements(CSS, last), "the last router")
        order = """return [...document.querySelectorAll('.rows .row:not([hidden])')]
            .map(one => Number(one.getAttribute('aria-rowindex')))"""
        places = until(lambda: sorted_or_none(browser.execute_script(order)), "rows in their order")
        assert places is not None and len(places) > 10
        loaded = "return performance.getEntriesByType('resource').map(one => one.name).join()"
        assert "chart.js" not in browser.execute_script(loaded)
        browser.get("about:blank")


def sorted_or_none(places: list[int]) -> list[int] | None:
    return places if places == sorted(places) else None


def test_with_keys_the_page_asks_for_one_and_shows_the_routers_that_it_covers(
    settings: Settings, browser: Chrome
) -> None:
    key, line = new_key("reader", routers="other.*")
    given = settings.model_copy(update={"dashboard_port": free_ports(1)[0]})
    with served(given, Sessions(Keys.parse(line), None)) as address:
        load(browser, address)
        until(lambda: browser.find_elements("id", "key"), "the question for a key")
        fits(browser)
        assert not reached(address + "api/routers")
        field = browser.find_element("id", "key")
        field.send_keys(key[:-1] + "?", ENTER)
        until(lambda: "not on the list" in text(browser, ".fault"), "the refusal")
        field.clear()
        field.send_keys(key, ENTER)
        until(lambda: "No router yet" in text(browser, ".empty"), "the routers of this key")
        refused = browser.execute_async_script(
            "fetch(arguments[0]).then(one => arguments[1](one.status))", f"api/routers/{ROUTER}"
        )
        assert refused == 403
        browser.get(f"{address}#/router/{ROUTER}")
        until(lambda: "does not cover" in text(browser, "#trouble"), "that the key is not enough")
        browser.get("about:blank")
