"""The paper's protocol: learn over the warm-up prompts unmeasured, then over the held-out ones;
shuffled by seed.

The held-out prompts are for measuring only: constants were chosen on halves of the warm-up prompts
(`held_out=False` plays those: one half to learn from, twice, the other to measure on).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from benchmarks.arena import Array, Episode
from benchmarks.data import Benchmark, fitted_projection, load_benchmark, wheel_priors
from router_state.config import LIVE, ModelConfig, Price, Prior, RouterConfig
from streams.encoder.sentence_encoder import Backend
from streams.priors.fitted_priors import Priors

PHASE = 608
BUDGETS = (2.9e-5, 8.3e-5, 2.3e-4, 6.62e-4, 1.87e-3, 5.3e-3, 1.5e-2)
TIGHT, MODERATE, LOOSE = 3.0e-4, 6.62e-4, 1.87e-3
LLAMA, MISTRAL, GEMINI = range(3)


@lru_cache
def prompts(
    split: str, folder: Path | None = None, encoder: Backend = "onnx", *, fitted: bool = False
) -> Benchmark:
    """Return one split of the benchmark, loaded once; `fitted`: in a projection of the encoder that
    is fitted on the warm-up prompts.
    """
    return load_benchmark(
        "val" if split == "val" else "test",
        folder=folder,
        encoder=encoder,
        projection=fitted_projection(encoder) if fitted else None,
    )


@dataclass(frozen=True, slots=True, eq=False)
class Draw:
    """The prompts of one seed in order: contexts (n, d), rewards and costs (n, K); the first `warm`
    of them are not measured.
    """

    benchmark: Benchmark
    contexts: Array
    rewards: Array
    costs: Array
    warm: int

    def __len__(self) -> int:
        return len(self.contexts)


def draw(
    seed: int,
    *,
    offset: int,
    phases: bool = False,
    held_out: bool = True,
    folder: Path | None = None,
    encoder: Backend = "onnx",
    fitted: bool = False,
) -> Draw:
    """Return the prompts of a seed.

    Args:
        offset: of the seed, the paper's per experiment.
        phases: three of 608 held-out prompts, the third the first one's in another order; else all
            of them once.
        encoder, fitted: what makes the contexts, see `prompts`.
    """
    val = prompts("val", folder, encoder, fitted=fitted)
    test = prompts("test", folder, encoder, fitted=fitted) if held_out else val
    rng = np.random.default_rng(offset + seed)
    if held_out:
        warm = rng.permutation(len(val))
        order = np.random.default_rng(42).permutation(len(test))
        measured = rng.permutation(len(test))
        first, second = order[:PHASE], order[PHASE : 2 * PHASE]
    else:
        halves = np.array_split(np.random.default_rng(7).permutation(len(val)), 2)
        learned, kept = halves[seed % 2], halves[1 - seed % 2]
        warm = np.concatenate([rng.permutation(learned), rng.permutation(learned)])
        measured = np.concatenate([rng.permutation(kept), rng.permutation(kept)])
        first, second = measured[:PHASE], measured[-PHASE:]
    if phases:
        measured = np.concatenate(
            [rng.permutation(first), rng.permutation(second), rng.permutation(first)]
        )
    return Draw(
        val,
        np.concatenate([val.contexts[warm], test.contexts[measured]]),
        np.concatenate([val.rewards[warm], test.rewards[measured]]),
        np.concatenate([val.costs[warm], test.costs[measured]]),
        len(warm),
    )


def declaration(
    benchmark: Benchmark,
    budget: float | None,
    *,
    prices: Mapping[str, Price] | None = None,
    without: str | None = None,
    priors: Priors | None = None,
) -> RouterConfig:
    """Return the benchmark's portfolio with the shipped priors or these, some list prices replaced,
    a model left out.
    """
    priors = wheel_priors() if priors is None else priors
    known = {name: Prior(A=priors.A[k], b=priors.b[k]) for k, name in enumerate(priors.models)}
    models = {
        name: ModelConfig(
            (prices or {}).get(name, Price(price.input_price_per_m, price.output_price_per_m)),
            known.get(name),
        )
        for name, price in zip(benchmark.models, benchmark.prices, strict=True)
        if name != without
    }
    return RouterConfig(models, budget, benchmark.contexts.shape[1], "live", LIVE)


def episode(
    drawn: Draw,
    declared: Mapping[int, RouterConfig],
    *,
    phases: Mapping[str, slice],
    bill_delay: Array | float = 0.0,
    reward_delay: Array | float = 0.0,
) -> Episode:
    """Return drawn prompts as an episode."""
    n = len(drawn)
    return Episode(
        drawn.benchmark.models,
        drawn.contexts,
        drawn.rewards,
        drawn.costs,
        declared,
        np.broadcast_to(np.asarray(bill_delay, dtype=np.float64), (n,)),
        np.broadcast_to(np.asarray(reward_delay, dtype=np.float64), (n,)),
        phases,
    )


def three_phases(warm: int) -> dict[str, slice]:
    """Return where the three phases of 608 requests lie."""
    return {f"P{j + 1}": slice(warm + j * PHASE, warm + (j + 1) * PHASE) for j in range(3)}
