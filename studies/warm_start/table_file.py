"""Stream the rows of a file: CSV with any usual separator, or one JSON object a line.

People's own files come from Excel and from databases. pyarrow, which `fit` does not need, neither
finds the separator nor knows Excel's line `sep=`, and refuses a whole file for one bad line.
"""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from rich.console import Console
from rich.progress import open as open_shown

from ground.json_values import Json

SEPARATORS = ",;\t|"
"""Separators of columns; Excel writes semicolons where a comma is the decimal point."""
LONGEST_CELL = 2 * 1024 * 1024
"""Most characters of one cell: beyond the longest prompt of the wire (1 MiB) a quote is not
closed."""


class Unreadable(ValueError):
    """A line, or the file, cannot be read."""


@dataclass(frozen=True, slots=True)
class Row:
    """One row as it stands in the file.

    Attributes:
        number: of its last line.
        cells: by column, texts in a CSV; None where there is an `error`.
        separator: of the columns; None: the row is JSON.
    """

    number: int
    cells: Json = None
    error: str | None = None
    separator: str | None = None


def rows_of(path: Path) -> Iterator[Row]:
    """Yield the rows of a file without blank ones; a terminal shows the progress.

    Raises:
        Unreadable: the file as a whole.
    """
    try:
        with open_shown(
            path,
            "rb",
            description=f"Reading {path.name}",
            console=Console(stderr=True),
            transient=True,
            disable=not sys.stderr.isatty(),
        ) as file:
            first = _first_line(file)
            if first.startswith(b"["):
                raise Unreadable("is a JSON array; write one object a line (JSON Lines), or CSV")
            file.seek(0)
            yield from _json_rows(file) if first.startswith(b"{") else _csv_rows(file)
    except OSError as unreadable:
        raise Unreadable(f"cannot be read: {unreadable.strerror}") from unreadable


def _lines(file: IO[bytes]) -> Iterator[bytes]:
    """Yield the lines of a file, also where a carriage return alone ends them, as in what Excel for
    Mac saves; inside of quotes CSV takes them together again."""
    for line in file:
        yield from line.splitlines(keepends=True)


def _first_line(file: IO[bytes]) -> bytes:
    for line in _lines(file):
        if line.startswith((b"\xff\xfe", b"\xfe\xff")):
            raise Unreadable("is UTF-16; save it as UTF-8 (in Excel: CSV UTF-8)")
        if text := line.removeprefix(b"\xef\xbb\xbf").strip():
            return text
    return b""


def _json_rows(file: IO[bytes]) -> Iterator[Row]:
    for number, line in enumerate(_lines(file), 1):
        text = line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line
        if not text.strip():
            continue
        try:
            yield Row(number, json.loads(text.decode("utf-8")))
        except UnicodeDecodeError:
            yield Row(number, error="is not UTF-8")
        except (ValueError, RecursionError) as wrong:
            yield Row(number, error=f"is not JSON ({wrong})")


def _csv_rows(file: IO[bytes]) -> Iterator[Row]:
    lines = _decoded(file)
    at, header, separator = _header(lines)
    names = next(csv.reader([header], delimiter=separator), [])
    twice = sorted({name for name in names if name.strip() and names.count(name) > 1})
    if twice:
        raise Unreadable(f"has two columns {twice[0]!r}")
    before = csv.field_size_limit(LONGEST_CELL)
    read = csv.reader(lines, delimiter=separator, strict=True)
    try:
        for cells in read:
            if not any(cell.strip() for cell in cells):
                continue
            number, more = at + read.line_num, len(cells) - len(names)
            if more > 0:
                error = f"has {len(cells)} cells, and the header has {len(names)}"
                yield Row(number, error=error, separator=separator)
                continue
            cells += [""] * -more
            yield Row(number, dict(zip(names, cells, strict=True)), separator=separator)
    except csv.Error as wrong:
        raise Unreadable(
            f"line {at + read.line_num}: is not CSV ({wrong}): is every quote closed, and doubled "
            "inside a cell?"
        ) from wrong
    finally:
        csv.field_size_limit(before)


def _header(lines: Iterator[str]) -> tuple[int, str, str]:
    """Return the header's line number, the header, and the separator."""
    said = None
    for at, line in enumerate(lines, 1):
        text = line.strip()
        # Excel may write a line `sep=;` before the header.
        if text.lower().startswith("sep=") and len(text) == len("sep=,"):
            said = text[-1]
        elif text:
            return at, line, said or max(SEPARATORS, key=line.count)
    return 0, "", ","


def _decoded(file: IO[bytes]) -> Iterator[str]:
    for number, line in enumerate(_lines(file), 1):
        try:
            yield line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as wrong:
            raise Unreadable(
                f"line {number}: is not UTF-8; in Excel, save it as CSV UTF-8"
            ) from wrong
