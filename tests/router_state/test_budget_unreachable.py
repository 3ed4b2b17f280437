"""`budget_unreachable` over drawn portfolios: said of budgets that no model meets, and of no
others."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from benchmarks.played import Played
from router_state.config import LIVE, ModelConfig, Price, RouterConfig

ROUTERS, REQUESTS, D = 12, 200, 4


def alarm_at(seed: int, *, budget: float) -> int | None:
    """Return at which request a drawn router says that its budget, in mean costs of its cheapest
    model, is unreachable."""
    rng = np.random.default_rng([41, seed])
    K = int(rng.integers(2, 13))
    prices = 10.0 ** rng.uniform(0.0, rng.uniform(0.2, 2.0), K)
    levels, slopes = rng.normal(0.0, 0.8, K), 0.6 * rng.normal(size=D - 1)
    spread, qualities = rng.uniform(0.1, 1.0), rng.uniform(0.3, 0.8, K)
    X = np.concatenate([rng.normal(size=(REQUESTS, D - 1)), np.ones((REQUESTS, 1))], axis=1)
    medians = 5e-4 * prices * np.exp(levels)
    exponents = (X[:, :-1] @ slopes)[:, None] + spread * rng.normal(size=(REQUESTS, K))
    costs = medians * np.exp(exponents)
    means = medians * np.exp((slopes @ slopes + spread**2) / 2.0)
    models = {f"m{k:02d}": ModelConfig(Price(float(p), float(p))) for k, p in enumerate(prices)}
    engine = Played.start(RouterConfig(models, float(budget * means.min()), D, "live", LIVE))
    for i in range(REQUESTS):
        model = engine.decide(str(i), X[i], now=float(i)).model
        k = int(model[1:])
        engine.settle(str(i), cost_usd=float(costs[i, k]))
        engine.learn(str(i), reward=float(np.clip(qualities[k] + 0.1 * rng.normal(), 0.0, 1.0)))
        if any(alert.kind == "budget_unreachable" for alert in engine.take_alerts()):
            return i
    return None


def test_no_budget_is_called_unreachable_while_a_model_with_few_bills_may_meet_it() -> None:
    false = [seed for seed in range(ROUTERS) if alarm_at(seed, budget=1.1) is not None]
    assert len(false) <= 1  # each has a probability of one in fifty


def test_a_budget_far_below_every_model_is_said_to_be_unreachable_within_150_requests() -> None:
    found = [alarm_at(seed, budget=0.1) for seed in range(ROUTERS)]
    assert sum(at is not None and at < 150 for at in found) >= ROUTERS - 2


def test_a_free_model_makes_an_unreachable_budget_one_that_is_met() -> None:
    paid = {"paid": ModelConfig(Price(1.0, 1.0))}
    config = RouterConfig(paid, 1e-5, D, "live", LIVE)
    engine, rng = Played.start(config), np.random.default_rng(1)
    alerts: list[str] = []
    for i in range(2 * REQUESTS):
        if i == REQUESTS:
            assert alerts == ["budget_unreachable"]
            free = {**paid, "free": ModelConfig(Price(0.0, 0.0))}
            engine.configure(replace(config, models=free), now=float(i))
        x = np.append(rng.normal(size=D - 1), 1.0)
        model = engine.decide(str(i), x, now=float(i)).model
        engine.settle(str(i), cost_usd=1e-3 if model == "paid" else 0.0)
        engine.learn(str(i), reward=0.5)
        alerts += [alert.kind for alert in engine.take_alerts()]
    assert model == "free" and alerts.count("budget_unreachable") == 1
