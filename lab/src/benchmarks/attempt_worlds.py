"""Worlds of attempts: judged data and drawn worlds, and verifiers that are told right from wrong
answers."""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from benchmarks.arena import Array
from benchmarks.beside import code
from benchmarks.elsewhere.real import _contexts, eleven
from commands.demo.benchmark import load_rows
from router_state.config import Price

ANSWER_TOKENS, ANSWER_SPREAD = 250.0, 0.6
"""Mean length of an answer of the nine open models, whose lengths were not published, and the
deviation of its logarithm: drawn."""
CHARACTERS_PER_TOKEN = 4.0
DRAWN_MODELS, DRAWN_PROMPTS, DRAWN_FEATURES = 5, 2500, 8


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """The rewards and costs of K models on n prompts.

    Attributes:
        contexts: shape (n, d), last entry 1.0; rewards, costs: shape (n, K), costs in dollars.
        right: the reward from which an answer is right, for verifiers.
        budget: dollars per request.
    """

    name: str
    models: tuple[str, ...]
    prices: tuple[Price, ...]
    contexts: Array
    rewards: Array
    costs: Array
    right: float
    budget: float


@lru_cache
def world(name: str, folder: Path, seed: int = 0) -> Judged:
    """Return a world by its name; only "drawn" depends on the seed."""
    if name.startswith("code"):
        field = code.tasks()
        budget = 1e-3 if name == "code, tight" else 2.66e-3
        return Judged(
            name,
            field.models,
            field.prices,
            field.contexts,
            field.rewards,
            field.costs,
            0.5,
            budget,
        )
    if name == "drawn":
        return drawn(seed)
    if name == "nine":
        return nine(folder)
    one = eleven(folder, "static") if name == "eleven" else load_rows("test")
    contexts = one.contexts if name == "eleven" else _contexts(one.prompts, "static")
    right, budget = (0.5, 1e-3) if name == "eleven" else (0.85, 3e-4)
    return Judged(name, one.models, one.prices, contexts, one.rewards, one.costs, right, budget)


def nine(folder: Path) -> Judged:
    """Return the nine open models; lengths of answers are drawn, see `ANSWER_TOKENS`."""
    with gzip.open(folder / "ulab9/judged.jsonl.gz", "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    models = json.loads((folder / "ulab9/models.json").read_text())["models"]
    prices = tuple(Price(one["input_price_per_m"], one["output_price_per_m"]) for one in models)
    prompts = tuple(row["prompt"] for row in rows)
    rng, n, K = np.random.default_rng(5), len(rows), len(models)
    mean = np.log(ANSWER_TOKENS) - 0.5 * ANSWER_SPREAD**2
    # Most of a length's scatter is the prompt's.
    scatter = 0.8 * rng.normal(size=(n, 1)) + 0.6 * rng.normal(size=(n, K))
    answers = np.exp(mean + ANSWER_SPREAD * scatter)
    length = np.array([max(len(prompt) / CHARACTERS_PER_TOKEN, 1.0) for prompt in prompts])
    per_m = np.array([(one.input_price_per_m, one.output_price_per_m) for one in prices])
    costs = (length[:, None] * per_m[:, 0] + answers * per_m[:, 1]) / 1e6
    return Judged(
        "nine",
        tuple(one["name"] for one in models),
        prices,
        _contexts(prompts, "static"),
        np.array([row["scores"] for row in rows], dtype=np.float64),
        costs,
        0.5,
        8e-5,
    )


def drawn(seed: int) -> Judged:
    """Return a drawn world: models from cheap and fair to dear and good, prompts that are hard for
    all, and a budget between the cheapest and the dearest model."""
    rng, n, K, d = (
        np.random.default_rng([41, seed]),
        DRAWN_PROMPTS,
        DRAWN_MODELS,
        DRAWN_FEATURES,
    )
    features = rng.normal(size=(n, d - 1))
    slopes = rng.normal(size=(d - 1, 1)) * 0.3 + rng.normal(size=(d - 1, K)) * 0.25
    level = np.sort(rng.uniform(-0.3, 2.2, K))
    alike = rng.uniform(0.3, 1.5)
    worth = level + features @ slopes - alike * rng.normal(size=(n, 1)) + rng.normal(size=(n, K))
    usd = 1e-4 * np.exp(np.sort(rng.uniform(0.0, 4.5, K)))
    costs = usd * np.exp(0.4 * rng.normal(size=(n, 1)) + 0.2 * rng.normal(size=(n, K)))
    prices = tuple(Price(1e3 * one, 1e3 * one) for one in usd)
    budget = float(np.exp(rng.uniform(np.log(1.5 * usd[0]), np.log(0.7 * usd[-1]))))
    contexts = np.column_stack([features, np.ones(n)])
    names = tuple(f"model-{k}" for k in range(K))
    rewards = (worth > 0.0).astype(np.float64)
    return Judged("drawn", names, prices, contexts, rewards, costs, 0.5, budget)


VERIFIERS = (
    "perfect",
    "good",
    "fair",
    "coin",
    "lenient coin",
    "uneven",
    "hard prompts",
    "difficulty alone",
    "favours models",
    "good, then coin",
    "good, half missing",
)
"""Kinds of verifiers: .9/.8 is good, .85/.6 fair (passes of the right, stops of the wrong)."""


def passes(kind: str, right: np.ndarray, rng: np.random.Generator) -> Array:
    """Return the probability that each answer passes, shape (n, K)."""
    n, K = right.shape
    easy = right.mean(1, keepdims=True)
    found: Array
    match kind:
        case "perfect":
            found = right.astype(np.float64)
        case "good" | "good, half missing":
            found = np.where(right, 0.9, 0.2)
        case "fair":
            found = np.where(right, 0.85, 0.4)
        case "coin":
            found = np.full((n, K), 0.5)
        case "lenient coin":
            found = np.full((n, K), 0.9)
        case "uneven":
            found = np.where(right, rng.uniform(0.7, 0.98, K), 1.0 - rng.uniform(0.1, 0.95, K))
        case "hard prompts":
            # Sure of easy prompts, and on hard ones little better than a coin.
            found = np.where(right, 0.5 + 0.48 * easy, 0.6 - 0.55 * easy)
        case "difficulty alone":
            found = np.tile(0.1 + 0.8 * easy, (1, K))
        case "favours models":
            found = np.tile(rng.uniform(0.2, 0.95, K), (n, 1))
        case "good, then coin":
            good = np.where(right, 0.9, 0.2)
            found = np.where(np.arange(n)[:, None] < n // 2, good, 0.5)
        case _:
            raise KeyError(kind)
    return found
