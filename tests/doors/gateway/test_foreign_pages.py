"""A page of another site, in a real browser on the machine where a gateway without keys answers:
nothing that it sends becomes an event.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest
import pytest_asyncio

from commands.broker.wire import free_ports
from tests.doors.gateway.running import Gateway
from tests.integration.browsing import chromium, until
from tests.integration.service import Worker, running_service

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

pytestmark = pytest.mark.asyncio(loop_scope="module")
BILL = json.dumps({"request_id": "theirs", "cost_usd": 999})
SEND = """const [url, mode, type, body, done] = arguments;
    const headers = type ? {'Content-Type': type} : {};
    fetch(url, {method: 'POST', mode, headers, body: type ? body : new Blob([body])})
    .then(one => done(one.status), error => done('blocked'))"""
"""Send a body from the page that is open; a Blob has no type. Of what another site answers a page
sees the status 0.
"""
FORM = """const [url, body] = arguments, form = document.createElement('form');
    Object.assign(form, {method: 'POST', action: url, enctype: 'text/plain'});
    const [name, value] = [body.slice(0, -1) + ', "x": "', '"}'];
    form.append(Object.assign(document.createElement('input'), {name, value}));
    document.documentElement.append(form); form.submit()"""
"""Send a body as a form, which needs no script."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway(kafka: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Gateway]:
    """Run a gateway without keys and no worker: what it takes stays on the topics."""
    folder = tmp_path_factory.mktemp("open")
    async with running_service(kafka, folder) as service:
        ports = free_ports(1)
        access = {"PB_GATEWAY_PORT": str(ports[0])}
        log = folder / "gateway.log"
        process = Worker(service.settings, log, access, "commands.cli gateway")
        service.workers.append(process)
        found = Gateway(service, process, ports[0])
        await found.ready()
        yield found


async def booked(gateway: Gateway) -> list[str]:
    """Return the requests of all bills that are on the log, after one of our own is."""
    async with gateway.client() as client:
        sent = await client.post(
            "/v1/routers/default/costs", json={"request_id": "ours", "cost_usd": 1}
        )
        assert sent.status_code == 202
    log = await gateway.service.log_of(gateway.service.settings.topic("costs"))
    return [json.loads(one.value)["request_id"] for records in log.values() for one in records]


def attack(browser: Chrome, address: str) -> dict[str, Any]:
    """Send a bill in every way that a page has; return what the page saw."""
    types = ("text/plain", "application/x-www-form-urlencoded", "application/json", "")
    return {
        f"{mode} {kind}": browser.execute_async_script(SEND, address, mode, kind, BILL)
        for mode in ("no-cors", "cors", "same-origin")
        for kind in types
    }


async def test_no_page_of_another_site_books_money(gateway: Gateway, tmp_path: Path) -> None:
    costs = f"http://127.0.0.1:{gateway.port}/v1/routers/default/costs"
    async with _site() as elsewhere:
        with chromium(tmp_path / "browser") as browser:
            for page in (f"http://127.0.0.1:{elsewhere}/", f"http://localhost:{elsewhere}/"):
                await asyncio.to_thread(browser.get, page)
                seen = await asyncio.to_thread(attack, browser, costs)
                assert seen["no-cors text/plain"] == 0, seen  # it was sent
                await asyncio.to_thread(browser.execute_script, FORM, costs, BILL)
                await asyncio.to_thread(until, browser, lambda on: on.current_url == costs)
    assert await booked(gateway) == ["ours"]


async def test_a_name_that_was_made_to_lead_here_opens_nothing(
    gateway: Gateway, tmp_path: Path
) -> None:
    name = f"rebound.example:{gateway.port}"
    with chromium(tmp_path / "browser", hosts="MAP rebound.example 127.0.0.1") as browser:
        await asyncio.to_thread(browser.get, f"http://{name}/livez")
        seen = await asyncio.to_thread(attack, browser, f"http://{name}/v1/routers/default/costs")
        assert seen["same-origin application/json"] == 403, seen
    assert set(await booked(gateway)) == {"ours"}


async def test_a_page_of_the_gateway_s_own_origin_and_programs_are_heard(gateway: Gateway) -> None:
    own = f"http://127.0.0.1:{gateway.port}"
    async with httpx.AsyncClient(base_url=own) as client:
        for headers in ({}, {"Origin": own}):
            answer = await client.post(
                "/v1/routers/own/rewards",
                json={"request_id": "r", "reward": 1, "source": "user"},
                headers=headers,
            )
            assert answer.status_code == 202


@asynccontextmanager
async def _site() -> AsyncIterator[int]:
    """Serve an empty page on a port of its own."""

    async def page(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # A browser opens connections that it may not use.
        with closing(writer), suppress(asyncio.IncompleteReadError, ConnectionError):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(
                b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n<p>"
            )
            await writer.drain()

    server = await asyncio.start_server(page, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]
