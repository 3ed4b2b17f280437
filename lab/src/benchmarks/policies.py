"""The policies that are compared: the core under its profiles, and alternatives."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from copy import copy, deepcopy
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.arena import Array, Policy
from benchmarks.played import Played
from benchmarks.rivals import Apart
from router_state.changes import Alert
from router_state.config import Knobs, RouterConfig
from router_state.profiles import knobs_for
from router_state.state import restoring, state_pieces

EXPIRE_EVERY = 64


class Core:
    """The engine that ships, under this profile and knobs whatever a declaration says."""

    def __init__(self, profile: str, knobs: Knobs) -> None:
        self.profile, self.knobs = profile, knobs
        self.engine: Played | None = None
        self.input_tokens: Array | None = None

    def declare(self, config: RouterConfig, *, at: int) -> None:
        config = replace(config, profile=self.profile, knobs=self.knobs)
        if self.engine is None:
            self.engine = Played.start(config)
        else:
            self.engine.configure(config, now=float(at))

    def decide(self, i: int, x: Array) -> tuple[str, float, str]:
        assert self.engine is not None
        if i % EXPIRE_EVERY == 0:
            self.engine.expire(now=float(i))
        tokens = None if self.input_tokens is None else int(self.input_tokens[i])
        record = self.engine.decide(str(i), x, now=float(i), input_tokens=tokens)
        return record.model, record.lambda_t, record.reason

    def settle(self, i: int, cost_usd: float) -> None:
        assert self.engine is not None
        self.engine.settle(str(i), cost_usd=cost_usd)

    def learn(self, i: int, reward: float) -> None:
        assert self.engine is not None
        self.engine.learn(str(i), reward=reward)

    def take_alerts(self) -> list[Alert]:
        assert self.engine is not None
        return self.engine.take_alerts()

    def copy(self) -> Policy:
        assert self.engine is not None
        state, pieces = self.engine.state, state_pieces.pack_pieces(self.engine.state)
        other = type(self)(self.profile, self.knobs)
        restored = restoring.unpack(pieces.get, state.open_commitments)
        other.engine = Played(
            restored, {i: copy(record) for i, record in self.engine.records.items()}
        )
        return other


class Told(Core):
    """The core, where requests say how many input tokens they have."""

    def tell(self, input_tokens: Array | None) -> None:
        self.input_tokens = input_tokens


class Chance:
    """Any model with the same probability while nothing is owed, else the one with the lowest mean
    cost so far.
    """

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.models: list[str] = []
        self.spent: dict[str, float] = {}
        self.billed: dict[str, int] = {}
        self.debt = self.budget = 0.0
        self.open: dict[int, tuple[str, float]] = {}

    def declare(self, config: RouterConfig, *, at: int) -> None:
        self.models = list(config.models)
        self.budget = config.budget_usd_per_request or float("inf")
        for model, declared in config.models.items():
            self.spent.setdefault(model, declared.price.per_1k)
            self.billed.setdefault(model, 1)

    def _mean(self, model: str) -> float:
        return self.spent[model] / self.billed[model]

    def decide(self, i: int, x: Array) -> tuple[str, float, str]:
        model = self.models[int(self.rng.integers(len(self.models)))]
        if self.debt > 0.0:
            model = min(self.models, key=self._mean)
        self.open[i] = model, self._mean(model)
        self.debt += self._mean(model) - self.budget
        return model, 0.0, "chance"

    def settle(self, i: int, cost_usd: float) -> None:
        model, charged = self.open.pop(i, ("", 0.0))
        if model:
            self.debt += cost_usd - charged
            self.spent[model] += cost_usd
            self.billed[model] += 1

    def learn(self, i: int, reward: float) -> None:
        """Chance learns nothing."""

    def take_alerts(self) -> list[Alert]:
        return []

    def copy(self) -> Policy:
        return deepcopy(self)


class MeanCosts(Core):
    """The core without its per-prompt costs: every prompt is expected to cost the model's mean."""

    def settle(self, i: int, cost_usd: float) -> None:
        super().settle(i, cost_usd)
        assert self.engine is not None
        for costs in self.engine.state.arms.costs:
            theta = costs.regression.theta
            theta[:-1] = 0.0
            theta[-1] = math.log(costs.ratio / costs.factor) - 0.5 * costs.level


def core(
    profile: str, knobs: Mapping[str, Any] | None = None, kind: type[Core] = Core
) -> Callable[[int], Policy]:
    """Return a maker of the core with a profile's knobs and these over them, by seed."""
    return lambda seed: kind(profile, knobs_for(profile, {"seed": seed, **(knobs or {})}))


POLICIES: dict[str, Callable[[int], Policy]] = {
    "live": core("live"),
    # As the paper's paced experiments run it: without a constant price penalty.
    "paper": core("paper", {"lambda_c": 0.0}),
    "ε-greedy": lambda seed: Apart(seed, epsilon=0.05),
    "thompson": lambda seed: Apart(seed, sigma=0.1),
    "random": Chance,
}
VARIANTS: dict[str, Callable[[int], Policy]] = {
    "live − per-prompt costs": core("live", kind=MeanCosts),
    "live, γ 0.997": core("live", {"gamma": 0.997}),
    "live, γ 1": core("live", {"gamma": 1.0}),
    "paper, γ 0.9995": core("paper", {"lambda_c": 0.0, "gamma": 0.9995}),
    "apart": Apart,
}


def make(name: str, seed: int) -> Policy:
    """Return a policy, or a variant of one, by its name."""
    return (POLICIES | VARIANTS)[name](seed)
