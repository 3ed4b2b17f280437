"""Parts that made-up worlds are drawn from: contexts, effects, rewards, prices, bills."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from benchmarks.arena import Array, Rows
from router_state.config import Price

T = TypeVar("T")
CONTEXTS = ("gaussian", "clusters", "unit norm", "heavy tails")
BILLS = ("lognormal", "bimodal", "by task", "with zeros")
LEAST, MOST = 0.02, 0.98
LONGEST = 131_072.0
"""Tokens that an answer has at most, the output limit of the longest-winded models that are sold.
Without it the tails multiply to answers of a billion tokens, and one of them costs what the budget
gives to half a million requests."""


def anew(
    draw: Callable[[np.random.Generator], T],
    rng: np.random.Generator,
    noise: np.random.Generator | None,
) -> T:
    """Return what is drawn for each request: by `rng`, or by `noise` where a world is drawn again.

    `rng` draws it either way, so that what it draws next, of the models, stays.
    """
    drawn = draw(rng)
    return drawn if noise is None else draw(noise)


def contexts(
    n: int,
    d: int,
    kind: str,
    rng: np.random.Generator,
    noise: np.random.Generator | None = None,
) -> tuple[Array, Rows]:
    """Return contexts, shape (n, d), last entry 1.0, and the task of each, shape (n,).

    gaussian: whitened features; clusters: tasks apart from each other; unit norm: as raw
    embeddings; heavy tails: Student's t, 4.
    """
    there = rng.integers(2, 6)
    tasks = anew(lambda any_of: any_of.integers(there, size=n), rng, noise)
    shape = (n, d - 1)
    if kind == "clusters":
        middles = 1.5 * rng.normal(size=(6, d - 1))
        features = middles[tasks] + anew(lambda any_of: any_of.normal(size=shape), rng, noise)
        features /= features.std(0)
    elif kind == "heavy tails":
        features = anew(lambda any_of: any_of.standard_t(4, size=shape), rng, noise) / np.sqrt(2.0)
    else:
        features = anew(lambda any_of: any_of.normal(size=shape), rng, noise)
    if kind == "unit norm":
        features += rng.normal(size=d - 1)
        features /= np.linalg.norm(features, axis=1, keepdims=True)
    return np.concatenate([features, np.ones((n, 1))], axis=1), tasks


def effects(X: Array, m: int, rng: np.random.Generator, *, curved: bool = False) -> Array:
    """Return m functions of the features, shape (n, m), each of mean 0 and deviation 1; `curved`
    ones no line fits.
    """
    values = X[:, :-1] @ rng.normal(size=(X.shape[1] - 1, m))
    values = (values - values.mean(0)) / np.maximum(values.std(0), 1e-12)
    if curved:
        values = np.tanh(2.0 * values)
    standard: Array = (values - values.mean(0)) / np.maximum(values.std(0), 1e-12)
    return standard


def rewards(expected: Array, sigma: float, rng: np.random.Generator) -> Array:
    """Return rewards in [0, 1] with these means and deviation sigma: beta, or 0 and 1 where nothing
    else deviates as much.
    """
    spread = expected * (1.0 - expected)
    count = spread / sigma**2 - 1.0
    graded = rng.beta(
        expected * np.maximum(count, 0.05), (1.0 - expected) * np.maximum(count, 0.05)
    )
    return np.where(count > 0.05, graded, rng.random(expected.shape) < expected).astype(np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class Bills:
    """List prices, what every call costs (n, K), and the input tokens of each prompt (n,)."""

    prices: tuple[Price, ...]
    costs: Array
    input_tokens: Array


def prices(K: int, decades: float, free: int, rng: np.random.Generator) -> tuple[Price, ...]:
    """Return K list prices over so many decades, in no order; the last `free` of them are
    nothing.
    """
    outputs = 0.1 * 10.0 ** (decades * rng.random(K))
    shares = rng.uniform(0.15, 1.0, K)
    listed = [Price(float(o * s), float(o)) for o, s in zip(outputs, shares, strict=True)]
    return tuple(listed[: K - free] + [Price(0.0, 0.0)] * free)


def bills(
    listed: tuple[Price, ...],
    X: Array,
    tasks: Rows,
    kind: str,
    rng: np.random.Generator,
    noise: np.random.Generator | None = None,
    *,
    by_prompt: float,
) -> Bills:
    """Return bills: input tokens known, output tokens lognormal around what prompt, task and model
    make of them.

    Args:
        kind: lognormal; bimodal: some answers are many times as long; by task: tight within a task,
            apart between tasks; with zeros: some calls are not billed. No answer is longer than
            `LONGEST`.
        by_prompt: deviation of the logarithm of what the prompt tells.
    """
    n, K = len(X), len(listed)
    own = 0.3 * by_prompt * effects(X, K, rng) + rng.normal(0.0, 0.5, K)
    length = by_prompt * effects(X, 1, rng) + own
    spread = 0.05 if kind == "by task" else rng.uniform(0.2, 0.9)
    if kind == "by task":
        length = length + rng.normal(0.0, 0.8, 6)[tasks][:, None]
    by_answer = anew(lambda any_of: any_of.normal(size=(n, K)), rng, noise)
    output = 200.0 * np.exp(length + spread * by_answer)
    if kind == "bimodal":
        chance = anew(lambda any_of: any_of.random((n, K)), rng, noise)
        output *= np.where(chance < rng.uniform(0.05, 0.3), rng.uniform(5.0, 20.0), 1.0)
    output = np.minimum(output, LONGEST)
    read = anew(lambda any_of: any_of.normal(0.0, 0.7, n), rng, noise)
    input_tokens = np.ceil(300.0 * np.exp(read))
    per_input, per_output = (
        np.array([getattr(p, f"{side}_price_per_m") for p in listed]) / 1e6
        for side in ("input", "output")
    )
    costs = input_tokens[:, None] * per_input + output * per_output
    if kind == "with zeros":
        billed = anew(lambda any_of: any_of.random((n, K)), rng, noise)
        costs *= billed >= rng.uniform(0.05, 0.4)
    return Bills(listed, costs, input_tokens)
