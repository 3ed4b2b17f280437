"""Write what is known of a router's verifiers into `pb.lambda`."""

from __future__ import annotations

from router_state.attempts.verdict_tables import Tables
from router_state.attempts.verifier import Verifier
from router_state.kernel import VerdictTable
from router_state.learning.intervals import TWO_SIDED

DIGITS = 4
"""Digits of a share that people read."""
MOST_VERIFIED_MODELS = 64
"""Most models of a verifier that are published: those with the most verdicts."""
Standing = dict[str, object]
LastStandings = dict[str, tuple[tuple[bytes, tuple[str, ...], Verifier], Standing]]
"""The last standing of each verifier, after the table and the declaration that it follows from."""


def standings(tables: Tables, last: LastStandings) -> list[Standing]:
    """Return what is known of each verifier; see `schemas.verifiers.VerifierStanding`.

    A standing is published after every group, and changes only with verdicts and labels: an
    unchanged one is not computed again.
    """
    return [
        _again(name, one, tables.tables[name], last)
        for name, one in sorted(tables.verifiers.items())
    ]


def _again(name: str, declared: Verifier, table: VerdictTable, last: LastStandings) -> Standing:
    basis, before = (table.array.tobytes(), table.names, declared), last.get(name)
    if before is None or before[0] != basis:
        before = last[name] = basis, _standing(name, declared, table)
    return before[1]


def _standing(name: str, declared: Verifier, table: VerdictTable) -> Standing:
    edges = range(1, table.J)
    edge = edges[0] if len(edges) == 1 else max(edges, key=lambda one: _separation(table, one))
    counts = _counts(table)
    models = sorted(range(table.K), key=lambda k: -counts[k][0])[:MOST_VERIFIED_MODELS]
    return {
        "verifier": name,
        "usd": declared.usd,
        "exact": declared.exact,
        "accept_at": edge / declared.bins,
        "models": [_model(table, k, edge, *counts[k]) for k in sorted(models)],
    }


def _model(
    table: VerdictTable, k: int, edge: int, verdicts: float, labels: float
) -> dict[str, object]:
    least, likely, most = (table.likelihoods(k, edge, one) for one in (-TWO_SIDED, 0.0, TWO_SIDED))
    return {
        "model": table.names[k],
        "passes_right": _estimate(likely[0], least[0], most[0]),
        "stops_wrong": _estimate(1.0 - likely[1], 1.0 - least[1], 1.0 - most[1]),
        "verdicts": round(verdicts),
        "labels": round(labels),
    }


def _separation(table: VerdictTable, edge: int) -> float:
    """Return how much more right than wrong answers pass, over all models."""
    shares = [table.likelihoods(k, edge, 0.0) for k in range(table.K)]
    return sum(right - wrong for right, wrong in shares)


def _counts(table: VerdictTable) -> list[tuple[float, float]]:
    """Return of each model the verdicts on its answers, and the labels among them."""
    J, numbers = table.J, table.array.tolist()
    begins = range(2 * J + 2, len(numbers), 4 * J + 1)
    return [
        (sum(numbers[at + 2 * J : at + 3 * J]), sum(numbers[at + 3 * J : at + 4 * J]))
        for at in begins
    ]


def _estimate(value: float, low: float, high: float) -> dict[str, float]:
    return {
        "value": round(value, DIGITS),
        "low": round(min(low, value), DIGITS),
        "high": round(max(high, value), DIGITS),
    }
