"""CodeRouterBench (arXiv:2606.22902, MIT; see `coderouterbench.NOTICE`): 2,919 coding tasks of nine
dimensions, and 176 agentic tasks, with what eight models earned and cost.

The prompts of the 2,919 tasks were not published. A context is the task's dimension and the
logarithm of its prompt's length, each of unit variance, and a bias.
"""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.arena import Array
from benchmarks.beside.field import Field
from router_state.config import Price

SHIPPED = Path(__file__).with_name("coderouterbench.npz")
PRICES = {
    "claude-opus-4-6": Price(5.0, 25.0),
    "claude-sonnet-4-6": Price(3.0, 15.0),
    "gpt-5.4": Price(2.5, 15.0),
    "glm-5": Price(0.8, 3.0),
    "kimi-k2.5": Price(0.01, 2.9),
    "MiniMax-M2.7": Price(1.0, 3.0),
    "Qwen3-Max": Price(0.34, 1.38),
    "qwen3.5-plus": Price(0.11, 0.66),
}
"""List prices in dollars per million tokens, input and output, as published with the outcomes."""


@dataclass(frozen=True, slots=True, eq=False)
class Outcomes:
    """Rewards and costs in dollars, each of shape (n, K), with each task's dimension and the
    length of its prompt in tokens."""

    rewards: Array
    costs: Array
    dimensions: tuple[str, ...]
    tokens: Array


def tasks() -> Field:
    """Return the 2,919 tasks; feedback comes before the next request, as in the published runs."""
    return _field("code", "CodeRouterBench, 2,919 tasks, eight models", _shipped("id"))


def agentic() -> Field:
    """Return the 2,919 tasks and behind them the 176 agentic ones, whose calls cost a hundred times
    as much."""
    known, new = _shipped("id"), _shipped("ood")
    both = Outcomes(
        np.concatenate([known.rewards, new.rewards]),
        np.concatenate([known.costs, new.costs]),
        known.dimensions + new.dimensions,
        np.concatenate([known.tokens, new.tokens]),
    )
    field = _field("agentic", "CodeRouterBench, 176 agentic tasks behind the 2,919", both)
    return replace(field, before=len(known.rewards))


def _field(name: str, title: str, outcomes: Outcomes) -> Field:
    kinds, of_task = np.unique(outcomes.dimensions, return_inverse=True)
    one = (of_task[:, None] == np.arange(len(kinds))).astype(np.float64)
    length = np.log(np.maximum(outcomes.tokens, 1.0))
    length = (length - length.mean()) / length.std()
    n = len(of_task)
    contexts = np.column_stack([one / np.sqrt(one.mean(0)), length, np.ones(n)])
    models, prices = tuple(PRICES), tuple(PRICES.values())
    return Field(name, title, models, prices, contexts, of_task, outcomes.rewards, outcomes.costs)


def _shipped(part: str) -> Outcomes:
    with np.load(SHIPPED) as file:
        return Outcomes(
            file[f"{part}_rewards"].astype(np.float64),
            file[f"{part}_costs"].astype(np.float64),
            tuple(file["dimensions"][file[f"{part}_dimension"]].tolist()),
            file[f"{part}_tokens"].astype(np.float64),
        )


def read(file: Path, *, score: str, tokens: str) -> Outcomes:
    """Read published outcomes, one row per task and model; a prompt's length is the median of what
    models counted.

    Args:
        score, tokens: names of the columns.
    """
    found: dict[str, dict[str, dict[str, str]]] = {}
    for row in _rows(file):
        found.setdefault(row["task_id"], {})[row["model"]] = row

    def numbers(column: str) -> Array:
        return np.array([[float(of[m][column] or 0) for m in PRICES] for of in found.values()])

    dimensions = tuple(next(iter(of.values()))["dimension"] for of in found.values())
    return Outcomes(
        numbers(score), numbers("cost_usd"), dimensions, np.median(numbers(tokens), axis=1)
    )


def _rows(file: Path) -> Iterator[dict[str, str]]:
    with gzip.open(file, "rt", encoding="utf-8", newline="") as text:
        yield from csv.DictReader(text)


def pack(folder: Path, target: Path = SHIPPED) -> None:
    """Write the compact copy that is shipped, from the published files in a folder."""
    parts = {
        "id": read(folder / "id_test_results_long.csv.gz", score="score", tokens="input_tokens"),
        "ood": read(folder / "ood176_results_long.csv.gz", score="resolved", tokens="in_tok"),
    }
    names = sorted({name for part in parts.values() for name in part.dimensions})
    arrays: dict[str, Any] = {"dimensions": np.array(names)}
    for part, of in parts.items():
        arrays[f"{part}_rewards"] = of.rewards.astype(np.float32)
        arrays[f"{part}_costs"] = of.costs.astype(np.float32)
        arrays[f"{part}_dimension"] = np.array([names.index(d) for d in of.dimensions], np.uint8)
        arrays[f"{part}_tokens"] = of.tokens.astype(np.uint32)
    np.savez_compressed(target, **arrays)
