"""Models that do not answer, on a router's page in a real browser, on a real broker."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from aiokafka import AIOKafkaProducer

from schemas import AlertRaised, encode
from schemas.alerts import AlertKind
from streams.settings import Settings
from tests.integration.browsing import fits, load
from tests.integration.test_dashboard import cells, served, text, until
from tests.watching.dashboard.test_dashboard_folds import bill, failed, route, state

if TYPE_CHECKING:
    from selenium.webdriver import Chrome


def alert(kind: AlertKind, size: float) -> AlertRaised:
    raised: Any = AlertRaised.model_config["json_schema_extra"]["examples"][0]  # type: ignore[index]
    drift = AlertRaised.model_validate({**raised, "router_id": "chat"}, strict=False)
    return drift.model_copy(update={"kind": kind, "model": "b", "signal": None, "size": size})


def say(settings: Settings, *events: tuple[str, Any]) -> None:
    async def sent() -> None:
        async with AIOKafkaProducer(bootstrap_servers=settings.bootstrap) as producer:
            for topic, event in events:
                await producer.send_and_wait(settings.topic(topic), encode(event), key=b"chat")

    asyncio.run(sent())


def states(browser: Chrome) -> list[str]:
    return [row[-1] for row in cells(browser, ".scroll tbody tr")]


def test_the_page_says_who_is_down_since_when_and_how_many_calls_are_answered(
    settings: Settings, browser: Chrome
) -> None:
    with served(settings) as address:
        decided = [("routes", route(f"r-{at}", model="b")) for at in range(5)]
        bills = [("costs", bill(f"r-{at}", 0.001)) for at in range(3)]
        say(settings, ("lambda", state()), *decided, *bills)
        load(browser, f"{address}#/router/chat")
        until(lambda: cells(browser, ".scroll tbody tr"), "the models")
        assert "Answered" not in text(browser, ".scroll thead")
        say(settings, *(("costs", failed(f"r-{at}")) for at in (3, 4)))
        until(lambda: "Answered" in text(browser, ".scroll thead"), "the share of answers")
        until(lambda: states(browser) == ["60%, up", "–, up", "–, up"], "three answers of five")
        say(settings, ("alerts", alert(AlertKind.MODEL_DOWN, 5.0)))
        until(lambda: "Down since" in text(browser, "main"), "that b is down")
        assert "b is down: 5 calls in a row were not answered" in text(browser, ".warn")
        until(lambda: states(browser) == ["60%, down", "–, up", "–, up"], "its state")
        fits(browser)
        say(settings, ("alerts", alert(AlertKind.MODEL_BACK, 12.0)))
        until(lambda: "Down since" not in text(browser, "main"), "that b is back")
        browser.get("about:blank")
