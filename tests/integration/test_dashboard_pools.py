"""The pages of pools and of families in a real browser, on a real broker."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from aiokafka import AIOKafkaProducer
from click.testing import CliRunner

from commands.cli import main
from schemas import encode
from schemas.event import Value
from streams.settings import Settings
from tests.integration.browsing import fits, follow, load
from tests.integration.test_dashboard import cells, facts, served, text, until
from tests.watching.dashboard import test_families_view as told
from tests.watching.dashboard.test_dashboard_folds import standing, state

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

WIDTHS = (390, 768, 1440)


def say(settings: Settings, topic: str, *events: Value) -> None:
    async def sent() -> None:
        async with AIOKafkaProducer(bootstrap_servers=settings.bootstrap) as producer:
            for event in events:
                key, value = event.key.encode(), encode(event)
                await producer.send_and_wait(settings.topic(topic), value, key=key)

    asyncio.run(sent())


def lent(router_id: str, usd: float, charged: float) -> Value:
    return state(router_id, budgets=[standing(usd, charged)])


def test_the_page_shows_what_is_lent_and_spent_of_a_pool_at_any_width(
    settings: Settings, browser: Chrome
) -> None:
    environment = {
        "PB_BOOTSTRAP": settings.bootstrap,
        "PB_PREFIX": settings.prefix,
        "PB_APP_ID": settings.app_id,
    }
    with served(settings) as address:
        load(browser, f"{address}#/pools")
        until(lambda: "pbstream pools set" in text(browser, ".empty"), "what to type")
        fits(browser)
        words = "pools set shop 100 --per month --member search=0.1-0.6"
        declared = CliRunner().invoke(main, words.split(), env=environment)
        assert declared.exit_code == 0, declared.output
        until(lambda: "No router has a grant" in text(browser, "main"), "the pool")
        many = [lent(f"team-{at}", 2.0, 0.5) for at in range(9)]
        say(settings, "lambda", lent("search", 50.0, 5.0), lent("chat", 30.0, 12.0), *many)
        until(lambda: "$98 granted, $21.5 spent" in text(browser, "main"), "its leases")
        rows = browser.execute_script(
            "return [...document.querySelectorAll('tbody tr')].map((row) => row.innerText)"
        )
        assert len(rows) == 11
        assert rows[0].startswith("search")
        assert "4 others" in text(browser, ".inks")
        told = facts(browser)
        assert (told["Spent"], told["Left"]) == ("$21.5", "$78.5")
        assert told["Forecast at its end"] == "$11"  # each of the eleven expects a dollar
        assert "Grants: " in text(browser, "main")
        bars = browser.execute_script(
            "return [...document.querySelectorAll('svg.bar rect:not(.whole)')].map("
            "(one) => Number(one.getAttribute('width')))"
        )
        assert sum(bars) == pytest.approx(980.0)
        fits(browser, "pools", WIDTHS)
        for name, words in (("shop", "Pool shop"), ("nobody", "no pool of this id")):
            browser.get("about:blank")
            load(browser, f"{address}#/pools/{name}")
            until(lambda words=words: words in text(browser, "main"), words)
        fits(browser)
        browser.get("about:blank")
        load(browser, f"{address}#/router/search")
        until(lambda: "granted by shop/month" in text(browser, "figure.money h3"), "the lease")
        follow(browser, "the pool")
        until(lambda: facts(browser).get("Spent") == "$21.5", "the page of its pool")
        gone = CliRunner().invoke(main, ["pools", "remove", "shop"], env=environment)
        assert gone.exit_code == 0, gone.output
        until(lambda: "declared no more" in text(browser, "main"), "that it is gone")
        browser.get("about:blank")


MARKUP = "<img src=x onerror=alert(1)>"
LONG = "openrouter/meta-llama/llama-3.1-405b-instruct-with-a-long-name"


def test_the_page_shows_who_is_in_a_family_and_what_a_newcomer_starts_with(
    settings: Settings, browser: Chrome
) -> None:
    models = [
        {"model": name, "rewards": told.side(mean, 0.05, 60.0), "bills": told.side(-0.5, 0.2, 30.0)}
        for name, mean in (("a", 0.7), (MARKUP, 0.8), (LONG, None))
    ]
    listed = [told.member("chat"), told.member("mail"), told.member("odd", aside=True)]
    known = told.estimated("support", *listed, members=40, models=models)
    with served(settings) as address:
        load(browser, f"{address}#/families")
        until(lambda: "families join support" in text(browser, ".empty"), "what to type")
        fits(browser, "no-family", (390,))
        say(settings, "families", known)
        until(lambda: "And 37 more" in text(browser, "main"), "the family")
        joined = [state(name, family=told.standing("support")) for name in ("chat", "new")]
        say(settings, "lambda", *joined)
        until(lambda: "told nothing yet" in text(browser, "main"), "who has joined")
        rows = cells(browser, "tbody tr")
        assert [row[0] for row in rows] == ["a", MARKUP, LONG, "odd", "new", "chat", "mail"]
        assert rows[0][1:3] == ["3", "0.700 ± 0.050"]
        assert rows[0][5:] == ["60.0", "0.61 × list price", "30.0"]  # no member's price is known
        assert rows[3][3] == "left out" and rows[3][-1] == told.LEFT_OUT
        assert rows[5][3:6] == ["0.90", "tells, learns", "12.5 to 60.0 requests, by model"]
        spoken = browser.find_element("css selector", "svg.whisker").get_attribute("aria-label")
        assert spoken == "a: expected reward 0.700, 95% of members between 0.602 and 0.798"
        fits(browser, "families", WIDTHS)
        # The same in the dark.
        dark = {"features": [{"name": "prefers-color-scheme", "value": "dark"}]}
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", dark)
        fits(browser, "families-dark", (390,))
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
        follow(browser, "Its own page")
        until(lambda: text(browser, "h1") == "Family support", "the page of one family")
        follow(browser, "chat")
        until(lambda: browser.find_elements("link text", "Family support"), "a link back")
        follow(browser, "Families")
        say(settings, "families", known.model_copy(update={"family": "sales", "listed": ()}))
        until(lambda: len(browser.find_elements("css selector", "main h2")) == 2, "another one")
        browser.get("about:blank")
        load(browser, f"{address}#/families/nobody")
        until(lambda: "no family of this name" in text(browser, "main"), "that there is none")
        # Addresses that somebody has typed.
        for page, found, words in (
            ("families/%", "main", "Family %"),
            ("families/a%2Fb", "#trouble", "only must match the pattern"),
            ("inbox/new", "main", "Router new asks for no labels"),
            ("decision/new/..", "main", "pbstream explain .. --router new"),
        ):
            browser.get("about:blank")
            load(browser, f"{address}#/{page}")
            until(lambda where=found, said=words: said in text(browser, where), words)
        browser.get("about:blank")
