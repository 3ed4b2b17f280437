"""The logged propensity of a model is how often it is drawn, whichever way it came by: what
off-policy estimates rest on.
"""

from __future__ import annotations

import numpy as np
import pytest

from router_state.config import ModelConfig, Price, RouterConfig, knobs_for
from router_state.engine import Engine
from router_state.kernel import Chance, Projection, wins
from router_state.pacing.dollar_dual import UNREACHABLE
from router_state.policies import propensity
from router_state.policies.policy import POLICIES
from router_state.policies.scoring import project
from router_state.record import Candidates

DRAWS = 20_000
X = np.array([0.3, -0.2, 1.0])


@pytest.mark.parametrize("epsilon", [0.0, 0.05, 0.3])
@pytest.mark.parametrize("pulls", [0, 20])
def test_a_propensity_is_the_share_of_draws(epsilon: float, pulls: int) -> None:
    models = {
        name: ModelConfig(Price(price, price), onboarding_pulls=pulls * (name != "a"))
        for name, price in zip("abc", (1, 2, 3), strict=True)
    }
    knobs = knobs_for("live", {"epsilon": epsilon})
    engine = Engine.start(RouterConfig(models, None, 3, "live", knobs))
    for i in range(30):
        record = engine.decide(str(i), X, now=float(i))
        engine.learn(str(i), reward={"a": 0.9, "b": 0.5, "c": 0.4}[record.model])
    state, seen = engine.state, project(engine.state.arms, X)
    policy, arms = POLICIES["live"], state.arms
    costs, open_ = policy.costs(state, seen, None), arms.open or []
    drawn, inverse, logged = np.zeros(3), np.zeros(3), np.zeros(3)
    for _ in range(DRAWS):
        arms.sample.renew(arms.regressions, noise=arms.rewards.noise, chance=Chance(1), free=True)
        _, choice = policy.choose(state, X, seen, costs, excluded=open_, weights=(0.0, 0.0, 0.0))
        drawn[choice.k] += 1
        inverse[choice.k] += 1.0 / choice.propensity
        logged[choice.k] += choice.propensity
    share, logged = drawn / DRAWS, logged / np.maximum(drawn, 1)
    for k in np.flatnonzero(drawn):
        if pulls == 0:  # how likely a pull is depends on the draw: then only the average is right
            deviation = np.sqrt(logged[k] * (1.0 - logged[k]) / DRAWS)
            assert share[k] == pytest.approx(logged[k], abs=5.0 * deviation + 0.0025)
        if drawn[k] > 100:
            off = 5.0 / np.sqrt(drawn[k])
            assert inverse[k] / DRAWS == pytest.approx(1.0, abs=off + 0.03)
    if epsilon > 0.0:
        assert drawn.all()


def test_a_propensity_is_the_share_of_draws_of_costs_where_no_price_meets_the_budget() -> None:
    models = {
        name: ModelConfig(Price(price, price)) for name, price in zip("abc", (1, 2, 9), strict=True)
    }
    engine = Engine.start(RouterConfig(models, 1e-5, 3, "live", knobs_for("live")))
    state, seen = engine.state, project(engine.state.arms, X)
    policy, drawn, logged = POLICIES["live"], np.zeros(3), np.zeros(3)
    costs, open_ = policy.costs(state, seen, None), state.arms.open or []
    for _ in range(DRAWS):
        weights = UNREACHABLE, 0.0, UNREACHABLE / 1e-5
        _, choice = policy.choose(state, X, seen, costs, excluded=open_, weights=weights)
        drawn[choice.k] += 1
        logged[choice.k] = choice.propensity
    assert drawn.min() > 100
    assert drawn / DRAWS == pytest.approx(logged, abs=5.0 * np.sqrt(0.25 / DRAWS))
    assert logged.sum() == pytest.approx(1.0, abs=0.005)


@pytest.mark.parametrize("rivals", [1, 2, 5])
def test_the_probability_of_a_best_score_is_the_share_of_a_million_draws(rivals: int) -> None:
    rng = np.random.default_rng(rivals)
    means, deviations = rng.normal(size=rivals + 1), rng.uniform(0.2, 2.0, rivals + 1)
    won = np.zeros(rivals + 1)
    for _ in range(10):
        scores = means + deviations * rng.standard_normal((100_000, rivals + 1))
        won += np.bincount(scores.argmax(1), minlength=rivals + 1)
    for k in range(rivals + 1):
        found = wins(k, means.tolist(), (deviations**2).tolist())
        assert found == pytest.approx(won[k] / 1e6, abs=0.004)


def test_inverse_propensities_average_one_where_doubt_and_epsilon_draw() -> None:
    rng = np.random.default_rng(1)
    models = {
        name: ModelConfig(Price(price, price)) for name, price in zip("abc", (1, 2, 3), strict=True)
    }
    config = RouterConfig(models, None, 3, "live", knobs_for("live", {"epsilon": 0.3}))
    engine = Engine.start(config)
    weights = np.zeros((1500, 3))
    for i in range(len(weights)):
        x = np.array([*rng.normal(size=2), 1.0])
        record = engine.decide(str(i), x, now=float(i))
        k = "abc".index(record.model)
        engine.learn(str(i), reward=float(rng.random() < 0.5 + 0.02 * k))
        weights[i, k] = 1.0 / record.propensity
    assert weights.mean(0).mean() == pytest.approx(1.0, abs=0.06)


@pytest.mark.parametrize("k", [0, 1, 2])
def test_a_propensity_does_not_depend_on_how_large_penalties_are(k: int) -> None:
    models = {name: ModelConfig(Price(1, 1)) for name in "abc"}
    arms = Engine.start(RouterConfig(models, None, 3)).state.arms
    seen = Projection([0.5] * 3, [0.0] * 3, [0.0] * 3)

    def drawn(scale: float) -> float:
        penalties = [scale, 1.01 * scale, 1.03 * scale]
        return propensity.best(
            arms, seen, Candidates((*models,), [0.5] * 9, penalties, [None] * 3), k
        )

    assert 0.2 < drawn(1e90) < 0.5
    # No penalty is larger than the largest reward per dollar times the dearest call.
    assert [drawn(1e100), drawn(1e120)] == pytest.approx([drawn(1e90)] * 2)
