"""Play a router whose judges are biased: what it earns by gold, however it takes their labels."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from benchmarks.played import Played
from benchmarks.source_forms import Form, TrustedPrompts
from benchmarks.source_worlds import Array, World
from router_state.config import ModelConfig, Price, RouterConfig
from router_state.events import Judged
from router_state.profiles import knobs_for
from router_state.sources.declared_sources import DeclaredSources
from router_state.sources.measured_sources import MeasuredSources

DELAY = 100
"""Number of requests after which a label comes."""
LATE_PAIRS, LEAST_LATE = 100, 200
"""Pairs after which a run is late, and the fewest requests of that part that are measured."""
METHODS = ("ranks", "gold", "offset", "on", "advised")
"""`ranks` is what the service does by default, and `gold` takes people's labels alone. `advised`
declares what `pbstream sources` recommends, as soon as that does."""

FORMS = ("line", "full")
"""Corrections that the service does not have, see `source_forms`."""
PROMPTS = "prompts"
"""`on` without the judge's labels of prompts on which it contradicts gold, which the service does
not have either."""


class Run(NamedTuple):
    """Mean gold reward of a run, that after its first 100 pairs (NaN: too few), and after how many
    pairs a recommendation was followed (NaN: there was none)."""

    mean: float
    late: float
    advised: float


def play(one: World, method: str, share: float, seed: int) -> Run:
    """Play a router; people label this share of the requests, drawn at random."""
    n = len(one.x)
    asked = np.random.default_rng(seed + 10_000).random(n) < share
    mode = {"offset": "offset", "on": "on", PROMPTS: "on"}.get(method, "off")
    engine = Played.start(config_of(one, seed, mode))
    form = Form(method) if method in FORMS else None
    trusted = TrustedPrompts()
    chosen, pairs, advised = np.zeros(n, np.int64), 0, float("nan")
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
        pairs += 1
        if method == PROMPTS:
            trusted.pair(f"m{k}", one.x[i], float(one.judges[0][i, k]), float(one.gold[i, k]))
        if form is not None:
            said = float(one.judges[0][i, k]), float(one.gold[i, k])
            form.pair(engine, f"m{k}", one.x[i], *said)
        if method == "advised" and (advice := _advice(engine)) not in (None, mode):
            if mode == "off":
                advised = pairs
            mode = str(advice)
            engine.configure(config_of(one, seed, mode), now=float(t))
    earned = one.gold[np.arange(n), chosen]
    return Run(float(earned.mean()), _late(earned, asked), advised)


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


def _advice(engine: Played) -> str | None:
    sources = engine.state.having(MeasuredSources)
    assert sources is not None
    shown: object = sources.lambda_fields(0.0)["sources"]
    assert isinstance(shown, list)
    return next((str(judge["advice"]) for judge in shown if "advice" in judge), None)


def _late(earned: Array, asked: npt.NDArray[np.bool_]) -> float:
    pairs = np.cumsum(asked)
    begin = int(np.searchsorted(pairs, LATE_PAIRS)) + DELAY
    return float(earned[begin:].mean()) if begin <= len(earned) - LEAST_LATE else float("nan")
