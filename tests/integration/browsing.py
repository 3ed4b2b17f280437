"""A browser without a window, that asks for nothing by itself."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from selenium.webdriver import Chrome
    from selenium.webdriver.remote.webelement import WebElement

PATIENCE = 60.0
"""Seconds to wait for a page."""
LOOKS = False
"""Whether it is checked how pages look: `--looks`."""
SHOTS = Path(__file__).parents[2] / ".cache" / "dashboard"
"""Folder of pictures of pages."""
ENTER, TAB = "\ue007", "\ue004"
"""Keys in the notation of WebDriver."""
SWITCHES = """--headless --no-sandbox --disable-gpu --disable-quic --no-first-run
    --disable-dev-shm-usage --disable-background-networking --disable-component-update
    --disable-sync"""

NETWORK_CHANGED, MOST_LOADS = "ERR_NETWORK_CHANGED", 10


@contextmanager
def chromium(folder: Path, *logs: str, hosts: str = "") -> Iterator[Chrome]:
    """Run Chromium with its profile in `folder`; it keeps these logs, and finds hosts by these
    rules before it asks anybody.
    """
    from selenium.webdriver import Chrome, ChromeOptions, ChromeService

    options = ChromeOptions()
    own = (f"--user-data-dir={folder}", f"--host-resolver-rules={hosts}")
    for switch in (*SWITCHES.split(), *own):
        options.add_argument(switch)
    options.binary_location = "/usr/bin/chromium"
    options.set_capability("goog:loggingPrefs", dict.fromkeys(logs, "ALL"))
    driver = Chrome(options=options, service=ChromeService("/usr/bin/chromedriver"))
    try:
        yield driver
    finally:
        driver.quit()


def until(browser: Chrome, condition: Callable[[Chrome], Any]) -> Any:
    """Wait until a condition holds, and return what it found."""
    from selenium.webdriver.support.wait import WebDriverWait

    return WebDriverWait(browser, PATIENCE).until(condition)


def follow(browser: Chrome, words: str) -> None:
    """Click a link of these words once it is there; its page may be drawn anew meanwhile."""
    from selenium.common.exceptions import StaleElementReferenceException
    from selenium.webdriver.support.wait import WebDriverWait

    def click(browser: Chrome) -> bool:
        browser.find_element("link text", words).click()
        return True

    ignored = [StaleElementReferenceException]
    WebDriverWait(browser, PATIENCE, ignored_exceptions=ignored).until(click)


def point_at(browser: Chrome, element: WebElement) -> None:
    """Move the mouse to the middle of an element."""
    from selenium.webdriver import ActionChains

    ActionChains(browser).move_to_element(element).perform()


def faults(browser: Chrome) -> list[str]:
    """Return what the browser has complained about since the last look."""
    logged = browser.get_log("browser")
    bad = [one["message"] for one in logged if one["level"] in ("SEVERE", "WARNING")]
    return [one for one in bad if not re.search("status of 4|ERR_CONNECTION", one)]


def load(browser: Chrome, address: str) -> None:
    """Load a page, again where a network of the machine, as containers have one, came or went."""
    found: list[str] = []
    for _ in range(MOST_LOADS):
        browser.get(address)
        found = faults(browser)
        if not any(NETWORK_CHANGED in one for one in found):
            break
    assert found == []


def violations(browser: Chrome) -> list[Any]:
    """Return what axe-core finds, its rules of WCAG 2.1 A and AA and best practices."""
    source = (files("axe_core_python") / "axe.min.js").read_text(encoding="utf-8")
    # Through the debugger: the page's own policy lets no script in.
    browser.execute_cdp_cmd("Runtime.evaluate", {"expression": source})
    found = browser.execute_async_script(
        """const done = arguments[0];
        axe.run().then(done, error => done({violations: [String(error)]}))"""
    )
    return [
        {"rule": one["id"], "at": [node["target"] for node in one["nodes"]][:4]}
        if isinstance(one, dict)
        else one
        for one in found["violations"]
    ]


def fits(browser: Chrome, name: str = "", widths: Sequence[int] = ()) -> None:
    """Check how a page looks, now and at each width: nothing is cut off, and axe-core finds
    nothing. Without `--looks` check nothing: this is half of what a page costs.

    Args:
        name: of the picture that is kept of each width.
    """
    if not LOOKS:
        return
    for width in widths:
        screen = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width
        SHOTS.mkdir(parents=True, exist_ok=True)
        assert browser.save_screenshot(str(SHOTS / f"{name}-{width}.png"))
        assert violations(browser) == []
    if widths:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    else:
        assert violations(browser) == []
