"""Pages and docstrings are prose that can be read at once, as far as a test can tell."""

from __future__ import annotations

import re
from collections.abc import Iterator

from paretobandit_streams import FOLDERS as ROOMS
from tests.pages import PAGES, ROOT
from tests.prose import (
    COLUMNS,
    LONGEST,
    UNBROKEN,
    blocks,
    docstrings,
    doubtful_docstrings,
    doubtful_words,
    rewritten,
    sentences,
    words,
)

NOT_READ = re.compile(r"CHANGELOG\.md|docs/schemas/.*")
"""Pages that are generated, or name what was."""
FOLDERS = ("client/src", "paretobandit_streams", "benchmarks", *ROOMS)
MODULES = [
    one.relative_to(ROOT) for folder in FOLDERS for one in sorted(ROOT.glob(f"{folder}/**/*.py"))
]
READ = [page for page in PAGES if not NOT_READ.fullmatch(page)]


def paragraphs(page: str) -> Iterator[list[str]]:
    """Yield the paragraphs and the items of lists of a page."""
    for prose, part in blocks((ROOT / page).read_text(encoding="utf-8")):
        if prose:
            yield part


def test_the_first_page_is_short_and_has_one_picture() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.split()) <= 700
    assert text.count("<img") == 1
    assert len(re.findall(r"\]\(", text)) == 5


def test_the_book_names_no_commit() -> None:
    commit = re.compile(r"\b(?=[0-9a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,40}\b")
    assert [page for page in READ if commit.search((ROOT / page).read_text("utf-8"))] == []


def test_enough_pages_are_read() -> None:
    assert len(READ) > 20


def test_no_sentence_of_a_page_is_longer_than_can_be_held() -> None:
    found = []
    for page in READ:
        text = [" ".join(line.strip() for line in part) for part in paragraphs(page)]
        cells = re.findall(r"(?<=\| ).+?(?= \|)", (ROOT / page).read_text(encoding="utf-8"))
        every = [one for part in (*text, *cells) for one in sentences(part)]
        found += [f"{page}: {one}" for one in every if words(one) > LONGEST]
    assert found == []


def test_a_page_has_one_sentence_a_line_and_its_lines_are_not_wide() -> None:
    found = []
    for page in READ:
        text = (ROOT / page).read_text(encoding="utf-8")
        if rewritten(text) != text:
            found.append(f"run: python -m tests.prose {page}")
        lines = [line for part in paragraphs(page) for line in part]
        found += [f"{page}: {one}" for one in lines if len(UNBROKEN.sub("", one)) > COLUMNS]
    assert found == []


def test_a_page_is_written_with_one_sentence_a_line() -> None:
    page = "- One. Two, e.g. `a b. C` too.\n  Three.\n\n| a. B |\n\n    code. Code\n"
    wanted = "- One.\n  Two, e.g. `a b. C` too.\n  Three.\n\n| a. B |\n\n    code. Code\n"
    assert rewritten(page) == wanted
    assert rewritten(wanted) == wanted


# One test for all modules: a case each would cost every process of the tests more than it tells.
def test_docstrings_say_what_a_thing_is_in_sentences_that_can_be_held() -> None:
    assert [one for path in MODULES for one in doubtful_docstrings(ROOT / path)] == []
    read = sum(len(list(docstrings((ROOT / path).read_text("utf-8")))) for path in MODULES)
    assert read > 1500


def test_constants_have_docstrings_and_errors_say_is_not() -> None:
    assert [one for path in MODULES for one in doubtful_words(ROOT / path)] == []
