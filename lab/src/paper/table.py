"""Rows for a terminal and for a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from benchmarks.report import Interval, print_table
from paper.compare import MACHINE, Row
from paper.printed import Published

COLUMNS = ("", "paper prints", "reference library", "paper profile", "agrees", "live profile")
SAME = 1e-9


def cells(row: Row) -> tuple[str, ...]:
    """Return a row's cells: "same" where the library's number is the paper profile's, "worse" where
    live is behind it.
    """
    paper, live = row.ours, row.found.get("live")
    told = _found(live) + (" **worse**" if row.worse else "")
    return (
        row.name,
        _printed(row.printed),
        _reference(row, paper),
        _found(paper),
        _verdict(row),
        told,
    )


def _reference(row: Row, paper: Interval | None) -> str:
    reference = row.found.get("reference")
    if reference is None or paper is None or abs(reference.mean - paper.mean) > SAME:
        return _found(reference)
    return "same"


def _verdict(row: Row) -> str:
    agrees = row.agrees()
    return "" if agrees is None else "yes" if agrees else "**no**"


def _printed(printed: Published | None) -> str:
    if printed is None:
        return ""
    return (
        f"{printed.value:g}"
        if printed.low is None
        else f"{printed.value:g} [{printed.low:g}, {printed.high:g}]"
    )


def _found(interval: Interval | None) -> str:
    if interval is None:
        return ""
    if interval.low == interval.high:
        return f"{interval.mean:.4g}"
    return f"{interval.mean:.4g} [{interval.low:.4g}, {interval.high:.4g}]"


def print_rows(experiment: str, rows: Sequence[Row], seeds: int) -> None:
    """Print an experiment."""
    print_table(
        f"{experiment}, {seeds} seeds",
        COLUMNS,
        [[cell.replace("**", "") for cell in cells(row)] for row in rows],
    )


def markdown(rows: Sequence[Row]) -> list[str]:
    """Return a table's lines."""
    lines = [f"| {' | '.join(COLUMNS)} |", "| --- | --- | --- | --- | --- | --- |"]
    return lines + [f"| {' | '.join(cells(row))} |" for row in rows]


def tally(rows: Sequence[Row]) -> dict[str, int]:
    """Return how many printed numbers were compared, how many the library and the paper profile
    reach, and where live is worse.
    """
    judged = [row for row in rows if row.agrees() is not None]
    theirs = [row for row in judged if row.agrees("reference") is not None]
    return {
        "compared": len(judged),
        "agree": sum(bool(row.agrees()) for row in judged),
        "library_compared": len(theirs),
        "library_agree": sum(bool(row.agrees("reference")) for row in theirs),
        "live_worse": sum(row.worse for row in rows),
    }


def tallies(results: Mapping[str, Sequence[Row]], seeds: Mapping[str, int]) -> list[str]:
    """Return a table's lines: per experiment how many seeds ran and what was compared."""
    lines = [
        (
            "| | seeds | numbers compared | paper profile agrees | library, run here, agrees | "
            "live worse than paper, rows |"
        ),
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for name, rows in results.items():
        told = tally(rows)
        if name in MACHINE:
            lines.append(f"| {name} | | times of another machine: not judged | | | |")
            continue
        library = (
            f"{told['library_agree']} of {told['library_compared']}"
            if told["library_compared"]
            else ""
        )
        lines.append(
            f"| {name} | {seeds[name]} | {told['compared']} | {told['agree']} | {library} | "
            f"{told['live_worse'] or ''} |"
        )
    return lines
