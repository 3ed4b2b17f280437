"""A small world for the live profile: four features, three models whose rewards and costs depend on
them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from benchmarks.played import Played
from router_state.changes import Alert
from router_state.config import ModelConfig, Price, Prior, RouterConfig
from router_state.profiles import knobs_for

Array = npt.NDArray[np.float64]
D = 5
PRICES = {"cheap": Price(0.1, 0.1), "middle": Price(1.0, 1.0), "dear": Price(5.0, 10.0)}
QUALITY = {"cheap": (0.10, 0.70), "middle": (0.03, 0.90), "dear": (0.0, 0.94)}
TOKENS = {"cheap": 0.3, "middle": 0.5, "dear": 2.0}
NOISE = 0.08


def prior(model: str) -> Prior:
    """Return what is true of a model's rewards, as if seen on 500 prompts."""
    slope, level = QUALITY[model]
    theta = np.array([slope, 0.0, 0.0, 0.0, level])
    A = 500.0 * np.eye(D)
    return Prior(A=A, b=A @ theta, n_eff=500.0)


def declaration(
    budget: float | None = 6e-4,
    *,
    models: tuple[str, ...] = tuple(PRICES),
    prices: dict[str, Price] | None = None,
    cold: tuple[str, ...] = (),
    **knobs: object,
) -> RouterConfig:
    """Return these models with priors, but for the cold ones, under the live profile."""
    listed = PRICES | (prices or {})
    declared = {
        name: ModelConfig(listed[name], None if name in cold else prior(name)) for name in models
    }
    return RouterConfig(declared, budget, D, "live", knobs_for("live", knobs))


@dataclass
class World:
    """Prompts for an engine, the answers of its choices, and the bills and rewards `late` requests
    later.
    """

    engine: Played
    late: int = 0
    seed: int = 0
    quality: Callable[[str, float], float] = lambda _, mean: mean
    factor: Callable[[str], float] = lambda _: 1.0
    billed: Callable[[int], bool] = lambda _: True
    spent: list[float] = field(default_factory=list)
    earned: list[float] = field(default_factory=list)
    chosen: list[str] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    alerts: list[Alert] = field(default_factory=list)

    @property
    def news(self) -> list[Alert]:
        """Return the alerts, but for those about newcomers that the budget has no place for."""
        return [alert for alert in self.alerts if alert.kind != "newcomer_unaffordable"]

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng(self.seed)

    def play(self, n: int) -> float:
        """Play n more requests; return their mean cost in dollars."""
        start = len(self.spent)
        for i in range(start, start + n):
            if i >= self.late + 1:
                self.answer(i - self.late - 1)
            x = np.array([*self.rng.normal(size=D - 1), 1.0])
            record = self.engine.decide(str(i), x, now=float(i))
            slope, level = QUALITY[record.model]
            mean = self.quality(record.model, level + slope * x[0])
            self.earned.append(float(np.clip(mean + NOISE * self.rng.normal(), 0.0, 1.0)))
            tokens = TOKENS[record.model] * np.exp(0.4 * x[1] + 0.3 * self.rng.normal())
            self.spent.append(
                float(PRICES[record.model].per_1k * tokens * self.factor(record.model))
            )
            self.chosen.append(record.model)
            self.reasons.append(record.reason)
            self.alerts += self.engine.take_alerts()
        return float(np.mean(self.spent[start:]))

    def answer(self, i: int) -> None:
        """Bring the bill and the reward of request i."""
        if self.billed(i):
            self.engine.settle(str(i), cost_usd=self.spent[i])
        self.engine.learn(str(i), reward=self.earned[i])


def world(
    budget: float | None = 6e-4, *, late: int = 0, seed: int = 0, **declared: object
) -> World:
    """Return a world in which a router was just declared."""
    return World(Played.start(declaration(budget, **declared)), late=late, seed=seed)  # type: ignore[arg-type]
