"""B: does the list price rank what requests really cost? A statement about the data; no policy
takes part.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from benchmarks.data import Benchmark
from paper.data import Data
from paper.outcome import Sheet
from router_state.kernel import log_price

SHORT = {
    "meta-llama/llama-3.1-8b-instruct": "Llama",
    "mistralai/mistral-large-2512": "Mistral",
    "google/gemini-2.5-pro": "Gemini",
    "google/gemini-2.5-flash": "Flash",
}


def price_order(data: Data, seed: int, policies: Sequence[str]) -> Sheet:
    """Measure how often real costs keep the order of the list prices, how far they scatter, and
    what they go with.
    """
    sheet, four = Sheet(), data.four
    if four is not None:
        _tell(sheet, four, "K 4", range(4))
        _tell(sheet, four, "K 3", range(3))
    else:
        _tell(sheet, data.val, "K 3", range(3))
    return sheet


def _tell(sheet: Sheet, judged: Benchmark, name: str, rows: Sequence[int]) -> None:
    billed = judged.costs[(judged.costs > 0).all(axis=1)]
    order = sorted(rows, key=lambda k: log_price(judged.prices[k].per_1k))
    label = [SHORT[judged.models[k]] for k in order]
    costs = billed[:, order]
    logs = np.log(costs)
    sheet.put(f"{name} prompts", "here", len(costs))
    sheet.put(
        f"{name} order kept %",
        "here",
        100.0 * float((np.diff(costs, axis=1) > 0).all(axis=1).mean()),
    )
    pairs = list(itertools.combinations(range(len(order)), 2))
    for i, j in pairs:
        kept = 100.0 * float((costs[:, i] < costs[:, j]).mean())
        sheet.put(f"{name} {label[i]} < {label[j]} %", "here", kept)
    variation = costs.std(axis=0) / costs.mean(axis=0)
    for at, model in enumerate(label):
        sheet.put(f"{name} {model} c̃", "here", log_price(judged.prices[order[at]].per_1k))
        sheet.put(f"{name} {model} coefficient of variation", "here", float(variation[at]))
        sheet.draw(
            f"{name} {model}", "here", np.quantile(logs[:, at], np.linspace(0, 1, 101)).tolist()
        )
    spread = logs.std(axis=0) / (logs[:, -1].mean() - logs[:, 0].mean())
    sheet.put(f"{name} least sd of log cost, % of range", "here", 100.0 * float(spread.min()))
    sheet.put(f"{name} most sd of log cost, % of range", "here", 100.0 * float(spread.max()))
    for at in range(len(order) - 1):
        gap = logs[:, at + 1].mean() - logs[:, at].mean()
        pooled = np.sqrt((logs[:, at].var() + logs[:, at + 1].var()) / 2.0)
        sheet.put(f"{name} {label[at]}–{label[at + 1]} Cohen d", "here", float(gap / pooled))
    kept_prompts = [
        prompt for prompt, row in zip(judged.prompts, judged.costs, strict=True) if (row > 0).all()
    ]
    words = np.array([len(prompt.split()) for prompt in kept_prompts], dtype=np.float64)
    by_words = [spearman(words, costs[:, at]) for at in range(len(order))]
    between = [spearman(costs[:, i], costs[:, j]) for i, j in pairs]
    for what, values in (("words and cost", by_words), ("costs of two models", between)):
        sheet.put(f"{name} least ρ of {what}", "here", min(values))
        sheet.put(f"{name} most ρ of {what}", "here", max(values))


def ranks(values: np.ndarray) -> np.ndarray:
    """Return ranks from 0 on, equal values sharing their mean rank."""
    _, place, count = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(count)
    return np.asarray((last - (count + 1) / 2.0)[place])


def spearman(one: np.ndarray, other: np.ndarray) -> float:
    """Return Spearman's rank correlation."""
    return float(np.corrcoef(ranks(one), ranks(other))[0, 1])
