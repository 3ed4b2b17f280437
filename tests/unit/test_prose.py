"""Pages and docstrings are prose that can be read at once, as far as a test can tell."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.pages import PAGES, ROOT
from tests.prose import COLUMNS, UNBROKEN, blocks, rewritten, sentences, words

LONGEST = 40
"""Most words of a sentence."""
NOT_YET = re.compile(
    r"CHANGELOG\.md|docs/lab/.*|docs/schemas/.*|docs/reference/wire\.md"
    r"|docs/explanation/(algorithm|architecture|guarantees|replay)\.md"
)
"""Pages that are generated, belong to the laboratory, or have not been gone through."""
READ = [page for page in PAGES if not NOT_YET.fullmatch(page)]


def paragraphs(page: str) -> Iterator[list[str]]:
    """Yield the paragraphs and the items of lists of a page."""
    for prose, part in blocks((ROOT / page).read_text(encoding="utf-8")):
        if prose:
            yield part


def test_enough_pages_are_read() -> None:
    assert len(READ) > 20


@pytest.mark.parametrize("page", READ)
def test_no_sentence_of_a_page_is_longer_than_can_be_held(page: str) -> None:
    text = [" ".join(line.strip() for line in part) for part in paragraphs(page)]
    cells = re.findall(r"(?<=\| ).+?(?= \|)", (ROOT / page).read_text(encoding="utf-8"))
    every = [one for part in (*text, *cells) for one in sentences(part)]
    assert [one for one in every if words(one) > LONGEST] == []


@pytest.mark.parametrize("page", READ)
def test_a_page_has_one_sentence_a_line_and_its_lines_are_not_wide(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    assert rewritten(text) == text, f"run: python -m tests.prose {page}"
    lines = [line for part in paragraphs(page) for line in part]
    assert [one for one in lines if len(UNBROKEN.sub("", one)) > COLUMNS] == []


def test_a_page_is_written_with_one_sentence_a_line() -> None:
    page = "- One. Two, e.g. `a b. C` too.\n  Three.\n\n| a. B |\n\n    code. Code\n"
    wanted = "- One.\n  Two, e.g. `a b. C` too.\n  Three.\n\n| a. B |\n\n    code. Code\n"
    assert rewritten(page) == wanted
    assert rewritten(wanted) == wanted
