"""The site of `docs/` is built without a warning, has no dead link, and fits a telephone."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

import pytest

from tests.integration.browsing import chromium
from tests.pages import ROOT

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

WIDTH = 390
"""Width of a small telephone, in CSS pixels."""


class Links(HTMLParser):
    """Collect what a page links to, what it loads, and its anchors."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = {name: value or "" for name, value in attrs}
        self.anchors |= {named[name] for name in ("id", "name") if name in named}
        if tag == "a" and "href" in named:
            self.links.append(named["href"])
        else:
            loads = [named[name] for name in ("src", "srcset", "href") if name in named]
            self.loads += [] if named.get("rel") == "canonical" else loads


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site as `make site` does."""
    folder = tmp_path_factory.mktemp("site")
    ran = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return folder


def test_no_page_leads_or_loads_from_where_nothing_is(site: Path) -> None:
    pages = {path: Links(path.read_text(encoding="utf-8")) for path in site.rglob("*.html")}
    assert len(pages) > 25
    dead = []
    for path, page in pages.items():
        assert not [one for one in page.loads if urlsplit(one).netloc], path
        for link in (*page.links, *page.loads):
            at = urlsplit(link)
            if at.scheme or at.netloc or path.name == "404.html":
                continue
            target = (path.parent / unquote(at.path)).resolve() if at.path else path
            anchors = pages[target].anchors if target in pages else set()
            if not target.exists() or (at.fragment and unquote(at.fragment) not in anchors):
                dead.append(f"{path.relative_to(site)}: {link}")
    assert dead == []


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    """Run Chromium at the width of a telephone."""
    with chromium(tmp_path_factory.mktemp("chromium")) as driver:
        driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": WIDTH, "height": 844, "deviceScaleFactor": 2, "mobile": True},
        )
        yield driver


@pytest.mark.parametrize("page", ["index", "reference/wire", "explanation/commit"])
def test_no_page_scrolls_sideways_on_a_telephone(site: Path, browser: Chrome, page: str) -> None:
    browser.get((site / f"{page}.html").as_uri())
    measured = "return [document.documentElement.scrollWidth, window.innerWidth]"
    wide, window = browser.execute_script(measured)
    assert wide <= window == WIDTH


def test_a_word_of_a_page_is_found_in_the_index_of_the_search(site: Path) -> None:
    assert "murmur2" in (site / "search" / "search_index.json").read_text(encoding="utf-8")
