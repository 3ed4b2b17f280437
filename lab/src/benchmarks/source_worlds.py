"""Worlds of labels: gold rewards of each model on each prompt, and what judges say of them."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from benchmarks.data import EXTENDED_VARIABLE, extended_folder
from benchmarks.elsewhere.real import _contexts

Array = npt.NDArray[np.float64]
REQUESTS = 2000
"""Most requests of a run."""
JUDGES = {"R1": "r1", "GPT": "gpt_mini", "Claude": "claude"}
"""The paper's judges, and their names in its files."""
DRAWN_MODELS, DRAWN_DIMENSIONS = 5, 6
ATTACKS = (
    "honest",
    "self-preference",
    "noise",
    "compressed",
    "inverted",
    "binary",
    "drift",
    "two alike",
    "strict",
)
"""Faults of a judge; of "two alike" both favour the same model, with the same errors."""


class World(NamedTuple):
    """Contexts (n, d), gold rewards (n, K) and each judge's labels (n, K), the best judge first."""

    x: Array
    gold: Array
    judges: tuple[Array, ...]


def drawn(seed: int, attack: str) -> World:
    """Return a drawn world with an attack on its judge."""
    numbers = np.random.default_rng(seed)
    x = 0.7 * numbers.standard_normal((REQUESTS, DRAWN_DIMENSIONS))
    x[:, -1] = 1.0
    theta = 0.04 * numbers.standard_normal((DRAWN_MODELS, DRAWN_DIMENSIONS))
    theta[:, -1] = 0.6 + 0.07 * numbers.standard_normal(DRAWN_MODELS)
    scatter = 0.15 * numbers.standard_normal((REQUESTS, DRAWN_MODELS))
    return attacked(x, np.clip(x @ theta.T + scatter, 0.0, 1.0), attack, numbers)


def nine(folder: Path, seed: int, attack: str) -> World:
    """Return prompts of the nine open models, drawn in another order for each seed."""
    x, gold = _nine(folder)
    numbers = np.random.default_rng(seed)
    order = numbers.permutation(len(x))[:REQUESTS]
    return attacked(x[order], gold[order], attack, numbers)


@lru_cache
def _nine(folder: Path) -> tuple[Array, Array]:
    with gzip.open(folder / "ulab9/judged.jsonl.gz", "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    return _contexts(tuple(row["prompt"] for row in rows), "static"), np.array(
        [row["scores"] for row in rows], dtype=np.float64
    )


def attacked(x: Array, gold: Array, attack: str, numbers: np.random.Generator) -> World:
    """Return a world whose judge sees gold with errors of 0.12, and is attacked."""
    judge = gold + 0.12 * numbers.standard_normal(gold.shape)
    second = int(gold.mean(0).argsort()[-2])
    if attack in ("self-preference", "two alike"):
        judge[:, second] += 0.2
    elif attack == "noise":
        judge = 0.6 + 0.25 * numbers.standard_normal(gold.shape)
    elif attack == "compressed":
        judge = 0.45 + 0.35 * judge
    elif attack == "inverted":
        # On the quarter of the prompts with the most of the first feature.
        judge = np.where(x[:, :1] > np.quantile(x[:, 0], 0.75), 1.2 - judge, judge)
    elif attack == "binary":
        judge = (judge > 0.6).astype(float)
    elif attack == "strict":
        judge -= 0.2
    elif attack == "drift":
        judge[len(x) // 2 :, second] += 0.3
    found = [judge]
    if attack == "two alike":
        found.append(judge + 0.03 * numbers.standard_normal(gold.shape))
    return World(x, gold, tuple(np.clip(one, 0.0, 1.0) for one in found))


def of_judges(seed: int, gold: str, judge: str) -> World:
    """Return the paper's prompts, in another order for each seed, as two of its judges scored
    them."""
    x, scores = _judged()
    order = np.random.default_rng(seed).permutation(len(x))[:REQUESTS]
    return World(x[order], scores[gold][order], (scores[judge][order],))


@lru_cache
def _judged() -> tuple[Array, dict[str, Array]]:
    scores: dict[str, Array] = {}
    prompts: tuple[str, ...] = ()
    for judge, name in JUDGES.items():
        rows = list(_rows(name))
        arms = sorted(rows[0]["arms"])
        scores[judge] = np.array([[row["arms"][arm]["reward"] for arm in arms] for row in rows])
        prompts = tuple(row["prompt"] for row in rows)
    return _contexts(prompts, "static"), scores


def _rows(name: str) -> Iterator[dict[str, Any]]:
    for split in ("val", "test"):
        folder = extended_folder()
        if folder is None:
            raise SystemExit(f"{EXTENDED_VARIABLE} has to name a folder with the cross_judge files")
        path = folder / f"cross_judge_{name}_{split}.jsonl"
        with path.open(encoding="utf-8") as file:
            yield from map(json.loads, file)


Pairs = tuple[Array, Array]
"""Labels of a judge and of gold."""


def beside(numbers: np.random.Generator, differences: Array) -> Pairs:
    """Return pairs whose labels differ by so much: gold is between 0 and 1, in steps of a
    hundredth."""
    gold = np.clip(0.6 + 0.15 * numbers.standard_normal(len(differences)), 0.0, 1.0).round(2)
    return gold + differences, gold


def _thumbs(numbers: np.random.Generator, n: int, differs: float) -> Pairs:
    gold = (numbers.random(n) < 0.5).astype(np.float64)
    return np.where(numbers.random(n) < differs, 1.0 - gold, gold), gold


def _by_turns(numbers: np.random.Generator, n: int, spreads: tuple[float, float]) -> Array:
    """Return differences whose spread changes every 400 pairs, as where the traffic changes."""
    first = np.arange(n) // 400 % 2 == 0
    return numbers.standard_normal(n) * np.where(first, *spreads)


def _both_drift(numbers: np.random.Generator, n: int) -> Pairs:
    level = 0.6 + 0.3 * np.sin(np.arange(n) / 300.0)
    judge, gold = (np.clip(level + 0.12 * numbers.standard_normal(n), 0.0, 1.0) for _ in range(2))
    return judge, gold


def _binary(numbers: np.random.Generator, likely: Array) -> Pairs:
    return likely, (numbers.random(len(likely)) < likely).astype(np.float64)


def _mostly(numbers: np.random.Generator, n: int) -> Array:
    return numbers.beta(4.0, 0.4, n)


def _five_steps(numbers: np.random.Generator, n: int) -> Pairs:
    """Return pairs whose gold is in five steps, mostly the highest."""
    likely = _mostly(numbers, n)
    return likely, numbers.binomial(4, likely) / 4.0


def _skewed(numbers: np.random.Generator, n: int) -> Array:
    return np.clip(0.12 * (numbers.gamma(1.0, 1.0, n) - 1.0), -1.0, 1.0)


INNOCENT: dict[str, Callable[[np.random.Generator, int], Pairs]] = {
    "normal, 0.06": lambda numbers, n: beside(numbers, 0.06 * numbers.standard_normal(n)),
    "normal, 0.12": lambda numbers, n: beside(numbers, 0.12 * numbers.standard_normal(n)),
    "heavy tails (t, 3 degrees)": lambda numbers, n: beside(
        numbers, np.clip(0.08 * numbers.standard_t(3, n), -1.0, 1.0)
    ),
    "skewed (gamma), 0.12": lambda numbers, n: beside(numbers, _skewed(numbers, n)),
    "thumbs, one in five differs": lambda numbers, n: _thumbs(numbers, n, 0.2),
    "thumbs, one in fifty differs": lambda numbers, n: _thumbs(numbers, n, 0.02),
    "gold is binary, the judge is not": lambda numbers, n: _binary(numbers, numbers.random(n)),
    "the same, gold is mostly 1": lambda numbers, n: _binary(numbers, _mostly(numbers, n)),
    "the judge is binary and mostly 1, gold is not": lambda numbers, n: _binary(
        numbers, _mostly(numbers, n)
    )[::-1],
    "gold has five steps, and is mostly 1": _five_steps,
    "spread 0.06 and 0.2 by turns": lambda numbers, n: beside(
        numbers, _by_turns(numbers, n, (0.06, 0.2))
    ),
    "spread 0.1 and 0.16 by turns": lambda numbers, n: beside(
        numbers, _by_turns(numbers, n, (0.1, 0.16))
    ),
    "gold and judge drift together": _both_drift,
}
"""Labels of judges that are right on average, and of gold."""
