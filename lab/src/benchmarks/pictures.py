"""`python -m benchmarks.pictures`: the README's pictures of the product, into `docs/images/`.

Plays the demo through a real worker on a real broker, opens its dashboard and its report in
Chromium, and takes both in light and in dark.
"""

from __future__ import annotations

import argparse
import io
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from PIL import Image
from selenium.common.exceptions import WebDriverException
from selenium.webdriver import Chrome, ChromeOptions, ChromeService
from selenium.webdriver.support.ui import WebDriverWait

DOCS = Path(__file__).parents[3] / "docs/images"
WIDTH = 1024
"""CSS pixels. GitHub shows a picture in some 840 of them: the axes' letters of 12 are 10 high."""
TALLER = 2000  # CSS pixels, than any page is
SHARP = 2  # device pixels to a CSS pixel
PATIENCE = 300.0  # seconds
PAGES = (("dashboard", "price-rise", ".news"), ("demo", "none", ".charts"))
"""One picture: what is taken, which demo is played for it, and with what the picture ends."""


def main() -> None:
    """Take the pictures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=DOCS, help="default: docs/images/")
    into = parser.parse_args().folder
    with tempfile.TemporaryDirectory() as name, chromium(Path(name) / "chromium") as browser:
        for page, shock, last in PAGES:
            folder = Path(name) / page
            with demo(folder, shock) as dashboard:
                report = (folder / "demo.html").as_uri()
                for scheme, ending in (("light", ""), ("dark", "-dark")):
                    media = [{"name": "prefers-color-scheme", "value": scheme}]
                    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": media})
                    taken = take(browser, dashboard if page == "dashboard" else report, last=last)
                    taken.save(into / f"{page}{ending}.png", optimize=True)


@contextmanager
def demo(folder: Path, shock: str) -> Iterator[str]:
    """Play the demo; yield its dashboard's address, which goes on until this ends."""
    command = [sys.executable, "-m", "commands.cli", "demo", "--shock", shock, "--keep"]
    with subprocess.Popen(
        [*command, "--folder", str(folder)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            address = ""
            for line in process.stdout:
                print(line, end="")
                found = re.search(r"Dashboard (http\S+),", line)
                address = found[1] if found else address
                if "go on until Ctrl-C" in line:
                    break
            yield address
        finally:
            process.send_signal(signal.SIGINT)


@contextmanager
def chromium(folder: Path) -> Iterator[Chrome]:
    """Run a browser without a window."""
    options = ChromeOptions()
    for switch in ("--headless", "--no-sandbox", "--hide-scrollbars", f"--user-data-dir={folder}"):
        options.add_argument(switch)
    options.binary_location = "/usr/bin/chromium"
    driver = Chrome(options=options, service=ChromeService("/usr/bin/chromedriver"))
    try:
        yield driver
    finally:
        driver.quit()


def take(browser: Chrome, address: str, *, last: str) -> Image.Image:
    """Return the page down to the end of this element, once its charts are drawn; in a palette,
    which takes a third of the bytes.
    """
    screen = {"width": WIDTH, "height": TALLER, "deviceScaleFactor": SHARP, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    browser.get("about:blank")
    # The demo does not wait for its dashboard.
    patient = WebDriverWait(browser, PATIENCE, ignored_exceptions=[WebDriverException])
    patient.until(lambda _: _opened(browser, address))
    drawn = """return document.querySelectorAll('.pareto .star').length &&
        document.querySelectorAll('.chart .series').length"""
    patient.until(lambda _: browser.execute_script(drawn) >= 4)
    ends = "return document.querySelector(arguments[0]).getBoundingClientRect().bottom"
    bottom = SHARP * int(browser.execute_script(ends, last) + 10)
    with Image.open(io.BytesIO(browser.get_screenshot_as_png())) as image:
        shown = image.convert("RGB").crop((0, 0, image.width, bottom))
    return shown.quantize(256, method=Image.Quantize.MAXCOVERAGE)


def _opened(browser: Chrome, address: str) -> bool:
    browser.get(address)
    return True


if __name__ == "__main__":
    main()
