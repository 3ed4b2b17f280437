"""Play a router whose judges are biased: what it earns by gold, however it takes their labels."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from benchmarks.played import Played
from benchmarks.source_worlds import Array, World
from benchmarks.trusted_prompts import TrustedPrompts
from router_state.config import ModelConfig, Price, RouterConfig
from router_state.events import Judged
from router_state.profiles import knobs_for
from router_state.sources.declared_sources import DeclaredSources

DELAY = 100
"""Number of requests after which a label comes."""
LATE_PAIRS, LEAST_LATE = 100, 200
"""Pairs after which a run is late, and the fewest requests of that part that are measured."""
METHODS = ("ranks", "gold", "offset", "on")
"""`ranks` is what the service does by default, and `gold` takes people's labels alone."""
PROMPTS = "prompts"
"""`on` without the judge's labels of prompts on which it contradicts gold, which the service does
not have."""


class Run(NamedTuple):
    """Mean gold reward of a run, and that after its first 100 pairs (NaN: too few)."""

    mean: float
    late: float


def play(one: World, method: str, share: float, seed: int) -> Run:
    """Play a router; people label this share of the requests, drawn at random."""
    n = len(one.x)
    asked = np.random.default_rng(seed + 10_000).random(n) < share
    mode = {"offset": "offset", "on": "on", PROMPTS: "on"}.get(method, "off")
    engine = Played.start(config_of(one, seed, mode))
    trusted = TrustedPrompts()
    chosen = np.zeros(n, np.int64)
    for t in range(n):
        chosen[t] = int(engine.decide(f"r{t}", one.x[t], now=float(t)).model[1:])
        i = t - DELAY
        if i < 0:
            continue
        k = int(chosen[i])
        # Of a request with gold the judge's label makes a pair, and gold's is the one in force.
        if method != "gold" and (asked[i] or method != PROMPTS or trusted.trusts(one.x[i])):
            for number, judge in enumerate(one.judges):
                engine.play(Judged(f"r{i}", float(judge[i, k]), f"judge-{number}", 1))
        if not asked[i]:
            continue
        engine.play(Judged(f"r{i}", float(one.gold[i, k]), "human", 2))
        if method == PROMPTS:
            trusted.pair(f"m{k}", one.x[i], float(one.judges[0][i, k]), float(one.gold[i, k]))
    earned = one.gold[np.arange(n), chosen]
    return Run(float(earned.mean()), _late(earned, asked))


def config_of(one: World, seed: int, mode: str) -> RouterConfig:
    """Return a router's declaration; `mode` is the judges' `calibrate`."""
    models = {
        f"m{k}": ModelConfig(Price(1.0, 1.0), onboarding_pulls=0) for k in range(one.gold.shape[1])
    }
    judges = tuple(f"judge-{number}" for number in range(len(one.judges)))
    sources = DeclaredSources("human", judges, dict.fromkeys(judges, mode))
    return RouterConfig(
        models,
        dimensions=one.x.shape[1],
        knobs=knobs_for("live", {"seed": seed}),
        capabilities={"sources": sources},
    )


def _late(earned: Array, asked: npt.NDArray[np.bool_]) -> float:
    pairs = np.cumsum(asked)
    begin = int(np.searchsorted(pairs, LATE_PAIRS)) + DELAY
    return float(earned[begin:].mean()) if begin <= len(earned) - LEAST_LATE else float("nan")
