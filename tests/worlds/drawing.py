"""Draw a world: a portfolio, what its models cost and earn on which prompts, and when one learns of
it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from router_state.config import Price

Array = npt.NDArray[np.float64]

CONTEXTS = ("normal", "constant", "two", "sparse", "large", "zeros")
COSTS = ("lognormal", "constant", "by_prompt", "often_zero", "zero", "heavy")
REWARDS = ("linear", "noise", "zero", "one", "equal", "steps")
BUDGETS = ("none", "below", "within", "above", "tiny")


@dataclass(frozen=True, slots=True)
class World:
    """n requests of a router, by model what each would cost in dollars and earn, and how many
    requests later one learns of it.

    Attributes:
        kinds: what it was drawn from, in words.
        contexts: shape (n, d); costs, rewards: shape (n, K).
        bill_delay, reward_delay: shape (n,), in requests; −1: never.
    """

    seed: int
    kinds: dict[str, str]
    profile: str
    knobs: dict[str, float | bool]
    prices: dict[str, Price]
    budget: float | None
    contexts: Array
    costs: Array
    rewards: Array
    bill_delay: npt.NDArray[np.int64]
    reward_delay: npt.NDArray[np.int64]
    eventful: bool

    @property
    def is_affordable(self) -> bool:
        """Tell whether the budget is to hold: its cheapest model costs less than half of it, and
        bills can be foreseen.
        """
        foreseen = (
            self.kinds["costs"] not in ("heavy",)
            and bool((self.bill_delay >= 0).all())
            and not self.eventful
        )
        cheapest = float(self.costs.mean(axis=0).min())
        return (
            self.budget is not None
            and foreseen
            and self.profile == "live"
            and cheapest < self.budget / 2.0
        )


def draw(seed: int, *, n: int) -> World:
    """Draw a world of n requests."""
    rng = np.random.default_rng([11, seed])
    K = int(rng.choice([1, 2, 3, 3, 5, 11, 64], p=[0.1, 0.2, 0.25, 0.2, 0.15, 0.07, 0.03]))
    d = int(rng.choice([2, 4, 5, 26, 70], p=[0.2, 0.3, 0.2, 0.25, 0.05]))
    kinds = {
        "contexts": str(rng.choice(CONTEXTS, p=[0.4, 0.15, 0.15, 0.1, 0.1, 0.1])),
        "costs": str(rng.choice(COSTS, p=[0.35, 0.15, 0.2, 0.15, 0.05, 0.1])),
        "rewards": str(rng.choice(REWARDS, p=[0.4, 0.2, 0.1, 0.1, 0.1, 0.1])),
        "budget": str(rng.choice(BUDGETS, p=[0.15, 0.15, 0.5, 0.15, 0.05])),
    }
    contexts = _contexts(kinds["contexts"], n, d, rng)
    prices, costs = _costs(kinds["costs"], contexts, K, rng)
    profile = str(rng.choice(["live", "paper"], p=[0.75, 0.25]))
    return World(
        seed=seed,
        kinds=kinds,
        profile=profile,
        knobs=_knobs(profile, rng),
        prices=prices,
        budget=_budget(kinds["budget"], costs, rng),
        contexts=contexts,
        costs=costs,
        rewards=_rewards(kinds["rewards"], contexts, K, rng),
        bill_delay=_delays(n, rng),
        reward_delay=_delays(n, rng),
        eventful=bool(rng.random() < 0.5),
    )


def _contexts(kind: str, n: int, d: int, rng: np.random.Generator) -> Array:
    features = {
        "normal": lambda: rng.normal(size=(n, d - 1)),
        "constant": lambda: np.tile(rng.normal(size=d - 1), (n, 1)),
        "two": lambda: rng.normal(size=(2, d - 1))[rng.integers(2, size=n)],
        "sparse": lambda: (rng.random((n, d - 1)) < 0.1).astype(float),
        "large": lambda: np.clip(
            rng.standard_t(2, size=(n, d - 1)) * 10.0 ** rng.uniform(0, 2.5), -1e3, 1e3
        ),
        "zeros": lambda: np.zeros((n, d - 1)),
    }[kind]()
    return np.concatenate([features, np.ones((n, 1))], axis=1)


def _costs(
    kind: str, contexts: Array, K: int, rng: np.random.Generator
) -> tuple[dict[str, Price], Array]:
    """Return list prices, and bills of n requests by model, shape (n, K)."""
    n = len(contexts)
    per_m = 10.0 ** rng.uniform(-2, 1.5, size=K)
    if rng.random() < 0.15:
        per_m[:] = per_m[0]
    if rng.random() < 0.15:
        per_m[rng.integers(K)] = 0.0
    prices = {
        f"m{k}": Price(float(per_m[k]), float(per_m[k] * rng.uniform(0.5, 4.0))) for k in range(K)
    }
    mean = np.array([price.per_1k for price in prices.values()]) * rng.uniform(0.2, 3.0, size=K)
    noise = {
        "lognormal": lambda: rng.lognormal(0.0, rng.uniform(0.05, 0.8), size=(n, K)),
        "constant": lambda: np.ones((n, K)),
        "by_prompt": lambda: np.exp(0.5 * np.tanh(contexts[:, :1]) + 0.3 * rng.normal(size=(n, K))),
        "often_zero": lambda: (
            (rng.random((n, K)) < rng.uniform(0.1, 0.9)) * rng.lognormal(0.0, 0.3, size=(n, K))
        ),
        "zero": lambda: np.zeros((n, K)),
        "heavy": lambda: rng.pareto(1.5, size=(n, K)),
    }[kind]()
    return prices, np.minimum(mean * noise, 999.0)


def _rewards(kind: str, contexts: Array, K: int, rng: np.random.Generator) -> Array:
    n = len(contexts)
    level, slope = rng.uniform(0.2, 0.95, size=K), 0.1 * rng.normal(size=K)
    found: Array = {
        "linear": lambda: level + np.tanh(contexts[:, :1]) * slope + 0.1 * rng.normal(size=(n, K)),
        "noise": lambda: rng.random((n, K)),
        "zero": lambda: np.zeros((n, K)),
        "one": lambda: np.ones((n, K)),
        "equal": lambda: np.full((n, K), 0.5),
        # Each model has a bad time of its own.
        "steps": lambda: level - 0.5 * (np.abs(np.arange(n)[:, None] / n - rng.random(K)) < 0.1),
    }[kind]()
    return np.clip(found, 0.0, 1.0)


def _budget(kind: str, costs: Array, rng: np.random.Generator) -> float | None:
    means = np.sort(costs.mean(axis=0))
    low, high = max(float(means[0]), 1e-9), max(float(means[-1]), 2e-9)
    return {
        "none": None,
        "below": low * rng.uniform(0.01, 0.9),
        "within": low + (high - low) * rng.uniform(0.05, 0.9) + 2.1 * low * (rng.random() < 0.5),
        "above": high * rng.uniform(1.1, 20.0),
        "tiny": 10.0 ** rng.uniform(-300, -12),
    }[kind]


def _knobs(profile: str, rng: np.random.Generator) -> dict[str, float | bool]:
    knobs: dict[str, float | bool] = {
        "seed": int(rng.integers(1000)),
        "commitment_ttl_seconds": float(rng.choice([50.0, 900.0])),
    }
    if rng.random() < 0.2:
        knobs["gamma"] = float(rng.choice([1.0, 0.9, 0.99]))
    if rng.random() < 0.1:
        knobs["epsilon"] = 0.1
    return knobs


def _delays(n: int, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    late = rng.choice([0, 5, 30, 100])
    delays = rng.integers(0, late + 1, size=n) if rng.random() < 0.5 else np.full(n, late)
    if rng.random() < 0.3:
        delays = np.where(rng.random(n) < rng.choice([0.05, 0.5, 0.99]), -1, delays)
    return delays.astype(np.int64)
