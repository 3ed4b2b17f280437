"""Whatever declaration is accepted: requests, bills and rewards go through, and numbers stay
finite.
"""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from benchmarks.played import Played
from router_state.changes import Outcome
from router_state.config import CostPrior, ModelConfig, Price, Prior, RouterConfig
from router_state.errors import InvalidConfig, UnusablePrior
from router_state.events import Asked, Charged, Judged, Redeclared
from router_state.profiles import UNUSED, knobs_for
from router_state.state import invariants, portable

Array = npt.NDArray[np.float64]
PRICES = {"m": Price(1.0, 3.0), "other": Price(0.1, 0.4)}
REQUESTS = 20
BUDGET = 1e-3
DRAWN = settings(suppress_health_check=list(HealthCheck), deadline=None)

profiles = st.sampled_from(["live", "paper"])
dimensions = st.sampled_from([2, 5, 26])
seeds = st.integers(0, 2**32 - 1)
any_float = st.floats() | st.builds(math.ldexp, st.just(1.0), st.integers(-1074, 1023))
positive = st.floats(min_value=0.0, exclude_min=True, allow_infinity=False)


def contexts(n: int, d: int, seed: int, *, size: float = 1.0) -> Array:
    """Return contexts of which the last entry is 1.0."""
    features = size * np.random.default_rng(seed).normal(size=(n, d - 1))
    return np.concatenate([features, np.ones((n, 1))], axis=1)


def declaration(
    d: int,
    profile: str = "live",
    *,
    prior: Prior | None = None,
    cost_prior: CostPrior | None = None,
    price: Price = PRICES["m"],
    expected_cost_usd: float | None = None,
    onboarding_pulls: int | None = None,
    budget: float | None = BUDGET,
    **knobs: float,
) -> RouterConfig:
    """Return a router of two models, one of which is declared so."""
    models = {
        "m": ModelConfig(price, prior, onboarding_pulls, expected_cost_usd, cost_prior),
        "other": ModelConfig(PRICES["other"]),
    }
    return RouterConfig(models, budget, d, profile, knobs_for(profile, knobs))


def play(engine: Played, *, seed: int = 0, size: float = 1.0) -> list[tuple[str, Array, float]]:
    """Send requests, bills and rewards, and return model, context and reward of each; nothing may
    be refused.
    """
    rng, told = np.random.default_rng(seed), []
    for i, x in enumerate(contexts(REQUESTS, engine.state.arms.d, seed, size=size)):
        request_id, reward = f"r{i}", float(rng.random())
        changes = engine.apply(Asked(request_id, x), float(i))
        record = changes.decision
        assert record is not None, f"request {i}: {changes.refusal!r}"
        numbers = [record.propensity, record.expected_reward, record.expected_cost_usd]
        terms = [] if record.candidates is None else record.candidates.terms
        assert all(map(math.isfinite, [*numbers, record.lambda_t, *terms])), f"request {i}"
        assert 0.0 < record.propensity <= 1.0
        bill = float(1e-3 * rng.lognormal(0.0, 0.5))
        for fed in (Charged(request_id, bill, x=x), Judged(request_id, reward, x=x)):
            changes = engine.apply(fed, float(i))
            assert changes.outcome is Outcome.APPLIED, f"request {i}: {changes.refusal!r}"
        told.append((record.model, x, reward))
        invariants.check(engine.state, engine.records)
    data = portable.pack(engine.state, {})
    assert portable.pack(portable.unpack(data).state, {}) == data
    return told


def started(config: RouterConfig) -> Played | None:
    """Return an engine, None where the declaration is refused."""
    try:
        engine = Played.start(config)
    except InvalidConfig as error:
        event(str(error).split(":")[0][:60])
        return None
    event("accepted")
    return engine


def assert_agree(engine: Played, prior: Prior, told: list[tuple[str, Array, float]]) -> None:
    """Hold A⁻¹ and θ, where nothing is forgotten, against the sums they are of."""
    assert prior.A is not None and prior.b is not None
    arms, knobs = engine.state.arms, engine.state.config.knobs
    n_eff = knobs.n_eff if prior.n_eff is None else prior.n_eff
    scale = n_eff / prior.A[-1, -1]
    offline = (prior.A + prior.A.T) / 2.0
    A, b = scale * offline, scale * prior.b
    for model, x, reward in told:
        if model == "m":
            A, b = A + np.outer(x, x), b + reward * x
    if engine.state.config.profile == "live":
        A, b = A + np.diag(arms.rewards.ridges), b + arms.rewards.ridges * arms.rewards.mean
    else:
        guess = np.linalg.solve(offline, prior.b)
        A, b = A + knobs.ridge * np.eye(len(b)), b + knobs.ridge * guess
    learned = arms["m"].rewards
    assert np.abs(learned.A_inv() @ A - np.eye(len(b))).max() < 1e-3
    size = np.linalg.norm(A, 2) * np.linalg.norm(learned.theta) + np.linalg.norm(b)
    assert np.linalg.norm(A @ learned.theta - b) <= 1e-6 * size


@st.composite
def statistics(draw: Any, d: int, *, low: float, high: float) -> tuple[Array, Array]:
    """Draw Σ xxᵀ and Σ y·x of y within bounds; mostly something is wrong with them."""
    rng = np.random.default_rng(draw(seeds))
    n = draw(st.sampled_from([1, d - 1, d, 5 * d, 1000]))
    features = rng.normal(size=(n, d - 1)) * 10.0 ** draw(st.integers(-8, 8))
    features *= 10.0 ** (rng.normal(size=d - 1) * draw(st.sampled_from([0, 0, 1, 4])))
    X = np.concatenate([features, np.ones((n, 1))], axis=1)
    y = rng.uniform(low, high, size=n)
    A, b = X.T @ X, y @ X
    if draw(st.booleans()):
        A = A + 10.0 ** draw(st.integers(-320, 3)) * np.eye(d)
    with np.errstate(all="ignore"):
        match draw(st.sampled_from(["as they are", "scaled", "b", "entry", "skewed", "spectrum"])):
            case "scaled":
                factor = 10.0 ** draw(st.integers(-330, 308))
                A, b = factor * A, factor * b
            case "b":
                b = 10.0 ** draw(st.integers(-300, 300)) * rng.normal(size=d)
            case "entry":
                value, i, j = draw(any_float), draw(st.integers(0, d - 1)), draw(seeds) % d
                A[i, j] = A[j, i] = value
            case "skewed":
                A[0, d - 1] += draw(any_float)
            case "spectrum":
                Q, _ = np.linalg.qr(rng.normal(size=(d, d)))
                spread = draw(st.integers(0, 300))
                A = (Q * 10.0 ** rng.uniform(-spread, 0, size=d)) @ Q.T
                A = (A + A.T) / 2.0
                b = A @ rng.uniform(-1, 1, size=d)
    return A, b


@given(profile=profiles, d=dimensions, data=st.data())
@DRAWN
def test_a_prior_that_is_accepted_works(profile: str, d: int, data: st.DataObject) -> None:
    A, b = data.draw(statistics(d, low=0.0, high=1.0))
    n_eff = data.draw(st.none() | st.floats(1e-3, 1e9) | positive)
    prior = Prior(A=A, b=b, n_eff=n_eff)
    engine = started(declaration(d, profile, prior=prior, gamma=1.0))
    if engine is not None:
        seed, size = data.draw(seeds), data.draw(st.sampled_from([0.0, 1.0, 1.0, 100.0]))
        assert_agree(engine, prior, play(engine, seed=seed, size=size))


@given(profile=profiles, d=dimensions, data=st.data())
@DRAWN
def test_a_cost_prior_that_is_accepted_works(profile: str, d: int, data: st.DataObject) -> None:
    A, b = data.draw(statistics(d, low=-12.0, high=-3.0))
    prior = CostPrior(
        A,
        b,
        data.draw(st.floats(1e-6, 1e-1) | st.floats(0.0, 1000.0) | any_float),
        data.draw(st.none() | st.floats(1e-3, 1e9) | positive),
    )
    usd = data.draw(st.none() | st.floats(0.0, 1000.0))
    per_m = data.draw(st.floats(0.0, 1e6))
    engine = started(
        declaration(d, profile, cost_prior=prior, expected_cost_usd=usd, price=Price(per_m, per_m))
    )
    if engine is not None:
        play(engine, seed=data.draw(seeds), size=data.draw(st.sampled_from([0.0, 1.0, 100.0])))


extremes = st.sampled_from([5e-324, 1e-300, 1e-160, 1e-20, 1e-9, 1e-3, 1.0])


@given(
    profile=profiles,
    d=dimensions,
    prices=st.tuples(extremes | st.floats(0.0, 1e6), st.just(0.0) | st.floats(0.0, 1e6)),
    budget=st.none() | extremes | st.just(1000.0),
    knobs=st.fixed_dictionaries(
        {},
        optional={
            "expected_cost_usd": st.just(0.0) | extremes | st.just(1000.0),
            "onboarding_pulls": st.sampled_from([0, 1, 10_000]),
            "gamma": extremes | st.just(1.0 - 1e-16),
            "alpha": extremes | st.just(100.0),
            "lambda_c": extremes | st.just(100.0),
            "ridge": extremes | st.just(1e6),
            "t_adapt": extremes | st.just(1e6),
            "v_max": st.sampled_from([1.0, 1e6]),
            "epsilon": extremes,
        },
    ),
    warm=st.booleans(),
    seed=seeds,
)
@DRAWN
def test_extreme_numbers_that_are_accepted_work(
    profile: str,
    d: int,
    prices: tuple[float, float],
    budget: float | None,
    knobs: dict[str, float],
    warm: bool,
    seed: int,
) -> None:
    prior = Prior(A=500.0 * np.eye(d), b=400.0 * np.eye(d)[-1]) if warm else None
    knobs = {name: value for name, value in knobs.items() if name not in UNUSED[profile]}
    try:
        config = declaration(d, profile, prior=prior, price=Price(*prices), budget=budget, **knobs)  # type: ignore[arg-type]
    except InvalidConfig as error:
        event(str(error)[:20])
        return
    engine = started(config)
    if engine is not None:
        play(engine, seed=seed)


def genuine(d: int) -> tuple[Array, Array]:
    X = contexts(3 * d, d, 1)
    return X.T @ X, np.random.default_rng(2).random(3 * d) @ X


@pytest.mark.parametrize("profile", ["live", "paper"])
@pytest.mark.parametrize(
    ("A", "b", "n_eff", "why"),
    [
        (1e-320 * np.eye(3), np.zeros(3), None, "counts for 1e-320"),
        (np.eye(3), np.full(3, 1e154), None, "predicts rewards of"),
        (np.eye(3), np.full(3, 1e308), None, "predicts rewards of"),
        (np.diag([1e-10, 1.0, 1.0]), np.array([1e-3, 0.0, 0.5]), None, "predicts rewards of"),
        (1e308 * np.eye(3), np.zeros(3), None, "counts for 1e+308"),
        (np.diag([1e300, 1.0, 1.0]), np.zeros(3), None, "mean square of 1e+300"),
        (np.diag([1e-300, 1.0, 1.0]), np.zeros(3), None, "positive definite"),
        (np.ones((3, 3)), np.ones(3), None, "positive definite"),
        (np.diag([-1.0, 1.0, 1.0]), np.zeros(3), None, "positive definite"),
        (np.eye(3) + np.eye(3, k=1), np.zeros(3), None, "symmetric"),
        (1e-6 * (np.eye(3) + np.eye(3, k=1)), np.zeros(3), None, "symmetric"),
        (np.full((3, 3), np.nan), np.zeros(3), None, "finite"),
        (np.eye(3), np.array([0.0, np.inf, 0.0]), None, "finite"),
        (np.eye(4), np.zeros(4), None, "the router has 3 dimensions"),
        (np.eye(1), np.zeros(1), None, "the router has 3 dimensions"),
        (np.eye(3), np.zeros(3), 1e-300, "counts for 1e-300"),
        (np.diag([1e7, 1e-6, 1.0]), np.zeros(3), 1e9, "positive definite"),
    ],
)
def test_a_prior_that_no_rewards_can_have_made_is_refused(
    profile: str, A: Array, b: Array, n_eff: float | None, why: str
) -> None:
    prior = Prior(A=A, b=b, n_eff=n_eff)
    with pytest.raises(UnusablePrior, match=re.escape(why)) as refused:
        Played.start(declaration(3, profile, prior=prior))
    assert refused.value.reason == "wrong_prior" and "'m'" in str(refused.value)


@pytest.mark.parametrize(
    ("A", "b", "mean_usd", "n_eff", "why"),
    [
        (np.eye(3), np.full(3, 1e154), 1e-3, None, "expects bills whose logarithm"),
        (np.eye(3), np.array([0.0, 0.0, 800.0]), 1e-3, None, "expects bills whose logarithm"),
        (np.eye(3), np.array([0.0, 0.0, -800.0]), 1e-3, None, "expects bills whose logarithm"),
        # Wide between prompts: the mean of the lognormal overflows, not that of its logarithm.
        (np.eye(3), np.array([300.0, 0.0, -7.0]), 1e-3, 1e6, "expects bills whose logarithm"),
        (np.diag([0.0, 0.0, 1.0]), np.array([1e6, 0.0, -7.0]), 1e-3, None, "expects bills whose"),
        (1e-320 * np.eye(3), np.zeros(3), 1e-3, None, "counts for 1e-320"),
        (np.eye(3), -7.0 * np.eye(3)[-1], 1e-3, 1e-310, "counts for 1e-310"),
        (np.eye(3), -7.0 * np.eye(3)[-1], 1e-3, 1e300, "counts for 1e+300"),
    ],
)
def test_a_cost_prior_that_no_bills_can_have_made_is_refused(
    A: Array, b: Array, mean_usd: float, n_eff: float | None, why: str
) -> None:
    prior = CostPrior(A, b, mean_usd, n_eff)
    with pytest.raises(UnusablePrior, match=re.escape(why)) as refused:
        Played.start(declaration(3, cost_prior=prior))
    assert refused.value.reason == "wrong_prior" and "'m'" in str(refused.value)


def test_a_mean_cost_beyond_what_the_list_price_allows_is_refused() -> None:
    prior = CostPrior(np.eye(3), -15.0 * np.eye(3)[-1], 900.0)
    with pytest.raises(UnusablePrior, match=r"expects \$900 a call"):
        Played.start(declaration(3, cost_prior=prior, price=Price(1e-6, 1e-6)))


def test_costs_of_a_model_that_is_nearly_free_are_expected_as_its_prior_says() -> None:
    prior = CostPrior(200.0 * np.eye(3), -200.0 * 20.0 * np.eye(3)[-1], math.exp(-20.0))
    engine = Played.start(declaration(3, cost_prior=prior, price=Price(1e-9, 0.0)))
    record = engine.decide("r", np.array([0.0, 0.0, 1.0]), now=0.0, allowed_models={"m"})
    assert record.expected_cost_usd == pytest.approx(math.exp(-20.0), rel=0.1)


@pytest.mark.parametrize("profile", ["live", "paper"])
def test_a_genuine_prior_of_385_dimensions_works(profile: str) -> None:
    A, b = genuine(385)
    prior = Prior(A=A, b=b, n_eff=1000.0)
    engine = Played.start(declaration(385, profile, prior=prior, gamma=1.0))
    assert_agree(engine, prior, play(engine))


def test_a_refused_newcomer_changes_nothing() -> None:
    engine = Played.start(declaration(3))
    play(engine)
    before, config = portable.pack(engine.state, {}), engine.state.config
    bad = Prior(A=np.eye(3), b=np.full(3, 1e154))
    models = {**config.models, "third": ModelConfig(PRICES["m"], bad)}
    changes = engine.apply(Redeclared(replace(config, models=models)), 100.0)
    assert isinstance(changes.refusal, UnusablePrior) and "'third'" in str(changes.refusal)
    assert portable.pack(engine.state, {}) == before
