"""The page of a proof, in a real browser, on a real broker: it says what the command says."""

from __future__ import annotations

import asyncio
import json
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING

from aiokafka import AIOKafkaProducer

from streams.log.service_topics import create_topics
from streams.settings import Settings
from tests.integration.browsing import fits
from tests.integration.commands import named_apart, run
from tests.integration.test_dashboard import (  # noqa: F401 - a fixture
    CSS,
    cells,
    free_ports,
    open_page,
    quiet,
    reached,
    served,
    text,
    until,
)
from tests.studies.history.test_merge import ROUTER
from tests.studies.proof.test_proof import History, lived

if TYPE_CHECKING:
    from selenium.webdriver import Chrome


async def write(settings: Settings, history: History) -> None:
    """Write a history onto the topics of a service."""
    await create_topics(settings)
    async with AIOKafkaProducer(bootstrap_servers=settings.bootstrap) as producer:
        sent = [
            await producer.send(
                settings.topic(topic),
                record.value,
                key=record.key,
                timestamp_ms=round(1e3 * record.timestamp),
            )
            for topic, records in history.topics.items()
            for record in records
        ]
        await asyncio.gather(*sent)


def test_the_page_says_what_was_saved_and_its_file_is_repeated(
    kafka: str,
    browser: Chrome,
    tmp_path: Path,
) -> None:
    # Retention would delete this history of last winter: the topics keep it for nine years.
    settings = named_apart(kafka, "proof", dashboard_port=free_ports(1)[0], context_ttl=3e8)
    asyncio.run(write(settings, lived()))
    with served(settings) as address:
        until(lambda: reached(address + "readyz"), "the past to be read")
        open_page(browser, address, f"#/proof/{ROUTER}", ready="main button")
        browser.find_element(CSS, "main button").click()
        until(lambda: browser.find_elements(CSS, ".answer"), "the answer")
        path = f"{address}api/routers/{ROUTER}/studies/1"
        with urllib.request.urlopen(path) as found:
            proof = json.load(found)["result"]
        assert text(browser, ".answer") == proof["says"]
        assert proof["says"].startswith("The router saved $")
        rows = cells(browser, "tbody tr")
        assert [row[0] for row in rows] == ["all", *proof["figures"]["weeks"], "code", "letter"]
        assert rows[0][2].startswith("$0.00") and " to " in rows[0][2]
        assert len(browser.find_elements(CSS, "svg.whisker")) == 2 * sum(
            one["reward_gain"]["low"] is not None or one["reward_gain"]["value"] is not None
            for one in (
                proof["figures"]["whole"],
                *proof["figures"]["weeks"].values(),
                *proof["figures"]["kinds"].values(),
            )
        )
        estimated = proof["figures"]["against"]["incumbent"]
        assert "not_supported" not in estimated
        assert "This agrees with what the draw shows" in text(browser, "main")
        link = browser.find_element(CSS, "a[download]")
        assert link.get_attribute("download") == f"{ROUTER}-proof.json"
        fits(browser, "proof", (390,))
        # A page that is opened again shows what was found.
        open_page(browser, address, f"#/proof/{ROUTER}", ready=".answer")
        browser.get("about:blank")
    file = tmp_path / "proof.json"
    file.write_text(json.dumps(proof))
    done = run(settings, "proof", "--router", ROUTER, "--verify", str(file))
    assert done.exit_code == 0, done.output
    assert "The proof was repeated" in done.output
