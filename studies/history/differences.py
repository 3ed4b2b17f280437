"""Show a difference between history and replay, with the candidates of both."""

from __future__ import annotations

import msgspec
from rich.table import Table

from drawing.numbers import dual
from ground.json_values import Document
from router_state.kernel import Candidates
from studies.history.verify import Difference, Verdict

COLUMNS = ("mean", "bonus", "penalty", "score", "expected_cost_usd", "excluded")
"""Fields of a candidate that are shown side by side."""


def summary(verdict: Verdict) -> list[str]:
    """Return the outcome of a verification in sentences."""
    lines = [
        (
            f"{verdict.compared:,} decisions made again: {verdict.equal:,} equal, "
            f"{verdict.identical:,} of them to the bit."
        )
    ]
    for router_id, difference in sorted(verdict.differences.items()):
        was, now = difference.recorded, difference.again
        where = f"Router {router_id}, decision {was.seq} (request {was.request_id})"
        if now is None:
            lines.append(
                f"{where}: history chose {was.model}, the engine refuses now: {difference.refusal}."
            )
        else:
            lines.append(
                f"{where}: {', '.join(difference.fields)} differ; history chose {was.model}, now "
                f"{now.model}."
            )
    lines += [
        f"Router {router_id} can't be verified: {why}."
        for router_id, why in sorted(verdict.unprovable.items())
    ]
    return lines


def as_json(verdict: Verdict) -> Document:
    """Return the outcome for programs."""
    return {
        "holds": verdict.holds,
        "compared": verdict.compared,
        "equal": verdict.equal,
        "identical": verdict.identical,
        "unprovable": verdict.unprovable,
        "differences": {
            router_id: {
                "seq": found.recorded.seq,
                "request_id": found.recorded.request_id,
                "fields": found.fields,
                "refusal": found.refusal,
                "recorded": {
                    "model": found.recorded.model,
                    "lambda_t": found.recorded.lambda_t,
                    "candidates": _recorded(found),
                },
                "again": None if found.again is None else _again(found),
            }
            for router_id, found in verdict.differences.items()
        },
    }


def tables(difference: Difference) -> list[Table]:
    """Return the candidates of history and of the replay, one table each."""
    shown = [
        _table(
            "In history",
            difference.recorded.lambda_t,
            difference.recorded.model,
            _recorded(difference),
        )
    ]
    if difference.again is not None:
        again = difference.again
        shown.append(_table("Now", again.lambda_t, again.model, rows_of(again.candidates)))
    return shown


def rows_of(seen: Candidates | None) -> list[Document]:
    """Return a record's candidates as rows."""
    if seen is None:
        return []
    return [
        {
            "model": model,
            "mean": seen.mean[k],
            "bonus": seen.bonus[k],
            "penalty": seen.penalty[k],
            "score": seen.score(k),
            "expected_cost_usd": seen.expected_cost_usd[k],
            "excluded": seen.excluded[k],
        }
        for k, model in enumerate(seen.models)
    ]


def _recorded(found: Difference) -> list[Document]:
    rows: list[Document] = msgspec.to_builtins(found.recorded.candidates or [])
    return rows


def _again(found: Difference) -> Document:
    assert found.again is not None
    return {
        "model": found.again.model,
        "lambda_t": found.again.lambda_t,
        "candidates": rows_of(found.again.candidates),
    }


def _table(title: str, lambda_t: float, chosen: str, rows: list[Document]) -> Table:
    shown = Table(title=f"{title}: λ_t {dual(lambda_t, 9)}, chose {chosen}", title_justify="left")
    shown.add_column("model")
    for column in COLUMNS:
        shown.add_column(column, justify="right")
    for row in rows:
        cells = (
            f"{row[c]:.9g}" if isinstance(row.get(c), int | float) else row.get(c) or ""
            for c in COLUMNS
        )
        shown.add_row(row["model"], *cells)
    return shown
