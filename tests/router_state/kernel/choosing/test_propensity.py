"""The logged propensity of a model is how often it is drawn, whichever way it came by: what
off-policy estimates rest on.
"""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.played import Played
from router_state.choice import Choice
from router_state.config import ModelConfig, Price, RouterConfig, Vector
from router_state.events import Asked
from router_state.kernel import LEAST_PROPENSITY, Chance, wins
from router_state.pacing import prices as prices_of
from router_state.pacing.dollar_dual import UNREACHABLE
from router_state.policies.by_profile import POLICIES
from router_state.profiles import knobs_for
from router_state.state import restoring, state_pieces
from tests.router_state.live_world import PRICES, World, declaration

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
    engine = Played.start(RouterConfig(models, None, 3, "live", knobs))
    for i in range(30):
        record = engine.decide(str(i), X, now=float(i))
        engine.learn(str(i), reward={"a": 0.9, "b": 0.5, "c": 0.4}[record.model])
    drawn, logged = chosen(engine, X, 0.0, DRAWS)
    assert agree(drawn, logged, DRAWS)
    if epsilon > 0.0:
        assert drawn.all()


def chosen(engine: Played, x: Vector, price: float, draws: int) -> tuple[Vector, Vector]:
    """Return the share of draws that each model won from one state, and the propensity that was
    logged with it: the same each time, as it depends on no draw."""
    state = engine.state
    policy, asked = POLICIES["live"], Asked("r", x)
    seen, excluded = policy.look(state, asked), [None] * len(state.arms)
    choice = Choice(asked, 0.0, 0.0, 1, seen, list(excluded), price=price)
    seen.excluded = choice.excluded
    drawn, logged = np.zeros(len(state.arms)), np.zeros(len(state.arms))
    for _ in range(draws):
        policy.choose(state, choice)
        k, propensity = choice.k, choice.propensity
        assert logged[k] in (0.0, propensity)
        drawn[k] += 1
        logged[k] = propensity
    return drawn / draws, logged


def agree(drawn: Vector, logged: Vector, draws: int) -> bool:
    """Tell whether shares are propensities, within chance and what their formula leaves out."""
    off = 5.0 * np.sqrt(np.maximum(drawn * (1.0 - drawn), 1.0 / draws) / draws) + 0.0015
    return bool((np.abs(drawn - logged)[drawn > 0.0] < off[drawn > 0.0]).all())


@pytest.mark.parametrize("budget", [6e-4, 2e-3, 2e-2])
@pytest.mark.parametrize("played", [40, 60])
def test_a_propensity_is_the_share_of_draws_at_the_price_that_stood_before_them(
    budget: float, played: int
) -> None:
    w = World(Played.start(declaration(budget, cold=("cheap", "middle", "dear"))), late=20)
    w.play(played)
    x = np.array([0.3, -0.2, 0.1, 0.5, 1.0])
    pieces, prices = state_pieces.pack_pieces(w.engine.state), set()
    for seed in range(20):
        state = restoring.unpack(pieces.get, {})
        assert isinstance(state.chance, Chance)
        state.chance = Chance(seed)
        prices.add(Played(state, {}).decide("one", x, now=1e6).lambda_t)
    assert len(prices) == 1  # λ_t does not depend on what is drawn
    asked, state = Asked("r", x), w.engine.state
    choice = Choice(asked, 1e6, 1e6, 1, state.policy.look(state, asked), [])
    prices_of.weigh(state.pacer, state.arms, choice)
    drawn, logged = chosen(w.engine, x, choice.price, 200_000)
    assert agree(drawn, logged, 200_000)
    assert len(np.flatnonzero(drawn)) > 1


def test_a_propensity_is_the_share_of_draws_of_costs_where_no_price_meets_the_budget() -> None:
    models = {
        name: ModelConfig(Price(price, price)) for name, price in zip("abc", (1, 2, 9), strict=True)
    }
    budget = 1.0  # so large that no call is a risk
    engine = Played.start(RouterConfig(models, budget, 3, "live", knobs_for("live")))
    engine.state.pacer.lambda_t = UNREACHABLE
    drawn, logged = chosen(engine, X, UNREACHABLE / budget, DRAWS)
    assert drawn.min() > 50 / DRAWS
    assert agree(drawn, logged, DRAWS)
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


@pytest.mark.parametrize("budget", [6e-4, 6e-3, None])
def test_inverse_propensities_average_one(budget: float | None) -> None:
    n, seeds = 2000, 4
    weights = np.zeros((seeds, 3))
    for seed in range(seeds):
        config = declaration(budget, cold=("cheap", "middle", "dear"), epsilon=0.3, seed=seed)
        w = World(Played.start(config), late=20, seed=seed)
        w.play(n)
        for record in w.engine.records.values():
            weights[seed, [*PRICES].index(record.model)] += 1.0 / record.propensity
    # A weight is below 10, so its deviation is below √10.
    assert weights.mean(0) / n == pytest.approx(1.0, abs=3.0 * np.sqrt(10.0 / (n * seeds)))


@pytest.mark.parametrize("k", [0, 1, 2])
def test_a_propensity_does_not_depend_on_how_large_penalties_are(k: int) -> None:
    found = [
        wins(k, [0.5 - scale, 0.5 - 1.0 * scale, 0.5 - 1.03 * scale], [0.01] * 3)
        for scale in (1e90, 1e100, 1e120)
    ]
    assert found == [LEAST_PROPENSITY if k == 2 else pytest.approx(0.5)] * 3
