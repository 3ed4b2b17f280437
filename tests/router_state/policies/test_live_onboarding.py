"""A model joins: it gets its pulls, but never at the budget's expense."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from router_state.kernel.learning.suspicion import Suspicion
from router_state.pacing.dollar_dual import DollarDual
from router_state.policies import choosing
from tests.router_state.live_world import D, declaration, world


def test_a_good_newcomer_is_found_and_the_budget_holds() -> None:
    w = world(models=("cheap", "dear"))
    w.play(800)
    w.engine.configure(declaration(cold=("middle",)), now=800.0)
    assert w.play(600) == pytest.approx(6e-4, rel=0.1)
    assert w.chosen[-200:].count("middle") > 60
    assert [arm.pulls_left for arm in w.engine.state.arms] == [0, 0, 0]


def test_a_bad_newcomer_is_dropped_after_its_pulls() -> None:
    w = world(models=("cheap", "dear"))
    w.quality = lambda model, mean: 0.3 if model == "middle" else mean
    w.play(800)
    w.engine.configure(declaration(cold=("middle",), onboarding_pulls=20), now=800.0)
    w.play(1000)
    assert w.reasons.count("onboarding") == 20
    assert w.chosen[-300:].count("middle") <= 3


def test_a_newcomer_that_costs_a_hundred_budgets_is_not_pulled() -> None:
    w = world(1e-4, models=("cheap", "middle"))
    w.play(500)
    w.engine.configure(declaration(1e-4, cold=("dear",)), now=500.0)
    assert w.play(1000) == pytest.approx(1e-4, rel=0.07)
    assert "dear" not in w.chosen


def test_what_a_call_may_cost_that_is_made_to_learn_is_what_the_debt_leaves_of_a_horizon() -> None:
    state = world(6e-4).engine.state
    assert isinstance(state.pacer, DollarDual)
    for debt, expected in ((20.0, 80.0), (120.0, -20.0)):
        state.pacer.debt.usd = debt * 6e-4
        assert state.pacer.allowance_usd == pytest.approx(expected * 6e-4)
    assert world(None).engine.state.pacer.allowance_usd == math.inf


def test_a_newcomer_starts_from_what_is_typical_of_its_portfolio() -> None:
    w = world()
    w.play(300)
    met = np.mean([arm.rewards.theta for arm in w.engine.state.arms], axis=0)
    w.engine.configure(declaration(models=("cheap", "middle")), now=300.0)
    w.engine.configure(declaration(models=("cheap", "middle")), now=300.0)
    other = world(models=("cheap", "dear"))
    other.engine.configure(declaration(cold=("middle",)), now=0.0)
    arms = other.engine.state.arms
    assert arms[2].rewards.theta == pytest.approx(arms.rewards.mean)
    low, high = np.sort([arms[0].rewards.theta, arms[1].rewards.theta], axis=0)
    assert low[-1] - 0.1 < arms[2].rewards.theta[-1] < high[-1]
    assert met.shape == (D,)


@pytest.mark.parametrize("budget", [1e-4, 6e-4, None])
def test_a_router_without_any_prior_explores_before_it_settles(budget: float | None) -> None:
    w = world(budget, cold=("cheap", "middle", "dear"))
    w.play(2500)
    if budget is None:
        assert set(w.chosen[:200]) == {"cheap", "middle", "dear"}
    else:
        assert np.mean(w.spent[1000:]) == pytest.approx(budget, rel=0.1)
        assert "middle" in w.chosen[:400]


def test_one_newcomer_is_pulled_at_a_time() -> None:
    w = world(None, cold=("middle", "dear"), onboarding_pulls=20)
    w.play(30)
    arms = w.engine.state.arms
    candidates = w.engine.decide("asked", np.ones(D), now=30.0).candidates
    assert candidates is not None
    for arm in arms:
        arm.pulls_left = 0 if arm.name == "cheap" else 5
    found = choosing.options(arms, candidates, [0, 1, 2], math.inf)
    assert [option.reason for option in found] == ["onboarding"]


def test_a_suspect_that_seems_to_have_recovered_counts_as_good_as_the_best() -> None:
    w = world(6e-4)
    w.play(400)
    arms = w.engine.state.arms
    arms.suspect_of(arms["cheap"], Suspicion(-0.5, 3, 0.0, 0.0, 400))
    candidates = w.engine.decide("asked", np.ones(D), now=400.0).candidates
    assert candidates is not None
    mean, penalty = candidates.mean, candidates.penalty
    k = arms.row["cheap"]
    best = max(m - p for m, p in zip(mean, penalty, strict=True))
    for evidence, reward in ((0.0, mean[k]), (0.1, max(mean))):
        arms["cheap"].suspicion = Suspicion(-0.5, 3, evidence, 0.0, 400)
        [option] = choosing.options(arms, candidates, [0, 1, 2], math.inf)
        assert (option.k, option.reason) == (k, "probe")
        assert option.gap == pytest.approx(best - (reward - penalty[k]))


def test_a_newcomer_that_the_budget_has_no_place_for_is_an_alert_that_says_what_it_would_take() -> (
    None
):
    w = world(1e-4, models=("cheap", "middle"))
    w.play(500)
    w.engine.configure(declaration(1e-4, cold=("dear",)), now=500.0)
    w.play(900)
    alert = next(a for a in w.alerts if a.kind == "newcomer_unaffordable")
    assert (alert.model, alert.direction) == ("dear", "up")
    evidence: dict[str, Any] = {**alert.evidence}
    assert alert.size == pytest.approx(evidence["expected_cost_usd"] / 1e-4)
    assert 1e-4 < evidence["needed_budget_usd_per_request"] < evidence["expected_cost_usd"]
    assert [a.kind for a in w.alerts].count("newcomer_unaffordable") == 1
    found = w.engine.state.newcomers.found["dear"]
    w.engine.configure(declaration(100.0 * found.needed_budget_usd, cold=("dear",)), now=1400.0)
    w.play(100)
    assert w.engine.state.newcomers.found == {}


@pytest.mark.parametrize("budget", [6e-4, 1.0, None])
def test_models_that_are_called_are_no_such_newcomers(budget: float | None) -> None:
    w = world(budget, cold=("cheap", "middle"), models=("cheap", "middle"))
    w.play(1000)
    assert "newcomer_unaffordable" not in [a.kind for a in w.alerts]
    w.engine.configure(declaration(budget, models=("cheap",)), now=1000.0)
    w.play(20)
    assert w.engine.state.newcomers.found == {}
