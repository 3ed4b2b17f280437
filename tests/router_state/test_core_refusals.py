"""What is refused leaves no trace: the state is the same to the bit, and no NaN ever enters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.played import Played
from router_state import errors
from router_state.config import ModelConfig, Price, Prior, RouterConfig
from router_state.profiles import knobs_for
from router_state.state import invariants
from tests.router_state.core_reference import CHEAP, MIDDLE, context, declaration, freeze

NAN, INF = float("nan"), float("inf")
X = context(1.0, 2.0, 3.0)


def in_motion(profile: str = "paper") -> Played:
    """Return an engine with requests in every stage: decided, settled, learned, expired, of a
    retired model.
    """
    engine = Played.start(declaration(profile=profile, commitment_ttl_seconds=5.0))
    for n in range(12):
        engine.decide(
            str(n),
            context(n % 4, -1, n / 7),
            now=float(n),
            allowed_models=[("cheap", "middle", "dear")[n % 3]],
        )
    for n in range(0, 12, 2):
        engine.settle(str(n), cost_usd=1e-3 * n)
    for n in range(0, 12, 3):
        engine.learn(str(n), reward=n / 12)
    engine.expire(now=9.0)
    engine.configure(
        declaration(
            {"cheap": CHEAP, "middle": MIDDLE}, profile=profile, commitment_ttl_seconds=5.0
        ),
        now=12.0,
    )
    return engine


def with_prior(engine: Played, **prior: Any) -> RouterConfig:
    models = {"cheap": ModelConfig(CHEAP), "new": ModelConfig(MIDDLE, Prior(**prior))}
    profile = engine.state.config.profile
    return RouterConfig(models, 5e-4, 4, profile, knobs_for(profile))


REFUSALS: dict[str, tuple[type[errors.RouterStateError], Callable[[Played], Any]]] = {
    "context too short": (errors.WrongContext, lambda e: e.decide("new", np.ones(3), now=1.0)),
    "context too long": (errors.WrongContext, lambda e: e.decide("new", np.ones(5), now=1.0)),
    "context of two dimensions": (
        errors.WrongContext,
        lambda e: e.decide("new", np.ones((4, 1)), now=1.0),
    ),
    "context without bias": (
        errors.WrongContext,
        lambda e: e.decide("new", np.array([1.0, 1.0, 1.0, 2.0]), now=1.0),
    ),
    "bias NaN": (
        errors.WrongContext,
        lambda e: e.decide("new", np.array([1.0, 1.0, 1.0, NAN]), now=1.0),
    ),
    "context a number": (
        errors.WrongContext,
        lambda e: e.decide("new", np.array(1.0), now=1.0),
    ),
    "context of two rows": (
        errors.WrongContext,
        lambda e: e.decide("new", np.ones((2, 4)), now=1.0),
    ),
    "context NaN": (errors.NonFiniteInput, lambda e: e.decide("new", context(NAN, 0, 0), now=1.0)),
    "context infinite": (
        errors.NonFiniteInput,
        lambda e: e.decide("new", context(0, INF, 0), now=1.0),
    ),
    "context with both infinities": (
        errors.NonFiniteInput,
        lambda e: e.decide("new", context(-INF, INF, 0), now=1.0),
    ),
    "no allowed model": (
        errors.NoAllowedModel,
        lambda e: e.decide("new", X, now=1.0, allowed_models=["other"]),
    ),
    "allowed model retired": (
        errors.NoAllowedModel,
        lambda e: e.decide("new", X, now=1.0, allowed_models=["dear"]),
    ),
    "nobody allowed": (
        errors.NoAllowedModel,
        lambda e: e.decide("new", X, now=1.0, allowed_models=[]),
    ),
    "nobody affordable": (
        errors.NoAffordableModel,
        lambda e: e.decide("new", X, now=1.0, max_price_per_1k=1e-9),
    ),
    "bill of nobody": (errors.UnknownRequest, lambda e: e.settle("other", cost_usd=0.1)),
    "bill NaN": (errors.NonFiniteInput, lambda e: e.settle("1", cost_usd=NAN)),
    "bill infinite": (errors.NonFiniteInput, lambda e: e.settle("1", cost_usd=INF)),
    "bill negative": (errors.CostOutOfRange, lambda e: e.settle("1", cost_usd=-1e-12)),
    "bill beyond reason": (errors.CostOutOfRange, lambda e: e.settle("1", cost_usd=1000.5)),
    "bill without amount": (errors.CostOutOfRange, lambda e: e.settle("1")),
    "revised bill NaN": (errors.NonFiniteInput, lambda e: e.settle("0", cost_usd=NAN, revision=3)),
    "tokens negative": (errors.CostOutOfRange, lambda e: e.settle("1", tokens=(-1_000, 10))),
    "tokens beyond reason": (
        errors.CostOutOfRange,
        lambda e: e.settle("1", tokens=(10**12, 10**12)),
    ),
    "reward of nobody": (errors.UnknownRequest, lambda e: e.learn("other", reward=0.5)),
    "reward NaN": (errors.NonFiniteInput, lambda e: e.learn("1", reward=NAN)),
    "reward infinite": (errors.NonFiniteInput, lambda e: e.learn("1", reward=-INF)),
    "reward above one": (errors.RewardOutOfRange, lambda e: e.learn("1", reward=1.0 + 1e-9)),
    "reward below zero": (errors.RewardOutOfRange, lambda e: e.learn("1", reward=-0.1)),
    "revised reward NaN": (errors.NonFiniteInput, lambda e: e.learn("0", reward=NAN, revision=4)),
    "other dimensions": (
        errors.InvalidConfig,
        lambda e: e.configure(declaration(dimensions=5), now=1.0),
    ),
    "other profile": (
        errors.InvalidConfig,
        lambda e: e.configure(
            declaration(profile="live" if e.state.config.profile == "paper" else "paper"), now=1.0
        ),
    ),
    "prior of another shape": (
        errors.UnusablePrior,
        lambda e: e.configure(with_prior(e, A=np.eye(3), b=np.ones(3)), now=1.0),
    ),
    "prior NaN": (
        errors.UnusablePrior,
        lambda e: e.configure(with_prior(e, A=np.eye(4) * NAN, b=np.ones(4)), now=1.0),
    ),
    "prior lopsided": (
        errors.UnusablePrior,
        lambda e: e.configure(with_prior(e, A=np.triu(np.ones((4, 4))), b=np.ones(4)), now=1.0),
    ),
    "prior indefinite": (
        errors.UnusablePrior,
        lambda e: e.configure(with_prior(e, A=-np.eye(4), b=np.ones(4)), now=1.0),
    ),
    "prior like nobody": (
        errors.InvalidConfig,
        lambda e: e.configure(with_prior(e, like="other"), now=1.0),
    ),
}


@pytest.mark.parametrize("profile", ["paper", "live"])
@pytest.mark.parametrize("name", REFUSALS)
def test_a_refusal_leaves_the_state_as_it_was(name: str, profile: str) -> None:
    error, attempt = REFUSALS[name]
    engine = in_motion(profile)
    before = freeze(engine)
    with pytest.raises(error) as refusal:
        attempt(engine)
    assert freeze(engine) == before
    assert refusal.value.reason == error.reason
    assert str(refusal.value)
    invariants.check(engine.state, engine.records)


def test_a_router_without_models_refuses_and_one_whose_models_all_retired_too() -> None:
    for engine in (Played.start(declaration({})), Played.start(declaration())):
        engine.configure(declaration({}), now=1.0)
        before = freeze(engine)
        with pytest.raises(errors.EmptyPortfolio):
            engine.decide("a", X, now=2.0)
        assert freeze(engine) == before


def test_a_reward_whose_context_is_lost_is_refused_until_somebody_brings_it() -> None:
    engine = in_motion()
    engine.records["1"].x = None
    before = freeze(engine)
    with pytest.raises(errors.ContextLost):
        engine.learn("1", reward=0.5)
    assert freeze(engine) == before
    engine.learn("1", reward=0.5, x=context(1, -1, 1 / 7))
    assert engine.records["1"].label is not None


@given(
    st.lists(st.floats(-100.0, 100.0) | st.sampled_from([NAN, INF, -INF]), min_size=3, max_size=3),
    st.floats(),
    st.floats(),
)
def test_no_number_can_poison_the_state(entries: list[float], cost: float, reward: float) -> None:
    engine = in_motion()
    for attempt in (
        lambda: engine.decide("new", context(*entries), now=20.0),
        lambda: engine.settle("new" if "new" in engine.records else "1", cost_usd=cost),
        lambda: engine.learn("new" if "new" in engine.records else "1", reward=reward),
        lambda: engine.learn("0", reward=reward, revision=1),
    ):
        before = freeze(engine)
        try:
            attempt()
        except errors.RouterStateError:
            assert freeze(engine) == before
    for arm in engine.state.arms:
        assert np.isfinite(arm.rewards.kept).all()
        assert np.isfinite(arm.costs.regression.kept).all()
    assert np.isfinite(
        [engine.state.spend_usd, engine.state.lambda_t, engine.state.committed_usd]
    ).all()


@pytest.mark.parametrize(
    "settings",
    [
        {"gamma": 0.0},
        {"gamma": 1.5},
        {"gamma": NAN},
        {"ridge": 0.0},
        {"alpha": -1.0},
        {"epsilon": 1.5},
        {"n_eff": 0.0},
        {"lambda_c": -0.1},
        {"unheard_of": 1.0},
    ],
)
def test_knobs_out_of_range_are_refused(settings: dict[str, float]) -> None:
    with pytest.raises(errors.InvalidConfig):
        knobs_for("paper", settings)


@pytest.mark.parametrize(
    "settings",
    [
        *(
            {name: value}
            for name in ("alpha", "lambda_c", "ridge", "n_eff", "v_max", "commitment_ttl_seconds")
            for value in (NAN, INF)
        ),
        {"v_max": 0.0},
        {"v_max": 0.99},
        {"onboarding_pulls": -1},
        {"commitment_ttl_seconds": 0.0},
        {"commitment_ttl_seconds": -1.0},
        {"epsilon": NAN},
        {"t_adapt": 1e9},
    ],
)
def test_knobs_that_are_no_numbers_or_endless_are_refused(settings: dict[str, float]) -> None:
    with pytest.raises(
        errors.InvalidConfig, match="finite" if "t_adapt" not in settings else "n_eff"
    ):
        knobs_for("paper", settings)


@pytest.mark.parametrize("size", [1.1e4, 1e6, 1e20, 1.3e154, 1e200])
def test_a_context_out_of_all_proportion_is_refused(size: float) -> None:
    engine = Played.start(declaration())
    before = freeze(engine)
    with pytest.raises(errors.WrongContext, match="norm"):
        engine.decide("a", context(0, size, 1), now=0.0)
    assert freeze(engine) == before


@pytest.mark.parametrize("budget", [0.0, -1.0, NAN, INF])
def test_a_budget_that_is_none_is_refused(budget: float) -> None:
    with pytest.raises(errors.InvalidConfig):
        declaration(budget=budget)


def test_an_unknown_profile_is_refused_with_the_known_ones() -> None:
    with pytest.raises(errors.InvalidConfig, match="paper, live"):
        knobs_for("papers")


def test_a_price_of_nothing_is_a_price() -> None:
    engine = Played.start(declaration({"free": Price(0.0, 0.0), "middle": MIDDLE}))
    record = engine.decide("a", X, now=0.0)
    assert record.candidates is not None
    assert record.candidates.penalty[0] == 0.0
    assert 0.0 <= record.candidates.expected_cost_usd[0] < 1e-8
