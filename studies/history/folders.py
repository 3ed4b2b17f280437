"""Export a history to a folder, and open such a folder."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal

from studies.history.parquet import ParquetHistory, write_parquet
from studies.history.records import SOURCES, History, JsonlHistory, Record, write_jsonl

Format = Literal["jsonl", "parquet"]


class BadFolder(Exception):
    """The folder holds no history, or already holds one when it must not."""

    reason = "bad_folder"
    retriable = False


def export(
    history: History,
    folder: Path,
    *,
    form: Format = "jsonl",
    since: float = float("-inf"),
    until: float = float("inf"),
) -> int:
    """Write a history, one file per topic and partition; return how many records.

    Args:
        since, until: seconds since the epoch; records written outside are left out, but not
            declarations before `until`.

    Raises:
        BadFolder: the folder holds a history already.
        MissingPyArrow: Parquet was asked for, and pyarrow is not installed.
    """
    if _formats(folder):
        raise BadFolder(f"{folder} holds a history already; choose another folder")
    folder.mkdir(parents=True, exist_ok=True)
    write = write_parquet if form == "parquet" else write_jsonl
    written = 0
    for topic in SOURCES:
        # A decision in the range may depend on an earlier declaration.
        first = float("-inf") if topic == "routers" else since
        for partition in {*history.partitions(), *history.partitions(topic)}:
            written += write(
                _within(history.read(topic, partition), first, until),
                folder / f"{topic}-{partition}.{form}",
            )
    return written


def open_folder(folder: Path) -> History:
    """Open an export, whichever format it has.

    Raises:
        BadFolder: there is none, or there are two.
        MissingPyArrow: it is Parquet, and pyarrow is not installed.
    """
    match _formats(folder):
        case ["jsonl"]:
            return JsonlHistory(folder)
        case ["parquet"]:
            return ParquetHistory(folder)
        case []:
            raise BadFolder(
                f"{folder} holds no requests-PARTITION.jsonl or .parquet: it is not an export of a "
                "history"
            )
        case _:
            raise BadFolder(
                f"{folder} holds a history as JSONL and one as Parquet; keep one of them"
            )


def _formats(folder: Path) -> list[str]:
    return sorted(
        {
            path.suffix[1:]
            for form in ("jsonl", "parquet")
            for path in folder.glob(f"requests-*.{form}")
        }
    )


def _within(records: Iterable[Record], since: float, until: float) -> Iterator[Record]:
    return (record for record in records if since <= record.timestamp < until)
