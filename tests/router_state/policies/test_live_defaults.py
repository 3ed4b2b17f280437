"""Defaults that need no tuning: any number of models and dimensions, any budget, and a state as
small as the page says.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.played import Played
from router_state.changes import HEAD
from router_state.config import LIVE, ModelConfig, Price, Prior, RouterConfig
from router_state.errors import NoAllowedModel
from router_state.state import state_pieces
from tests.router_state.core_reference import observed
from tests.router_state.live_world import PRICES, declaration, world

LATE = 50


def portfolio(K: int) -> dict[str, ModelConfig]:
    """Return K models, each dearer than the one before, the last a hundred times the first."""
    prices = 0.1 * 100.0 ** (np.arange(K) / (K - 1))
    return {f"m{k}": ModelConfig(Price(price, price)) for k, price in enumerate(prices.tolist())}


def play(K: int, d: int, budget: float, n: int, *, seed: int = 0) -> tuple[list[float], Played]:
    """Return what each of n requests cost; bills and rewards come 50 requests later. Nothing is
    known of the models at first.
    """
    models, rng = portfolio(K), np.random.default_rng(K + d + 1000 * seed)
    names = list(models)
    engine = Played.start(RouterConfig(models, budget, d))
    level = np.linspace(0.6, 0.95, K) - 0.1 * np.linspace(0.0, 1.0, K) ** 2
    slope = rng.normal(size=(K, 4)) * 0.04
    spent, earned = [], []
    for i in range(n):
        if i > LATE:
            engine.settle(str(i - LATE - 1), cost_usd=spent[i - LATE - 1])
            engine.learn(str(i - LATE - 1), reward=earned[i - LATE - 1])
        x = np.append(rng.normal(size=d - 1), 1.0)
        record = engine.decide(str(i), x, now=float(i))
        k = names.index(record.model)
        spent.append(float(record.price.per_1k * 0.5 * np.exp(0.4 * rng.normal())))
        earned.append(float(np.clip(level[k] + slope[k] @ x[:4] + 0.05 * rng.normal(), 0.0, 1.0)))
    return spent, engine


@pytest.mark.parametrize(
    ("K", "d", "n", "seeds"),
    [(2, 26, 1600, 3), (20, 26, 1600, 1), (3, 385, 1200, 1), (20, 100, 1600, 1)],
)
@pytest.mark.parametrize("share", [0.05, 0.3])
def test_spend_meets_the_budget_with_any_number_of_models_and_dimensions(
    K: int, d: int, n: int, seeds: int, share: float
) -> None:
    cheapest, dearest = 5e-5, 5e-3
    budget = cheapest + share * (dearest - cheapest)
    spent = [np.mean(play(K, d, budget, n, seed=seed)[0][n // 2 :]) for seed in range(seeds)]
    assert np.mean(spent) == pytest.approx(budget, rel=0.05)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_budgets_of_any_size_are_met_alike(scale: float) -> None:
    prices = {
        name: Price(p.input_price_per_m * scale, p.output_price_per_m * scale)
        for name, p in PRICES.items()
    }
    w = world(6e-4 * scale, prices=prices)
    w.factor = lambda _: scale
    w.play(800)
    assert w.play(1200) == pytest.approx(6e-4 * scale, rel=0.05)


@pytest.mark.parametrize(
    ("d", "head", "arm", "costs", "window"),
    [(26, 640, 3_100, 3_100, 840), (385, 640, 620_000, 620_000, 12_400)],
)
def test_a_router_is_kept_in_as_many_bytes_as_the_page_says(
    d: int, head: int, arm: int, costs: int, window: int
) -> None:
    _, engine = play(2, d, 1e-3, 300)
    state = engine.state
    empty = Played.start(RouterConfig({}, 1e-3, d)).state
    assert len(state_pieces.pack_piece(empty, HEAD) or b"") < head
    for name, piece in state_pieces.pack_pieces(state).items():
        limit = (
            window
            if name.startswith("\x1fwindow")
            else costs
            if name.startswith("\x1fcost")
            else arm
        )
        assert len(piece) <= 1.05 * limit, name


def test_a_model_like_another_starts_with_its_coefficients_and_needs_no_pulls() -> None:
    w = world(models=("cheap", "dear"))
    w.play(400)
    config = declaration()
    config.models["middle"] = ModelConfig(PRICES["middle"], Prior(like="dear", n_eff=50.0))  # type: ignore[index]
    w.engine.configure(config, now=400.0)
    arms = w.engine.state.arms
    assert arms["middle"].rewards.theta == pytest.approx(arms["dear"].rewards.theta, abs=0.05)
    assert observed(arms["middle"].rewards, arms.rewards)[-1, -1] == pytest.approx(50.0)
    assert [arm.pulls_left for arm in arms] == [0, 0, 0]
    w.play(400)
    assert w.chosen[400:].count("middle") > 200
    assert w.play(600) == pytest.approx(6e-4, rel=0.06)


@pytest.mark.parametrize("requests", [0, 1, 30])
def test_a_model_like_another_counts_for_no_more_than_was_seen_of_that_one(requests: int) -> None:
    names = ("cheap", "dear")
    w = world(models=names, cold=names)
    if requests:
        w.play(requests)
    before = w.engine.state.arms
    seen = observed(before["dear"].rewards, before.rewards)[-1, -1]
    config = declaration(cold=names)
    config.models["middle"] = ModelConfig(PRICES["middle"], Prior(like="dear"))  # type: ignore[index]
    w.engine.configure(config, now=float(requests))
    arms = w.engine.state.arms
    copied = observed(arms["middle"].rewards, arms.rewards)
    assert copied[-1, -1] == pytest.approx(seen, abs=0.01)
    assert seen < 31.0


def test_a_request_that_names_its_models_gets_one_of_them_whatever_they_cost() -> None:
    w = world(1e-4)
    w.play(400)
    x = np.array([0.1, 0.2, 0.0, 0.0, 1.0])
    assert w.engine.decide("theirs", x, now=400.0, allowed_models=["dear"]).model == "dear"
    assert (
        w.engine.decide("cheap enough", x, now=400.0, allowed_models=["cheap", "dear"]).model
        == "cheap"
    )
    with pytest.raises(NoAllowedModel):
        w.engine.decide("nobody's", x, now=400.0, allowed_models=["other"])


def met_again(seed: int, budget: float | None) -> int:
    """Return from which request on the better of two models is called, after 20 answers of each in
    which it looked like the worse one.
    """
    config = RouterConfig(portfolio(2), budget, 2, knobs=replace(LIVE, seed=seed))
    engine, rng, x = Played.start(config), np.random.default_rng(seed), np.array([0.0, 1.0])

    def ask(i: int, name: str | None, reward: float | None) -> str:
        allowed = None if name is None else [name]
        record = engine.decide(str(i), x, now=float(i), allowed_models=allowed)
        engine.settle(str(i), cost_usd=record.price.per_1k * 0.3)
        good = rng.random() < (0.5 if record.model == "m0" else 0.9)
        engine.learn(str(i), reward=float(good) if reward is None else reward)
        return record.model

    for i in range(0, 40, 2):
        ask(i, "m0", float(i % 4 == 0))
        ask(i + 1, "m1", float(i % 8 == 0))
    lately: list[bool] = []
    while sum(lately[-50:]) < 45 and len(lately) < 1500:
        lately.append(ask(40 + len(lately), None, None) == "m1")
    return len(lately)


@pytest.mark.parametrize("budget", [None, 1.0])
def test_a_model_that_lost_by_chance_is_met_again_where_money_is_no_limit(
    budget: float | None,
) -> None:
    # Drawn from 0.6 deviations, as under a budget that binds, it takes 2,000 requests.
    assert np.mean([met_again(seed, budget) for seed in range(4)]) < 800
