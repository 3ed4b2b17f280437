"""Pages and docstrings are prose that can be read at once, as far as a test can tell."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from paretobandit_streams import FOLDERS as ROOMS
from tests.pages import PAGES, ROOT
from tests.prose import COLUMNS, UNBROKEN, blocks, docstrings, prose_of, rewritten, sentences, words

LONGEST = 40
"""Most words of a sentence."""
NOT_READ = re.compile(r"CHANGELOG\.md|docs/schemas/.*")
"""Pages that are generated, or name what was."""
FOLDERS = ("client/src", "paretobandit_streams", "benchmarks", "lab", *ROOMS)
MODULES = [
    one.relative_to(ROOT) for folder in FOLDERS for one in sorted(ROOT.glob(f"{folder}/**/*.py"))
]
NO_BEGINNING = re.compile(
    r"(after|as|at|before|behind|below|beneath|beside|between|beyond|by|for|from|how|in|not|of|on"
    r"|over|since|than|that|times|to|under|until|up to|what|when|where|whether|which|while|who|whom"
    r"|whose|with|within|without)\b",
    re.IGNORECASE,
)
"""Words with which no docstring says what a thing is or does."""
IS_NO = re.compile(r"(?<!there )\b(is|are|was|were) no (?!longer\b|need\b)")
"""Words of an error that says "is no X" instead of "is not an X"."""
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
    found, read = [], 0
    for path in MODULES:
        for line, text in docstrings((ROOT / path).read_text(encoding="utf-8")):
            read += 1
            if NO_BEGINNING.match(text):
                found.append(f"{path}:{line}: it does not say what it is: {text[:60]}")
            every = [one for part in prose_of(text) for one in sentences(part)]
            found += [f"{path}:{line}: too long: {one}" for one in every if words(one) > LONGEST]
    assert found == []
    assert read > 1500


def test_constants_have_docstrings_and_errors_say_is_not() -> None:
    found = []
    for path in MODULES:
        source = (ROOT / path).read_text(encoding="utf-8")
        found += [f"{path}: {one}" for one in re.findall(r"^ *#:.*", source, re.MULTILINE)]
        every = list(ast.walk(ast.parse(source)))
        remarks = {id(one.value) for one in every if isinstance(one, ast.Expr)}
        found += [
            f"{path}:{one.lineno}: {one.value}"
            for one in every
            if isinstance(one, ast.Constant) and isinstance(one.value, str)
            if id(one) not in remarks and IS_NO.search(one.value)
        ]
    assert found == []
