"""F: microseconds of a decision and of a reward, and milliseconds from a prompt to a decision, on
this machine.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np

from benchmarks.played import Played
from paper.data import Data
from paper.outcome import Sheet
from router_state.config import ModelConfig, Price, RouterConfig
from router_state.profiles import PROFILES
from studies.simulate.policies import Finished

MEASURED, SKIPPED, PROMPTS = 4500, 500, 200
INVERTING = 10
"""A matrix of 385² takes milliseconds to invert: so many times fewer cycles are measured."""
PRICES = {"budget": Price(0.06, 0.06), "middle": Price(2.0, 6.0), "frontier": Price(7.0, 21.0)}
clock = time.perf_counter_ns


class Cycle(Protocol):
    """Whoever routes a context and then takes a reward in."""

    def route(self, x: np.ndarray) -> str: ...

    def learn(self, model: str, x: np.ndarray, reward: float) -> None: ...


class Ours:
    """The engine, without a budget, as the paper measures its router."""

    def __init__(self, profile: str, d: int) -> None:
        models = {name: ModelConfig(price, onboarding_pulls=0) for name, price in PRICES.items()}
        self._engine = Played.start(
            RouterConfig(models, None, dimensions=d, profile=profile, knobs=PROFILES[profile]),
            Finished(256),
        )
        self._made = 0

    def route(self, x: np.ndarray) -> str:
        self._made += 1
        return self._engine.decide(str(self._made), x, now=float(self._made)).model

    def learn(self, model: str, x: np.ndarray, reward: float) -> None:
        self._engine.learn(str(self._made), reward=reward)


class Theirs:
    """The reference library."""

    def __init__(self, d: int) -> None:
        from pareto_bandit.feature_service import FeatureService
        from pareto_bandit.router import BanditRouter

        registry = {
            name: {
                "input_cost_per_m": price.input_price_per_m,
                "output_cost_per_m": price.output_price_per_m,
            }
            for name, price in PRICES.items()
        }
        self._router = BanditRouter.create(
            model_registry=registry,
            feature_service=FeatureService.for_precomputed(d),
            priors="none",
            bandit_seed=0,
        )

    def route(self, x: np.ndarray) -> str:
        return str(self._router.route(x)[0])

    def learn(self, model: str, x: np.ndarray, reward: float) -> None:
        self._router.update(model, x, reward)


class Bare:
    """Plain LinUCB; `inverse`: by Sherman–Morrison, anew at every reward, or anew at every
    decision.
    """

    def __init__(self, inverse: str, d: int) -> None:
        self._how = inverse
        self._A: dict[str, np.ndarray] = {name: np.eye(d) for name in PRICES}
        self._inverse: dict[str, np.ndarray] = {name: np.eye(d) for name in PRICES}
        self._b = {name: np.zeros(d) for name in PRICES}

    def route(self, x: np.ndarray) -> str:
        if self._how == "decision":
            self._inverse = {name: np.linalg.inv(A) for name, A in self._A.items()}
        best, chosen = -np.inf, ""
        for name, inverse in self._inverse.items():
            y = inverse @ x
            score = float(y @ self._b[name]) + 0.1 * float(np.sqrt(max(float(x @ y), 0.0)))
            if score > best:
                best, chosen = score, name
        return chosen

    def learn(self, model: str, x: np.ndarray, reward: float) -> None:
        self._b[model] += reward * x
        if self._how == "Sherman–Morrison":
            y = self._inverse[model] @ x
            self._inverse[model] -= np.outer(y, y / (1.0 + float(x @ y)))
            return
        self._A[model] += np.outer(x, x)
        if self._how == "reward":
            self._inverse[model] = np.linalg.inv(self._A[model])


def latency(data: Data, seed: int, policies: Sequence[str]) -> Sheet:
    """Microseconds a decision and a reward (median and 95th percentile), three models, no budget,
    one thread.
    """
    sheet = Sheet()
    for d in (26, 385):
        for column, row, cycle, fewer in _contenders(d):
            _measure(sheet, f"d {d} {row}", column, cycle, d, fewer=fewer)
    _end_to_end(sheet, data)
    return sheet


def _contenders(d: int) -> Iterator[tuple[str, str, Cycle, int]]:
    """Make one after the other: the column and the row that it is for, it, and how many times fewer
    cycles it gets.
    """
    fewer = INVERTING if d > 26 else 1
    yield "reference", "router", Theirs(d), 1
    yield "paper", "router", Ours("paper", d), 1
    yield "live", "router", Ours("live", d), 1
    yield "here", "bare Sherman–Morrison", Bare("Sherman–Morrison", d), 1
    yield "here", "inverse per reward", Bare("reward", d), fewer
    yield "here", "inverse per decision", Bare("decision", d), fewer


def _measure(sheet: Sheet, row: str, column: str, cycle: Cycle, d: int, *, fewer: int) -> None:
    rng = np.random.default_rng(42)
    contexts = rng.standard_normal(((MEASURED + SKIPPED) // fewer, d))
    contexts[:, :-1] /= np.linalg.norm(contexts[:, :-1], axis=1, keepdims=True)
    contexts[:, -1] = 1.0
    rewards = rng.uniform(0.3, 0.9, len(contexts)).tolist()
    spent = np.empty((2, len(contexts)))
    for i, x in enumerate(contexts):
        start = clock()
        model = cycle.route(x)
        middle = clock()
        cycle.learn(model, x, rewards[i])
        spent[:, i] = middle - start, clock() - middle
    spent = spent[:, SKIPPED // fewer :] / 1e3
    for part, values in zip(("route", "update"), spent, strict=True):
        for level in (50, 95):
            sheet.put(f"{row} {part} p{level} µs", column, float(np.percentile(values, level)))
    sheet.put(f"{row} cycles/s", column, float(1e6 * spent.shape[1] / spent.sum()))


def _end_to_end(sheet: Sheet, data: Data) -> None:
    """Measure the time from a prompt to a decision, one at a time."""
    from benchmarks.data import wheel_projection
    from streams.encoder.encoder_by_settings import load_sentences

    sentences, projection, router = (
        load_sentences(backend="onnx"),
        wheel_projection(),
        Ours("live", 26),
    )
    spent = []
    for prompt in data.test.prompts[: PROMPTS + 10]:
        marks = [clock()]
        embedding = sentences.embed([prompt])
        marks.append(clock())
        x = projection.project(embedding)[0]
        marks.append(clock())
        model = router.route(x)
        marks.append(clock())
        router.learn(model, x, 0.9)
        spent.append(np.diff(marks))
    parts = np.array(spent[10:]) / 1e6
    for name, values in (
        *zip(("embed", "project", "route"), parts.T, strict=True),
        ("total", parts.sum(axis=1)),
    ):
        for level in (50, 95):
            sheet.put(f"end to end {name} p{level} ms", "live", float(np.percentile(values, level)))
