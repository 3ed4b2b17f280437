"""What an arm knows equals what its observations add up to, however they came."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.played import Played
from router_state.changes import Outcome
from router_state.state import invariants
from tests.router_state.core_reference import (
    DenseArm,
    Observation,
    context,
    declaration,
    weighted_sums,
)

features = st.lists(st.integers(-30, 30).map(lambda n: n / 10.0), min_size=3, max_size=3)
rewards = st.integers(0, 100).map(lambda n: n / 100.0)
gammas = st.sampled_from([0.5, 0.9, 0.997, 0.9995, 1.0])
step = st.tuples(
    features, rewards, st.sampled_from(["cheap", "middle", "dear"]), st.integers(0, 12)
)


def rewarded(
    steps: list[tuple[list[float], float, str, int]], **knobs: Any
) -> tuple[Played, dict[str, DenseArm]]:
    """Play decisions, each followed by its reward and by some decisions that never get one."""
    engine = Played.start(declaration(budget=None, **knobs))
    arms = {name: DenseArm() for name in ("cheap", "middle", "dear")}
    for n, (x, reward, model, idle) in enumerate(steps):
        engine.decide(str(n), context(*x), now=float(n), allowed_models=[model])
        engine.learn(str(n), reward=reward)
        arms[model].observations.append(Observation(engine.state.t, context(*x), reward))
        for extra in range(idle):
            engine.decide(f"{n}+{extra}", context(0, 0, 0), now=float(n))
    return engine, arms


@given(st.lists(step, min_size=1, max_size=40), gammas, st.sampled_from([0.5, 1.0, 20.0]))
def test_one_by_one_equals_from_scratch(
    steps: list[tuple[list[float], float, str, int]], gamma: float, ridge: float
) -> None:
    engine, dense = rewarded(steps, gamma=gamma, ridge=ridge)
    state = engine.state
    for k, name in enumerate(state.arms.names):
        A, b = dense[name].statistics(gamma=gamma, ridge=ridge, d=4)
        np.testing.assert_allclose(state.arms[k].rewards.A(), A, rtol=1e-8, atol=1e-8)
        np.testing.assert_allclose(
            state.arms[k].rewards.A_inv(), np.linalg.inv(A), rtol=1e-8, atol=1e-8
        )
        np.testing.assert_allclose(state.arms[k].rewards.b(), b, rtol=1e-8, atol=1e-8)
        np.testing.assert_allclose(
            state.arms[k].rewards.theta, np.linalg.solve(A, b), rtol=1e-8, atol=1e-8
        )
    invariants.check(state, engine.records)


@given(st.lists(step, min_size=1, max_size=20))
def test_without_restored_ridge_an_observation_weighs_gamma_to_its_age(
    steps: list[tuple[list[float], float, str, int]],
) -> None:
    engine, dense = rewarded([(x, r, "cheap", idle) for x, r, _, idle in steps], gamma=0.9995)
    A, b = weighted_sums(dense["cheap"].observations, gamma=0.9995, ridge=1.0, d=4)
    np.testing.assert_allclose(engine.state.arms[0].rewards.A(), A, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(engine.state.arms[0].rewards.b(), b, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("d", [26, 70, 385])
def test_many_dimensions_equal_the_sum_too(d: int) -> None:
    rng = np.random.default_rng(d)
    engine = Played.start(
        declaration({"only": declaration().models["cheap"].price}, dimensions=d, budget=None)
    )
    observations = []
    for n in range(45):
        x = np.append(rng.normal(size=d - 1), 1.0)
        engine.decide(str(n), x, now=float(n))
        engine.learn(str(n), reward=n / 45)
        observations.append(Observation(engine.state.t, x, n / 45))
        if n % 9 == 4:
            A, b = weighted_sums(observations, gamma=0.997, ridge=1.0, d=d)
            np.testing.assert_allclose(
                engine.state.arms[0].rewards.theta, np.linalg.solve(A, b), rtol=1e-8, atol=1e-10
            )
            np.testing.assert_allclose(
                engine.state.arms[0].rewards.A_inv(), np.linalg.inv(A), rtol=1e-8, atol=1e-10
            )
            candidates = engine.decide(f"look {n}", x, now=float(n)).candidates
            assert candidates is not None
            assert candidates.bonus[0] == pytest.approx(
                0.01 * np.sqrt(x @ np.linalg.solve(A, x)), rel=1e-8
            )
    invariants.check(engine.state, engine.records)


def test_after_a_thousand_idle_steps_nothing_more_is_forgotten() -> None:
    found = []
    for idle in (1000, 1500):
        engine = Played.start(
            declaration({"only": declaration().models["cheap"].price}, budget=None)
        )
        engine.decide("first", context(1, 2, 3), now=0.0)
        engine.learn("first", reward=1.0)
        for n in range(idle):
            engine.decide(str(n), context(0, 0, 0), now=1.0)
        engine.learn(str(idle - 1), reward=0.5)
        found.append(engine.state.arms[0].rewards.b())
    np.testing.assert_array_equal(found[0], found[1])


@given(st.lists(step, min_size=2, max_size=25), gammas, st.data())
def test_a_revised_reward_counts_as_if_it_had_been_the_first(
    steps: list[tuple[list[float], float, str, int]], gamma: float, data: st.DataObject
) -> None:
    revised = data.draw(st.dictionaries(st.integers(0, len(steps) - 1), rewards, min_size=1))
    engine, _ = rewarded(steps, gamma=gamma)
    for n, reward in revised.items():
        assert engine.learn(str(n), reward=reward, revision=1) is Outcome.REVISED
    wanted, _ = rewarded(
        [(x, revised.get(n, r), model, idle) for n, (x, r, model, idle) in enumerate(steps)],
        gamma=gamma,
    )
    for k in range(3):
        np.testing.assert_allclose(
            engine.state.arms[k].rewards.b(), wanted.state.arms[k].rewards.b(), rtol=1e-8, atol=1e-8
        )
        np.testing.assert_allclose(
            engine.state.arms[k].rewards.A_inv(),
            wanted.state.arms[k].rewards.A_inv(),
            rtol=1e-12,
            atol=1e-15,
        )
        np.testing.assert_allclose(
            engine.state.arms[k].rewards.theta,
            wanted.state.arms[k].rewards.theta,
            rtol=1e-8,
            atol=1e-8,
        )
    assert engine.state.rewards_applied == len(steps)


@given(
    st.lists(st.tuples(features, rewards), min_size=2, max_size=30),
    st.randoms(use_true_random=False),
)
def test_rewards_in_any_order_add_up_to_the_same(
    pairs: list[tuple[list[float], float]], random: object
) -> None:
    found = []
    for shuffled in (False, True):
        engine = Played.start(declaration(budget=None))
        for n, (x, _) in enumerate(pairs):
            engine.decide(
                str(n),
                context(*x),
                now=float(n),
                allowed_models=[("cheap", "middle", "dear")[n % 3]],
            )
        order = list(range(len(pairs)))
        if shuffled:
            random.shuffle(order)  # type: ignore[attr-defined]
        for n in order:
            engine.learn(str(n), reward=pairs[n][1])
        found.append(engine.state)
    for k in range(3):
        np.testing.assert_allclose(
            found[0].arms[k].rewards.A_inv(),
            found[1].arms[k].rewards.A_inv(),
            rtol=1e-9,
            atol=1e-12,
        )
        np.testing.assert_allclose(
            found[0].arms[k].rewards.theta, found[1].arms[k].rewards.theta, rtol=1e-9, atol=1e-9
        )
    assert found[0].rewards_applied == found[1].rewards_applied == len(pairs)


def test_higher_rank_wins_and_lower_rank_changes_nothing() -> None:
    engine = Played.start(declaration())
    engine.decide("a", context(1, 1, 1), now=0.0)
    learn = engine.learn
    assert learn("a", reward=0.2, source="judge", rank=1) is Outcome.APPLIED
    assert learn("a", reward=0.9, source="metric", rank=0, revision=9) is Outcome.DUPLICATE
    assert learn("a", reward=0.9, source="metric", rank=1, revision=9) is Outcome.DUPLICATE
    assert learn("a", reward=0.6, source="human", rank=2) is Outcome.REVISED
    assert learn("a", reward=0.1, source="judge", rank=1, revision=7) is Outcome.DUPLICATE
    assert learn("a", reward=0.7, source="human", rank=2, revision=1) is Outcome.REVISED
    assert learn("a", reward=0.0, source="human", rank=2, revision=1) is Outcome.DUPLICATE
    k = engine.state.arms.row[engine.records["a"].model]
    np.testing.assert_allclose(engine.state.arms[k].rewards.b(), 0.7 * context(1, 1, 1), rtol=1e-9)
    assert engine.state.rewards_applied == 1
