"""What arms share: equal to the joint regression, scales that are found again, and worlds that say
nothing.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from benchmarks.played import Played
from router_state.changes import Journal
from router_state.config import ModelConfig, Price, RouterConfig
from router_state.errors import NoAllowedModel
from router_state.kernel import GUESSED, LEAST_PROPENSITY, Regression, SharedPrior, estimate, wins
from router_state.learning.guess import REWARDS
from router_state.profiles import knobs_for
from router_state.state import invariants, portable
from tests.router_state.core_reference import observed

Array = npt.NDArray[np.float64]


def evidence(K: int, d: int, n: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return Σ xxᵀ and Σ y·x of K arms that have seen n contexts each."""
    X = rng.standard_normal((K, n, d))
    X[..., -1] = 1.0
    y = rng.standard_normal((K, n))
    return np.einsum("kni,knj->kij", X, X), np.einsum("kni,kn->ki", X, y)


def joint(A: Array, b: Array, prior: SharedPrior) -> tuple[Array, Array]:
    """Return means and variances of (θ_0, δ_1 … δ_K), shape (K + 1, d): every observation of arm a
    is one of θ_0 + δ_a."""
    K, d = b.shape
    own = prior.ridges
    shared = np.full(d, prior.shared_ridge)
    shared[-1] = prior.noise / prior.guess.deviation**2
    precision, response = np.zeros(((K + 1) * d,) * 2), np.zeros((K + 1) * d)
    precision[:d, :d] = np.diag(shared)
    response[d - 1] = shared[-1] * prior.guess.mean
    for k in range(K):
        at = slice((k + 1) * d, (k + 2) * d)
        precision[:d, :d] += A[k]
        precision[:d, at] = precision[at, :d] = A[k]
        precision[at, at] = A[k] + np.diag(own)
        response[:d] += b[k]
        response[at] = b[k]
    means, variances = np.linalg.solve(precision, response), np.diag(np.linalg.inv(precision))
    return means.reshape(K + 1, d), variances.reshape(K + 1, d)


@given(K=st.integers(1, 4), d=st.integers(2, 5), n=st.integers(1, 20), seed=st.integers(0, 99))
def test_arm_by_arm_is_equal_to_the_joint_regression(K: int, d: int, n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    A, b = evidence(K, d, n, rng)
    prior = SharedPrior("p", d, REWARDS, Journal())
    prior.ridge, prior.bias_ridge, prior.shared_ridge = rng.uniform(0.5, 9.0, 3).tolist()
    prior.mean = rng.standard_normal(d)
    arms = [Regression(str(k), d, Journal()) for k in range(K)]
    for k, arm in enumerate(arms):
        arm.start(A[k] + np.diag(prior.ridges), b[k] + prior.ridges * prior.mean)
    means, variances = joint(A, b, prior)
    before = prior.ridge, prior.bias_ridge, prior.shared_ridge
    estimate(prior, arms, rescaled=False)
    assert prior.mean == pytest.approx(means[0], abs=1e-8)
    for k, arm in enumerate(arms):
        assert arm.theta == pytest.approx(means[0] + means[k + 1], abs=1e-8)
        assert arm.A_inv() == pytest.approx(np.linalg.inv(A[k] + np.diag(prior.ridges)), abs=1e-8)
    assert before == (prior.ridge, prior.bias_ridge, prior.shared_ridge)
    # The ridges: what is determined by data ÷ Σ coefficients², first guesses counted in.
    own, unit = prior.ridges, (d - 1) * np.einsum("kii->i", A)[:-1].sum() / A[:, -1, -1].sum()
    unit /= max(d - 1, 1)
    first = GUESSED / (REWARDS.features * unit)
    known = np.maximum(1.0 - own * variances[1:], 0.0).sum(0)
    squares = (means[1:] ** 2).sum(0)
    expected = (known[:-1].sum() + GUESSED) / (squares[:-1].sum() / prior.noise + first)
    estimate(prior, arms)
    assert prior.ridge == pytest.approx(np.clip(expected, 1e-5 * unit, 1e5 * unit), rel=1e-5)
    bias = (known[-1] + GUESSED) / (squares[-1] / prior.noise + GUESSED / REWARDS.bias)
    assert prior.bias_ridge == pytest.approx(np.clip(bias, 2e-2, 1e4), rel=1e-5)


def started(K: int, d: int, *, budget: float | None = None) -> Played:
    """Return a router of K models of which nothing is known."""
    models = {f"m{k}": ModelConfig(Price(1.0 + k, 1.0 + k)) for k in range(K)}
    return Played.start(RouterConfig(models, budget, d, "live", knobs_for("live")))


def taught(engine: Played, n: int, rewards: Array, contexts: Array) -> Played:
    """Let a router decide n requests, and learn what its choices earn: rewards (n, K)."""
    for i in range(n):
        record = engine.decide(str(i), contexts[i], now=float(i))
        engine.settle(str(i), cost_usd=0.5 * record.price.per_1k)
        engine.learn(str(i), reward=float(rewards[i, int(record.model[1:])]))
    return engine


def contexts(n: int, d: int, rng: np.random.Generator) -> Array:
    X = rng.standard_normal((n, d))
    X[:, -1] = 1.0
    return X


@pytest.mark.parametrize("noise", [0.05, 0.2])
def test_the_noise_that_was_drawn_is_found(noise: float) -> None:
    rng = np.random.default_rng(3)
    X = contexts(800, 8, rng)
    rewards = np.clip([0.5, 0.55] + noise * rng.standard_normal((800, 2)), 0.0, 1.0)
    prior = taught(started(2, 8), 800, rewards, X).state.arms.rewards
    assert prior.noise**0.5 == pytest.approx(noise, rel=0.1)


def test_differences_between_models_that_are_there_lower_the_ridge() -> None:
    rng = np.random.default_rng(4)
    X = contexts(800, 8, rng)
    slopes = 0.08 * rng.standard_normal((8, 3))
    noise = 0.05 * rng.standard_normal((800, 3))
    alike = taught(started(3, 8), 800, np.clip(0.5 + noise, 0.0, 1.0), X)
    apart = taught(started(3, 8), 800, np.clip(0.5 + X @ slopes + noise, 0.0, 1.0), X)
    assert apart.state.arms.rewards.ridge < 0.1 * alike.state.arms.rewards.ridge


def test_new_routers_share_the_arrays_of_their_models() -> None:
    one, other = started(3, 8).state.arms, started(3, 8).state.arms
    assert all(arm.rewards.array is other[arm.name].rewards.array for arm in one)


def test_one_reward_at_a_time_is_equal_to_all_at_once() -> None:
    rng = np.random.default_rng(5)
    X = contexts(300, 6, rng)
    engine = taught(started(2, 6), 300, rng.uniform(size=(300, 2)), X)
    arms, gamma = engine.state.arms, engine.state.config.knobs.gamma
    for arm in arms:
        mine = [r for r in engine.records.values() if r.model == arm.name]
        A = np.zeros((6, 6))
        for r in mine:
            assert r.label is not None and r.x is not None
            A += np.exp(r.label.forgotten - arm.rewards.forgotten) * np.outer(r.x, r.x)
        found = observed(arm.rewards, arms.rewards)
        assert found == pytest.approx(A, abs=1e-6 * max(1.0, len(mine)))
    assert gamma < 1.0


@pytest.mark.parametrize("K", [1, 2, 64])
@pytest.mark.parametrize("reward", [0.0, 0.5, 1.0])
def test_equal_rewards_on_equal_prompts_leave_everything_finite(K: int, reward: float) -> None:
    X = np.tile(np.array([0.3, -0.2, 1.0]), (150, 1))
    engine = taught(started(K, 3, budget=2e-3), 150, np.full((150, K), reward), X)
    invariants.check(engine.state, engine.records)
    assert portable.pack(
        portable.unpack(portable.pack(engine.state, {})).state, {}
    ) == portable.pack(engine.state, {})


def test_the_better_of_two_models_gets_nearly_all_traffic_though_nothing_was_known() -> None:
    rng = np.random.default_rng(6)
    X = contexts(600, 6, rng)
    rewards = np.clip([0.4, 0.7] + 0.2 * rng.standard_normal((600, 2)), 0.0, 1.0)
    engine = taught(started(2, 6), 600, rewards, X)
    late = [record.model for record in list(engine.records.values())[-200:]]
    assert late.count("m1") > 190


@given(
    st.lists(st.tuples(st.floats(-1.0, 1.0), st.floats(0.01, 1.0)), min_size=1, max_size=4),
    st.floats(0.01, 1.0),
)
@example(rivals=[(0.0, 0.0625)] * 2, variance=1.0)
@example(rivals=[(0.0, 1e-12), (0.2, 0.0), (0.0, 0.0)], variance=1.0)
@example(rivals=[(0.01, 1.0), (0.0, 1e-6), (-1.0, 1.0)], variance=0.01)
def test_a_propensity_is_how_often_the_score_is_the_largest(
    rivals: list[tuple[float, float]], variance: float
) -> None:
    rng = np.random.default_rng(0)
    own = np.sqrt(variance) * rng.standard_normal(20_000)
    won = np.ones(20_000, dtype=bool)
    for gap, other in rivals:
        won &= own > -gap + np.sqrt(other) * rng.standard_normal(20_000)
    found = wins(0, [0.0, *(-gap for gap, _ in rivals)], [variance, *(v for _, v in rivals)])
    assert LEAST_PROPENSITY <= found <= 1.0
    assert found == pytest.approx(won.mean(), abs=0.03)


@pytest.mark.parametrize("rivals", [1, 2, 3])
@pytest.mark.parametrize(("gap", "chance"), [(0.5, 1.0), (-0.5, LEAST_PROPENSITY)])
def test_without_doubt_the_larger_expectation_wins(rivals: int, gap: float, chance: float) -> None:
    found = wins(0, [gap, *[0.0] * rivals], [0.0] * (rivals + 1))
    assert found == pytest.approx(chance)


def asked(engine: Played, n: int, rng: np.random.Generator) -> list[str]:
    """Let a router of three dimensions decide n requests, and return what was called."""
    return [engine.decide(f"{engine.state.seq}", x, now=1.0).model for x in contexts(n, 3, rng)]


def test_what_comes_between_two_decisions_is_estimated_once_and_before_the_second() -> None:
    rng, engine = np.random.default_rng(5), started(2, 3)
    asked(engine, 10, rng)
    priors = (engine.state.arms.rewards, engine.state.arms.bills)
    before = [(prior.mean.copy(), prior.due_at) for prior in priors]
    for i in range(10):
        engine.settle(str(i), cost_usd=1e-3)
        engine.learn(str(i), reward=0.9)
    for prior, (mean, due_at) in zip(priors, before, strict=True):
        assert prior.due_at == due_at
        assert (prior.mean == mean).all()
    asked(engine, 1, rng)
    for prior, (mean, _) in zip(priors, before, strict=True):
        assert prior.due_at > prior.seen == 10
        assert (prior.mean != mean).all()


def test_a_router_that_is_asked_nothing_estimates_all_the_same() -> None:
    rng, engine = np.random.default_rng(6), started(2, 3)
    asked(engine, 500, rng)
    estimated = set()
    for i in range(500):
        engine.settle(str(i), cost_usd=1e-3)
        estimated.add(engine.state.arms.bills.due_at)
    assert 3 <= len(estimated) <= 8


def test_a_refused_request_leaves_what_is_due_to_the_next_decision() -> None:
    rng, engine = np.random.default_rng(7), started(2, 3)
    asked(engine, 2, rng)
    engine.learn("0", reward=0.9)
    with pytest.raises(NoAllowedModel):
        engine.decide("refused", contexts(1, 3, rng)[0], now=1.0, allowed_models=["other"])
    assert engine.state.arms.rewards.due
