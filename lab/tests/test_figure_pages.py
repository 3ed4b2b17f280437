"""Pages of measurements name what made each table, and what they name and link to is there."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from PIL import Image

from benchmarks.report import SIGNED, UNSIGNED, signed
from paretobandit_streams import FOLDERS
from tests.pages import PAGES, ROOT
from tests.prose import doubtful_docstrings, doubtful_words

LAB = Path(__file__).parents[1]
README = LAB / "README.md"
MEASURED = sorted((LAB / "docs").glob("*.md"))
TABLE = "| a |\n| --- |\n| 1 |\n"
LINE = "Made by `make chaos` at `0123abcd`, 2026-11-27."


def text_of(page: Path) -> str:
    """Return a page's text."""
    return page.read_text(encoding="utf-8")


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub writes them."""
    heads = re.findall(r"^#+ (.+)$", text_of(page), re.MULTILINE)
    plain = [re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", head).lower() for head in heads]
    return {re.sub(r"[^\w\- ]", "", head).replace(" ", "-") for head in plain}


@pytest.mark.parametrize("page", MEASURED, ids=lambda page: page.stem)
def test_each_table_names_its_command_commit_and_day(page: Path) -> None:
    assert UNSIGNED.findall(text_of(page)) == []
    assert SIGNED.search(text_of(page)), "a page without tables has the line once"


def test_a_table_without_its_line_is_found_and_gets_one() -> None:
    assert signed(f"{TABLE}\nText.\n", LINE) == f"{TABLE}\n{LINE}\n\nText.\n"
    assert signed(signed(TABLE, LINE), "") == f"{TABLE}\n{LINE}\n"
    assert UNSIGNED.search(TABLE) and UNSIGNED.search(f"{TABLE}\n{LINE.replace('0123', 'x')}\n")


def test_a_generator_s_own_line_has_the_form() -> None:
    assert SIGNED.search(signed(TABLE))


@pytest.mark.parametrize("page", [README, *MEASURED], ids=lambda page: page.stem)
def test_commands_that_are_named_are_there(page: Path) -> None:
    targets = set(re.findall(r"^([\w-]+):", text_of(ROOT / "Makefile"), re.MULTILINE))
    named = re.findall(
        r"`[^`\n]*?(?:python -m )?\b(benchmarks(?:\.[a-z]\w*)+|paper)\b", text_of(page)
    )
    assert [name for name in {*named} if not _found(name)] == []
    assert {*re.findall(r"`make ([\w-]+)", text_of(page))} <= targets


@pytest.mark.parametrize("page", [README, *MEASURED], ids=lambda page: page.stem)
def test_files_that_are_named_by_their_path_are_there(page: Path) -> None:
    folders = "|".join(("tests", "lab", "tools", "benchmarks", "client", "docs", *FOLDERS))
    named = re.findall(rf"`((?:{folders})/[\w./-]*)`", text_of(page))
    assert [path for path in named if not (ROOT / path).exists()] == []


def _found(name: str) -> bool:
    """Tell whether a module exists, or the module that a name belongs to."""
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:
        return find_spec(name.rpartition(".")[0]) is not None


@pytest.mark.parametrize("page", [README, *MEASURED], ids=lambda page: page.stem)
def test_links_lead_to_files_and_headings(page: Path) -> None:
    assert dead_links(page) == []


def test_links_of_the_product_s_pages_lead_to_headings_of_the_laboratory() -> None:
    linking = [ROOT / page for page in PAGES if "lab/docs/" in text_of(ROOT / page)]
    assert len(linking) > 5
    assert [dead for page in linking for dead in dead_links(page) if "lab/" in dead] == []


def dead_links(page: Path) -> list[str]:
    """Return the links of a page that lead to no file, or to no heading of a page."""
    links = re.findall(r"\]\((?!https?:)([^)\s]+)\)", text_of(page))
    links += re.findall(r'(?:src|srcset)="(?!https?:)([^"]+)"', text_of(page))
    found = []
    for link in links:
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        alive = target.exists() and (not anchor or anchor in anchors(target))
        found += [] if alive else [f"{page.name}: {link}"]
    return found


def test_each_page_and_picture_is_shown_somewhere_and_pictures_have_dark_twins() -> None:
    index = text_of(README)
    assert [page.name for page in MEASURED if f"(docs/{page.name})" not in index] == []
    every = "".join(map(text_of, MEASURED))
    for picture in (LAB / "docs").glob("*.png"):
        assert f'"{picture.name}"' in every, picture.name
        light = picture.with_stem(picture.stem.removesuffix("-dark"))
        with Image.open(picture) as image, Image.open(light) as twin:
            assert image.size == twin.size and image.size[0] <= 2048
    assert not re.search(r"!\[[^\]]*\]\([^)]+\.png\)", every)


def test_docstrings_say_what_a_thing_is_in_sentences_that_can_be_held() -> None:
    modules = [path for folder in ("src", "tests") for path in (LAB / folder).rglob("*.py")]
    assert len(modules) > 100
    doubtful = [one for path in modules for one in doubtful_docstrings(path)]
    assert doubtful + [one for path in modules for one in doubtful_words(path)] == []


def test_benchmarks_import_nothing_of_the_paper_s_experiments() -> None:
    pattern = r"^\s*(?:from|import) paper\b"
    modules = (LAB / "src/benchmarks").rglob("*.py")
    assert [path.name for path in modules if re.search(pattern, text_of(path), re.MULTILINE)] == []


def test_every_benchmark_starts_from_the_checkout() -> None:
    """A sample of both places, by the name that pages give."""
    for name in ("benchmarks.core", "benchmarks.periods", "benchmarks.soak", "paper"):
        command = [sys.executable, "-m", name, "--help"]
        ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert ran.returncode == 0, ran.stderr
