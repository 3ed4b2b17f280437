"""One service for all tests of commands, with topics and a worker; names for routers; a browser,
and a service without a worker for tests of pages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from commands.broker.wire import free_ports
from streams.settings import Settings
from tests.integration import browsing
from tests.integration.browsing import chromium
from tests.integration.commands import new_service, running_worker

if TYPE_CHECKING:
    from selenium.webdriver import Chrome


def pytest_configure(config: pytest.Config) -> None:
    """Let pages be looked at where that is asked for."""
    browsing.LOOKS = config.getoption("--looks")


@pytest.fixture(scope="session")
def cli_settings(kafka: str) -> Settings:
    """Return the settings of a service of its own."""
    return new_service(kafka, "cli")


@pytest.fixture(scope="session")
def worker(cli_settings: Settings, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Settings]:
    """Run a worker; its encoder is loaded by the first prompt."""
    log, priors = tmp_path_factory.mktemp("cli") / "worker.log", tmp_path_factory.mktemp("priors")
    given = {"PB_ENCODER_BACKEND": "static", "PB_PRIORS_PATH": str(priors)}
    with running_worker(cli_settings, environment=given, log=log):
        yield cli_settings.model_copy(update={"priors_path": priors})


@pytest.fixture(scope="session")
def chrome(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    """Run a browser that keeps the log of its pages."""
    with chromium(tmp_path_factory.mktemp("chromium"), "browser") as driver:
        yield driver


@pytest.fixture(scope="module")
def browser(chrome: Chrome) -> Chrome:
    """Return the browser without what earlier files of tests left there."""
    chrome.get("about:blank")
    chrome.execute_cdp_cmd("Network.clearBrowserCookies", {})
    chrome.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    chrome.set_window_size(1280, 900)
    return chrome


@pytest.fixture
def settings(kafka: str) -> Settings:
    """Return the settings of a dashboard whose service has topics, and no worker."""
    return new_service(kafka, "page", partitions=1, dashboard_port=free_ports(1)[0])


@pytest.fixture
def home(request: pytest.FixtureRequest) -> str:
    """Return the name of a router that no other test has."""
    return f"acme.{request.node.name[:40]}"
