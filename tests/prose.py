"""Read and write prose: sentences of Markdown and of docstrings, and one sentence a line.

`python -m tests.prose FILE...` rewrites pages so that each sentence begins a line.
"""

from __future__ import annotations

import ast
import itertools
import re
import sys
from collections.abc import Iterator
from pathlib import Path

COLUMNS = 100
"""Longest line of a page, in characters; tables, code and links may be longer."""
LONGEST = 40
"""Most words of a sentence."""
ABBREVIATION = re.compile(r"(?:\b(?:e\.g|i\.e|et al|vs|cf|no|approx)|\b[A-Z]|…)\.$")
"""Ends in a full stop that ends no sentence."""
SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z`\[(*λθ\"'_0-9])")
"""The gap between two sentences of a line."""
MARKER = re.compile(r"(\s*)((?:[-*+]|\d+\.)\s+|(?:> ?)+)?")
"""The indent of a line, and the mark of its list or quotation."""
UNBROKEN = re.compile(r"`[^`]+`|!?\[[^\]]*\]\([^)]*\)")
"""Inline code or a link, which stands on one line."""

NO_BEGINNING = re.compile(
    r"(after|as|at|before|behind|below|beneath|beside|between|beyond|by|for|from|how|in|not|of|on"
    r"|over|since|than|that|times|to|under|until|up to|what|when|where|whether|which|while|who|whom"
    r"|whose|with|within|without)\b",
    re.IGNORECASE,
)
"""Words with which no docstring says what a thing is or does."""
IS_NO = re.compile(r"(?<!there )\b(is|are|was|were) no (?!longer\b|need\b)")
"""Words of an error that says "is no X" instead of "is not an X"."""


def sentences(text: str) -> list[str]:
    """Split a paragraph into its sentences."""
    kept = UNBROKEN.sub(lambda found: re.sub(r"\s", "\0", found[0]), " ".join(text.split()))
    found: list[str] = []
    for part in SENTENCE_END.split(kept):
        if found and ABBREVIATION.search(found[-1]):
            found[-1] = f"{found[-1]} {part}"
        else:
            found.append(part)
    return [one.replace("\0", " ") for one in found]


def words(sentence: str) -> int:
    """Count the words of a sentence; inline code or a link's target is one word at most."""
    plain = re.sub(r"\]\([^)]*\)", "", sentence)
    return len(re.sub(r"`[^`]+`", "code", plain).split())


def blocks(page: str) -> Iterator[tuple[bool, list[str]]]:
    """Yield the parts of a page, and whether each is prose: a paragraph or an item of a list."""
    part: list[str] = []
    code = html = False
    for line in page.splitlines():
        fence = line.lstrip().startswith("```")
        html = (html or line.startswith("<")) and bool(line.strip())
        plain = code or fence or html or not line.strip() or re.match(r"#|\||    \S| {0,3}\|", line)
        starts = MARKER.match(line)
        if part and (plain or (starts and starts[2])):
            yield True, part
            part = []
        if plain:
            yield False, [line]
        else:
            part.append(line)
        code ^= fence
    if part:
        yield True, part


def written(part: list[str]) -> list[str]:
    """Write a paragraph or an item of a list with one sentence a line, wrapped where it is long."""
    starts = MARKER.match(part[0])
    assert starts
    indent, mark = starts[1], starts[2] or ""
    after = mark if mark.startswith(">") else " " * len(mark)
    text = " ".join(line[starts.end() :] if line is part[0] else line.lstrip("> ") for line in part)
    lines: list[str] = []
    for sentence in sentences(text):
        lines += _wrapped(sentence, COLUMNS - len(indent + mark))
    return [f"{indent}{after if at else mark}{line}" for at, line in enumerate(lines)]


def _wrapped(sentence: str, columns: int) -> list[str]:
    kept = UNBROKEN.sub(lambda found: found[0].replace(" ", "\0"), sentence)
    lines = [""]
    for word in kept.split():
        # A line that begins with a number and a full stop, or a dash, would be an item of a list.
        whole = len(lines[-1]) + len(word) < columns or re.match(r"\d+\.$|[-+#>|=]", word)
        if not lines[-1]:
            lines[-1] = word
        elif whole:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return [line.replace("\0", " ") for line in lines]


def docstrings(source: str) -> Iterator[tuple[int, str]]:
    """Yield the docstrings of a module, of its parts and of its constants, with their lines."""
    owners = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, owners) and (text := ast.get_docstring(node)):
            yield node.body[0].lineno, text
        body = node.body if isinstance(node, owners) else []
        for before, one in itertools.pairwise(body):
            if (
                isinstance(before, ast.Assign | ast.AnnAssign)
                and isinstance(one, ast.Expr)
                and isinstance(one.value, ast.Constant)
                and isinstance(one.value.value, str)
            ):
                yield one.lineno, one.value.value


def prose_of(docstring: str) -> Iterator[str]:
    """Yield the paragraphs of a docstring and the items of its lists, without examples in code."""
    for part in re.split(r"\n\s*\n", docstring):
        if re.match(r"(Args|Attributes|Raises|Returns|Yields|Example)s?:\n", part):
            head, _, items = part.partition("\n")
            if head != "Example:":
                yield from re.split(r"\n(?=    \S)", items)
        elif not re.match(r"    |>>>|\x08", part):
            yield part


def doubtful_docstrings(path: Path) -> list[str]:
    """Return the docstrings of a module that do not begin with what a thing is, or have too long
    a sentence.
    """
    found = []
    for line, text in docstrings(path.read_text(encoding="utf-8")):
        if NO_BEGINNING.match(text):
            found.append(f"{path}:{line}: it does not say what it is: {text[:60]}")
        every = [one for part in prose_of(text) for one in sentences(part)]
        found += [f"{path}:{line}: too long: {one}" for one in every if words(one) > LONGEST]
    return found


def doubtful_words(path: Path) -> list[str]:
    """Return the comments of a module that should be docstrings, and texts that say "is no X"."""
    source = path.read_text(encoding="utf-8")
    found = [f"{path}: {one}" for one in re.findall(r"^ *#:.*", source, re.MULTILINE)]
    every = list(ast.walk(ast.parse(source)))
    remarks = {id(one.value) for one in every if isinstance(one, ast.Expr)}
    return found + [
        f"{path}:{one.lineno}: {one.value}"
        for one in every
        if isinstance(one, ast.Constant) and isinstance(one.value, str)
        if id(one) not in remarks and IS_NO.search(one.value)
    ]


def rewritten(page: str) -> str:
    """Return a page with one sentence a line."""
    lines: list[str] = []
    for prose, part in blocks(page):
        lines += written(part) if prose else part
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    for name in sys.argv[1:]:
        path = Path(name)
        path.write_text(rewritten(path.read_text(encoding="utf-8")), encoding="utf-8")
