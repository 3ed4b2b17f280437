"""The inbox of labels in a real browser, before a real service: what is asked for, who labelled
what, and that the audit finds every label where it was said.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from doors.console.bus import open_bus
from doors.gateway.api_keys import Keys, new_key
from schemas import RewardObserved, decode
from schemas.lambdas import LambdaUpdated
from schemas.requests import RequestSubmitted
from schemas.routers import RouterDeclared
from streams.settings import Settings
from tests.integration.browsing import TAB, faults, fits
from tests.integration.commands import done, new_service, running_worker
from tests.integration.test_dashboard import (
    CSS,
    NETWORK_CHANGED,
    dashboard,
    open_page,
    reached,
    text,
    until,
)
from watching.dashboard.visitors import Sessions

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

ROUTER = "acme.help"
REQUESTS = [f"r{number}" for number in range(4)] + ["a/b ?#ü"]
URL = "https://traces.acme.test/x/{request_id}?all=1"
LATE = """
const fetched = window.fetch;
window.fetch = async (...asked) => {
    const answer = await fetched(...asked);
    if (asked[1]?.method === "POST") await new Promise((go) => setTimeout(go, 3000));
    return answer;
};"""
"""Program that has a page wait for what it posts."""
ADA, ADAS = new_key("ada", routers="acme.*")
BO, BOS = new_key("bo", routers="other.*")


@pytest.fixture(scope="module")
def served(kafka: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Settings]:
    """Run a worker with a router that has asked for five labels; a judge has judged each answer."""
    made = new_service(kafka, "inbox", partitions=8)
    log = tmp_path_factory.mktemp("inbox") / "worker.log"
    with running_worker(made, environment={"PB_ENCODER_BACKEND": "none"}, log=log):
        asyncio.run(_asked(made))
        yield made


async def _asked(settings: Settings) -> None:
    declared = RouterDeclared.model_validate_json(
        json.dumps(
            {
                "router_id": ROUTER,
                "models": {
                    name: {"input_price_per_m": price, "output_price_per_m": price}
                    for name, price in (("small", 0.1), ("large", 5.0))
                },
                "dimensions": 4,
                "sources": {"gold": "human", "judges": ["judge-v2"]},
                "labels": {"want": 20, "per": "day", "steps": 5},
                "label_url": URL,
            }
        )
    )
    async with open_bus(settings, "routers", "requests", "routes", "rewards") as bus:
        await bus.send("routers", declared)
        for name in REQUESTS:
            await bus.send(
                "requests",
                RequestSubmitted(router_id=ROUTER, request_id=name, context=(0.1, 0.2, 0.3, 1.0)),
            )
        for name in REQUESTS:
            await bus.send(
                "rewards",
                RewardObserved(router_id=ROUTER, request_id=name, reward=0.9, source="judge-v2"),
            )


def state(settings: Settings) -> LambdaUpdated | None:
    """Return the last state of the router that the worker has published."""

    async def read() -> LambdaUpdated | None:
        async with open_bus(settings, "lambda") as bus:
            record = await bus.latest("lambda", ROUTER)
        return None if record is None else decode(LambdaUpdated, record.value)

    return asyncio.run(read())


def labels(settings: Settings) -> list[dict[str, Any]]:
    """Return the labels of people on the topic, the oldest first."""

    async def read() -> list[dict[str, Any]]:
        async with open_bus(settings, "rewards") as bus:
            found = [json.loads(one.value or b"") async for one in bus.backwards("rewards", ROUTER)]
        return [one for one in reversed(found) if one["source"].startswith("human")]

    return asyncio.run(read())


@pytest.fixture(scope="module")
def address(served: Settings, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Run a dashboard that takes labels of whoever is on this machine."""
    folder = tmp_path_factory.mktemp("board")
    with dashboard(served.bootstrap, served.prefix, folder, "--labels") as found:
        until(lambda: reached(found + "readyz"), "the past to be read")
        yield found


def telephone(browser: Chrome) -> None:
    """Make the page 390 pixels wide, as a telephone's is."""
    screen = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)


def press(browser: Chrome, *keys: str) -> None:
    """Press keys wherever the page has its focus."""
    browser.switch_to.active_element.send_keys(*keys)


def current(browser: Chrome) -> str:
    """Return the request that is to be labelled now."""
    return text(browser, ".card .answer")


def test_people_label_by_keyboard_and_take_back_what_they_said(
    served: Settings, address: str, browser: Chrome
) -> None:
    telephone(browser)
    open_page(browser, address, "#/inbox", ready=".steps-of button")
    until(lambda: text(browser, "h1") == "5 to label", "five requests")
    # Nothing tells which model answered, nor what the judge said.
    assert not any(word in text(browser, "main") for word in ("small", "large", "0.9"))
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 390
    fits(browser)
    link = browser.find_element(CSS, ".card .answer a").get_attribute("href")
    assert link == "https://traces.acme.test/x/a%2Fb%20%3F%23%C3%BC?all=1"
    browser.find_element("id", "who").send_keys("anna", TAB)
    assert current(browser) == "a/b ?#ü"
    press(browser, "4")
    until(lambda: current(browser) == "r3", "the next one")
    until(
        lambda: "a/b ?#ü: labelled 0.75, by human:anna" in text(browser, ".told"), "what was said"
    )
    press(browser, "u")
    until(lambda: current(browser) == "r2", "the next one")
    # The stream shows what was labelled before the label's own answer is here.
    browser.execute_script(LATE)
    press(browser, "x")
    until(lambda: current(browser) == "r1", "the next one")
    until(lambda: text(browser, "h1") == "2 to label", "two requests")
    press(browser, "z")
    until(lambda: text(browser, "h1") == "3 to label", "what was taken back")
    until(lambda: "r2: taken back" in text(browser, ".told"), "what was said")
    # Who takes a label back gives another one: the next key is for the same answer.
    assert current(browser) == "r2"
    press(browser, "2")
    until(lambda: "r2: labelled 0.25" in text(browser, ".told"), "another label")
    said = [(e["request_id"], e["reward"], e.get("revision", 0)) for e in labels(served)]
    assert said == [
        ("a/b ?#ü", 0.75, 0),
        ("r3", 1.0, 0),
        ("r2", None, 1),
        ("r2", None, 2),
        ("r2", 0.25, 3),
    ]
    assert [e.get("cant_tell") for e in labels(served)] == [None, None, True, None, None]
    assert {e["source"] for e in labels(served)} == {"human:anna"}


def test_what_was_labelled_elsewhere_leaves_the_page_and_is_measured_and_audited(
    served: Settings, address: str, browser: Chrome
) -> None:
    telephone(browser)
    open_page(browser, address, f"#/inbox/{ROUTER}", ready=".steps-of button")
    until(lambda: text(browser, "h1") == "2 to label", "two requests")

    def command(*words: str) -> str:
        return done(served, *words)

    listed = json.loads(command("labels", "list", "--router", ROUTER, "--json"))
    assert [one["request_id"] for one in listed] == ["r1", "r0"]
    assert listed[0]["link"] == URL.replace("{request_id}", "r1")
    command("labels", "give", "r1", "0.5", "--router", ROUTER, "--by", "ben")
    until(lambda: text(browser, "h1") == "1 to label", "one request")
    # Two people who disagree: their mean counts, and how far they part is shown.
    command("labels", "give", "r3", "down", "--router", ROUTER, "--by", "ben")

    def counted() -> LambdaUpdated | None:
        found = state(served)
        judge = None if found is None or found.sources is None else found.sources[1]
        return found if judge is not None and judge.pairs == 4 else None

    found = until(counted, "four pairs")
    assert found is not None and found.sources is not None and found.labels is not None
    gold = found.sources[0]
    assert (gold.double_labels, gold.apart) == (1, 1.0)
    assert (found.labels.want, found.labels.asked) == (20, 5)
    models = found.labels.models or ()
    assert [sum(getattr(m, n) for m in models) for n in ("asked", "answered", "unasked")] == [
        5,
        4,
        0,
    ]
    assert "People of human part by 1.00" in command("sources", "--router", ROUTER)
    assert json.loads(command("audit", "--json"))["violations"] == {}
    verified = json.loads(command("replay", "--verify", "--router", ROUTER, "--json"))
    assert verified["identical"] == len(REQUESTS), verified
    open_page(browser, address, f"#/router/{ROUTER}", ready="section.sources")
    until(lambda: "People of human part by 1.00" in text(browser, "section.sources"), "it drawn")


def test_labels_need_the_key_of_a_router_and_a_dashboard_that_takes_them(
    served: Settings, tmp_path: Path
) -> None:
    label = {"request_id": "r0", "reward": 1, "name": "mallory"}
    header = {"x-pbstream": "1"}
    with dashboard(served.bootstrap, served.prefix, tmp_path) as closed:
        refused = httpx.post(f"{closed}api/routers/{ROUTER}/labels", json=label, headers=header)
        assert (refused.status_code, refused.json()["reason"]) == (403, "forbidden")
    keys = {"PB_DASHBOARD_KEYS": f"{ADAS}\n{BOS}"}
    with dashboard(served.bootstrap, served.prefix, tmp_path, "--labels", **keys) as found:
        until(lambda: reached(found + "readyz"), "the past to be read")
        path = f"{found}api/routers/{ROUTER}/labels"
        assert httpx.post(path, json=label, headers=header).status_code == 401
        for key, status in ((BO, 403), (ADA, 200)):
            with httpx.Client(headers=header) as client:
                client.post(f"{found}api/session", json={"key": key}).raise_for_status()
                sent = client.post(path, json=label)
                assert sent.status_code == status, sent.text
        with httpx.Client() as client:
            client.post(f"{found}api/session", json={"key": ADA}, headers=header)
            assert client.post(path, json=label).status_code == 403
            for wrong in ({}, {"reward": 2}, {"reward": True}, {"reward": 1, "cant_tell": True}):
                body = {"request_id": "r0", **wrong}
                assert client.post(path, json=body, headers=header).status_code == 422
            nobody = {"request_id": "nothing", "reward": 1}
            assert client.post(path, json=nobody, headers=header).status_code == 404
    # The key's name stands in the source, whatever name was sent.
    assert labels(served)[-1]["source"] == "human:ada"


def test_without_a_budget_of_labels_the_page_says_what_to_declare(
    settings: Settings, browser: Chrome
) -> None:
    from tests.integration.test_dashboard import served as serving

    with serving(settings, Sessions(Keys.parse(ADAS), None)) as found:
        assert httpx.get(f"{found}api/inbox").status_code == 401
    with serving(settings, Sessions(None, None)) as found:
        open_page(browser, found, "#/inbox", ready=".card pre")
        assert "label_url" in text(browser, ".card pre")
        fits(browser)
        browser.get("about:blank")


@pytest.fixture(autouse=True)
def quiet(browser: Chrome) -> Iterator[None]:
    browser.get_log("browser")
    yield
    assert [one for one in faults(browser) if NETWORK_CHANGED not in one] == []
