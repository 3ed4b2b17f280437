"""A browser without a window, that asks for nothing by itself."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from selenium.webdriver import Chrome, ChromeOptions, ChromeService

SWITCHES = """--headless --no-sandbox --disable-gpu --disable-quic --no-first-run
    --disable-dev-shm-usage --disable-background-networking --disable-component-update
    --disable-sync"""


@contextmanager
def chromium(folder: Path, *logs: str) -> Iterator[Chrome]:
    """Run Chromium with its profile in `folder`; it keeps these logs."""
    options = ChromeOptions()
    for switch in (*SWITCHES.split(), f"--user-data-dir={folder}"):
        options.add_argument(switch)
    options.binary_location = "/usr/bin/chromium"
    options.set_capability("goog:loggingPrefs", dict.fromkeys(logs, "ALL"))
    driver = Chrome(options=options, service=ChromeService("/usr/bin/chromedriver"))
    try:
        yield driver
    finally:
        driver.quit()
