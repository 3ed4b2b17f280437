"""Faults that were found from outside: loops without an end, bills that lie about a price, weights
that were not told.
"""

from __future__ import annotations

import math
from operator import attrgetter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.played import Played
from router_state import errors
from router_state.config import ModelConfig, Price, RouterConfig
from router_state.kernel import Options
from router_state.kernel.learning.suspicion import ACCEPTED_AFTER
from router_state.packing import layout
from router_state.profiles import knobs_for
from router_state.state import invariants, portable
from tests.router_state.core_reference import context, freeze
from tests.router_state.core_reference import declaration as paper_declaration
from tests.router_state.live_world import D, declaration, world

CONSTANT_SCORES, CONSTANT_COSTS = (
    (-0.09100973495245385, 0.5384599023148396),
    (0.0002393133536337754, 0.0008010047447295831),
)


def test_the_dual_of_constant_contexts_is_found() -> None:
    scores, costs = np.tile(CONSTANT_SCORES, (7, 1)), np.tile(CONSTANT_COSTS, (7, 1))
    price = Options.of(scores, costs).price(target=0.0003205511953749522, start=1000.0)
    assert price is not None
    assert price == pytest.approx(
        (CONSTANT_SCORES[1] - CONSTANT_SCORES[0]) / (CONSTANT_COSTS[1] - CONSTANT_COSTS[0])
    )


@given(
    st.integers(1, 128),
    st.integers(1, 64),
    st.sampled_from(["constant", "steps", "wide", "equal", "zero"]),
    st.floats(-9.0, 3.0),
    st.sampled_from([0.0, 1e-300, 1.0, 1e3, 1e15, math.inf]),
    st.integers(0, 2**32 - 1),
)
def test_the_dual_of_degenerate_windows_takes_a_bounded_number_of_steps(
    n: int, K: int, kind: str, exponent: float, start: float, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    scores, costs = {
        "constant": lambda: (
            np.tile(rng.normal(size=K), (n, 1)),
            np.tile(rng.lognormal(size=K) * 1e-3, (n, 1)),
        ),
        "steps": lambda: (rng.integers(0, 3, (n, K)) / 2.0, rng.integers(0, 3, (n, K)) * 1e-3),
        "wide": lambda: (rng.normal(size=(n, K)), 10.0 ** rng.uniform(-9.0, 3.0, (n, K))),
        "equal": lambda: (np.ones((n, K)), np.full((n, K), 1e-3)),
        "zero": lambda: (np.zeros((n, K)), np.zeros((n, K))),
    }[kind]()
    target = 10.0**exponent
    price = Options.of(scores, costs).price(target=target, start=start)
    cheapest = costs.min(1).mean()
    if price is None:
        assert cheapest >= target * (1 - 1e-9)
        return
    beyond = price * (1 + 1e-9) + 1e-9
    winners = costs[np.arange(n), (scores - beyond * costs).argmax(1)].mean()
    assert winners <= max(target, cheapest) * (1 + 1e-6)


def test_a_budget_that_is_hardly_a_number_is_solved_too() -> None:
    engine = Played.start(declaration(5e-324))
    for i in range(40):
        engine.decide(str(i), np.ones(D), now=float(i))
        engine.settle(str(i), cost_usd=1e-4)
    invariants.check(engine.state, engine.records)


def mean_costs(engine: Played) -> dict[str, float]:
    """Return what a call of each model is expected to cost."""
    return {arm.name: arm.costs.mean_usd for arm in engine.state.arms}


def settled(late: int = 100) -> tuple[Played, str]:
    """Return an engine after 600 requests, and the model of its last one."""
    w = world(late=late)
    w.play(600)
    return w.engine, w.chosen[-1]


@pytest.mark.parametrize("cost", [0.0, 1e-12])
def test_two_bills_of_nothing_do_not_make_a_model_free(cost: float) -> None:
    engine, model = settled()
    waiting = [
        i for i, record in engine.records.items() if record.bill is None and record.model == model
    ]
    before = mean_costs(engine)[model]
    for request_id in waiting[:2]:
        engine.settle(request_id, cost_usd=cost)
    assert mean_costs(engine)[model] > before / 12.0
    if cost == 0.0:
        assert mean_costs(engine)[model] > 0.9 * before
        assert not engine.take_alerts()


def test_bills_of_nothing_say_what_they_say_in_the_mean() -> None:
    w = world(late=20)
    w.play(400)
    free = np.random.default_rng(5)
    w.factor = lambda model: 0.0 if free.random() < 0.3 else 1.0
    w.play(1500)
    assert w.play(1000) <= 6e-4 * 1.1
    assert not [alert for alert in w.alerts if alert.direction == "down"]


def test_a_detector_does_not_look_at_bills_of_nothing() -> None:
    w = world()
    w.play(100)
    costs = w.engine.state.arms["cheap"].costs
    before = attrgetter(*layout.WATCHED)(costs.detector)
    found = [costs.observe(0.0, np.ones(D), known=0.0, now=0.0) for _ in range(100)]
    assert found == [None] * 100
    assert attrgetter(*layout.WATCHED)(costs.detector) == before


@pytest.mark.parametrize(("before", "after"), [(0.0, 1.0), (1.0, 0.0)])
def test_late_bills_of_a_time_when_a_model_was_free_teach_nothing_of_its_price(
    before: float, after: float
) -> None:
    def priced(per_m: float) -> RouterConfig:
        models = {
            "a": ModelConfig(Price(per_m, per_m), onboarding_pulls=0),
            "b": ModelConfig(Price(9.0, 9.0), onboarding_pulls=0),
        }
        return RouterConfig(models, 1e-4, D, "live", knobs_for("live"))

    engine = Played.start(priced(before))
    for i in range(100):
        engine.decide(str(i), np.ones(D), now=float(i))
    engine.configure(priced(after), now=100.0)
    expected = mean_costs(engine)["a"]
    for i in range(100):
        if engine.records[str(i)].model == "a":
            engine.settle(str(i), cost_usd=before * 1e-3)
    assert mean_costs(engine)["a"] == expected
    invariants.check(engine.state, engine.records)


def test_a_revision_after_an_accepted_drift_weighs_what_is_left_of_its_observation() -> None:
    w = world(None)
    w.play(400)
    first = next(
        i
        for i, r in w.engine.records.items()
        if r.model == "middle" and r.label is not None and int(i) > 300
    )
    w.quality = lambda model, mean: 0.2 if model == "middle" else mean
    arms = w.engine.state.arms
    k = arms.row["middle"]
    for _ in range(1000):
        suspicion = arms[k].suspicion
        if suspicion is not None and suspicion.count >= ACCEPTED_AFTER:
            break
        w.play(1)
        w.engine.decide(
            f"m{len(w.spent)}", np.ones(D), now=float(len(w.spent)), allowed_models=["middle"]
        )
        w.engine.learn(f"m{len(w.spent)}", reward=0.2)
    label = w.engine.records[first].label
    assert label is not None
    for _ in range(1000):
        if arms[k].suspicion is None:
            break
        w.engine.decide("last", np.ones(D), now=1e4, allowed_models=["middle"])
        w.engine.learn("last", reward=0.2)
        w.engine.records.pop("last")
    before = arms[k].rewards.b()
    w.engine.learn(first, reward=0.0, revision=5)
    x, moved = w.engine.records[first].x, arms[k].rewards.b() - before
    assert x is not None
    weight = float(moved @ x / (x @ x)) / -label.reward
    assert 0.0 < weight < 0.1


def test_the_mean_of_the_paper_s_pacer_stays_a_mean_of_costs_though_bills_come_late() -> None:
    engine = Played.start(paper_declaration(budget=1e-3))
    rng, means = np.random.default_rng(0), []
    for i in range(600):
        engine.decide(str(i), context(*rng.normal(size=3)), now=float(i))
        if i >= 100:
            engine.settle(str(i - 100), cost_usd=1e-5)
        means.append(engine.state.pacer.terms()["cost_ema_usd"])
    assert min(means) > 0.0
    portable.unpack(portable.pack(engine.state, {}))


@pytest.mark.parametrize("profile", ["paper", "live"])
def test_a_score_that_is_not_finite_refuses_and_changes_nothing(profile: str) -> None:
    engine = Played.start(paper_declaration(profile=profile))
    for i in range(20):
        engine.decide(str(i), context(0.1, 0.2, 0.3), now=float(i))
    engine.state.arms[1].rewards.own()  # others may share its numbers
    engine.state.arms[1].rewards.theta[0] = math.nan
    before = freeze(engine)
    with pytest.raises(errors.NonFiniteInput):
        engine.decide("next", context(0.1, 0.2, 0.3), now=21.0)
    assert freeze(engine) == before


@pytest.mark.parametrize("size", [1.1e4, 1e200])
def test_features_out_of_all_proportion_are_a_wrong_context(size: float) -> None:
    engine = Played.start(paper_declaration())
    with pytest.raises(errors.WrongContext, match="norm"):
        engine.decide("r", context(size, 0.0, 0.0), now=0.0)


@pytest.mark.parametrize("constant", [True, False])
def test_without_forgetting_the_inverse_stays_the_inverse(constant: bool) -> None:
    engine, rng = (
        Played.start(paper_declaration({"only": Price(1.0, 1.0)}, budget=None, gamma=1.0)),
        np.random.default_rng(0),
    )
    A, b = np.eye(4), np.zeros(4)
    for i in range(20_000):
        x = context(0.5, 0.25, -1.0) if constant else context(*rng.normal(size=3))
        engine.decide("r", x, now=0.0)
        engine.learn("r", reward=(i % 10) / 10)
        engine.records.pop("r")
        A, b = A + np.outer(x, x), b + x * ((i % 10) / 10)
    arms = engine.state.arms
    assert np.abs(arms[0].rewards.A_inv() @ A - np.eye(4)).max() < 1e-9
    np.testing.assert_allclose(arms[0].rewards.theta, np.linalg.solve(A, b), atol=1e-9)
