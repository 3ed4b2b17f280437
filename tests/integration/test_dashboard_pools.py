"""The page of pools in a real browser, on a real broker."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from aiokafka import AIOKafkaProducer
from click.testing import CliRunner

from commands.cli import main
from schemas import encode
from streams.settings import Settings
from tests.integration.browsing import load, violations
from tests.integration.test_dashboard import facts, served, text, until
from tests.watching.dashboard.test_dashboard_folds import standing, state

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

SHOTS = Path(__file__).parents[2] / ".cache" / "dashboard"


async def say(settings: Settings, shares: dict[str, tuple[float, float]]) -> None:
    async with AIOKafkaProducer(bootstrap_servers=settings.bootstrap) as producer:
        for name, (usd, charged) in shares.items():
            event = state(name, budgets=[standing(usd, charged)])
            await producer.send_and_wait(settings.topic("lambda"), encode(event), key=name.encode())


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
        assert violations(browser) == []
        words = "pools set shop 100 --per month --member search=0.1-0.6"
        declared = CliRunner().invoke(main, words.split(), env=environment)
        assert declared.exit_code == 0, declared.output
        until(lambda: "No router has a grant" in text(browser, "main"), "the pool")
        many = {f"team-{at}": (2.0, 0.5) for at in range(9)}
        asyncio.run(say(settings, {"search": (50.0, 5.0), "chat": (30.0, 12.0), **many}))
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
        for width in (390, 768, 1440):
            screen = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
            browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
            assert browser.execute_script("return document.documentElement.scrollWidth") <= width
            SHOTS.mkdir(parents=True, exist_ok=True)
            assert browser.save_screenshot(str(SHOTS / f"pools-{width}.png"))
            assert violations(browser) == []
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        for name, words in (("shop", "Pool shop"), ("nobody", "no pool of this id")):
            browser.get("about:blank")
            load(browser, f"{address}#/pools/{name}")
            until(lambda words=words: words in text(browser, "main"), words)
        assert violations(browser) == []
        browser.get("about:blank")
        load(browser, f"{address}#/router/search")
        until(lambda: "granted by shop/month" in text(browser, "figure.money h3"), "the lease")
        browser.find_element("link text", "the pool").click()
        until(lambda: facts(browser).get("Spent") == "$21.5", "the page of its pool")
        gone = CliRunner().invoke(main, ["pools", "remove", "shop"], env=environment)
        assert gone.exit_code == 0, gone.output
        until(lambda: "declared no more" in text(browser, "main"), "that it is gone")
        browser.get("about:blank")
