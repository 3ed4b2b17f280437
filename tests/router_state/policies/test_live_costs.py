"""What a call will cost: learned per prompt, hard to wreck, and quick to follow what nobody
announced.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from benchmarks.played import Played
from router_state.arms import Arms
from router_state.caps.bucket import Cap
from router_state.changes import Journal
from router_state.config import ModelConfig, Price, RouterConfig, Vector
from router_state.costs import believed
from router_state.errors import CapReached, DamagedState
from router_state.events import Asked
from router_state.kernel import (
    LIMIT,
    LOGNORMAL_BILLS,
    MEMORY,
    PRICES,
    TAILS,
    WIDE,
    CostModel,
    estimate,
)
from router_state.pacing.scoring import candidates
from router_state.policies.by_profile import POLICIES
from router_state.profiles import knobs_for
from router_state.state import invariants
from tests.router_state.live_world import D, declaration, world
from tests.router_state.router_states import buckets_of

PRICE = Price(1.0, 1.0)


def test_expected_costs_follow_the_prompt() -> None:
    w = world()
    w.play(2000)
    few, many = (
        w.engine.decide(name, np.array([0.0, f, 0.0, 0.0, 1.0]), now=2000.0)
        for name, f in (("few", -1.0), ("many", 1.0))
    )
    assert few.candidates is not None and many.candidates is not None
    low, high = few.candidates.expected_cost_usd[1], many.candidates.expected_cost_usd[1]
    assert high / low == pytest.approx(np.exp(0.8), rel=0.25)


def billed(counts: dict[str, int], ratio: float = 0.2) -> Arms:
    """Return arms a, b and c after so many bills, each of this many times its list price."""
    arms = Arms(D, Journal())
    for name in "abc":
        arms.add(name, price=PRICE, A=np.eye(D), b=np.zeros(D), now_t=0, pulls=0)
    rng = np.random.default_rng(0)
    for name in [name for name, count in counts.items() for _ in range(count)]:
        x = np.append(0.5 * rng.standard_normal(D - 1), 1.0)
        bill(arms[name].costs, ratio * math.exp(0.3 * rng.standard_normal()), x)
        if arms.bills.due:
            estimate(arms.bills, arms.priced)
    return arms


def bill(costs: CostModel, ratio: float, x: Vector) -> bool:
    """Teach a model one bill; tell whether it gave a shift away."""
    return costs.observe(ratio, x, known=0.0, now=0.0) is not None


def test_what_two_terse_models_cost_says_little_of_a_third() -> None:
    arms = billed({"a": 15, "b": 15})
    a, _, c = (
        arms[name].costs.predict(float(arms[name].costs.regression.theta[-1])) for name in "abc"
    )
    assert a == pytest.approx(0.2, rel=0.25)
    assert c > 1.5 * a


def test_few_bills_are_expected_to_be_more_than_their_median_and_many_are_not() -> None:
    few, many = (billed({"a": count}).find("a") for count in (1, 400))
    assert few is not None and many is not None
    assert few.costs.level > 0.1
    assert 0.0 < many.costs.level < 0.01
    arms = billed({})
    arms.reprice(arms["a"], Price(0.0, 0.0))
    assert arms["a"].costs.level == 0.0


def test_one_dear_bill_does_not_rule_a_model_out() -> None:
    arms = billed({"a": 40, "b": 40})
    x = np.append(np.zeros(D - 1), 1.0)
    costs = arms["c"].costs
    for ratio in (0.2, 6.0):
        bill(costs, ratio, x)
    # The dear one counts in the level; that such bills come again is not taken from one alone.
    assert costs.calibration > 2.0
    assert costs.factor < 0.75 * costs.calibration
    for _ in range(400):
        bill(costs, 0.2, x)
    assert costs.factor == pytest.approx(costs.calibration, rel=0.02)


@pytest.mark.parametrize("n", [0, 1, 40])
def test_the_factor_is_a_mean_in_which_a_lognormal_s_counts_for_twenty_bills(n: int) -> None:
    costs = billed({"a": n})["a"].costs
    lognormal, own = math.exp(0.5 * costs.prior.noise), costs.bills
    assert own == n
    assert costs.factor * (LOGNORMAL_BILLS + own) == pytest.approx(
        LOGNORMAL_BILLS * lognormal + own * costs.calibration
    )


def test_a_declared_cost_is_expected_as_declared() -> None:
    arms = billed({"a": 40, "b": 40})
    costs = arms["c"].costs
    believed.start(costs, None, 0.7 * costs.list_price, tokens=0.0)
    at = float(costs.regression.theta @ arms.bills.center)
    assert costs.predict(at) == pytest.approx(0.7)


def test_the_dual_and_the_choice_expect_the_same_costs() -> None:
    w = world()
    for requests in (1, 20, 200):
        w.play(requests)
        state, x = w.engine.state, np.array([0.3, -0.2, 0.0, 0.1, 1.0])
        window = state.arms.window
        assert window is not None
        window.push(x, None)
        _, costs = candidates(window, state.arms).arrays()
        scored = POLICIES["live"].look(state, Asked("r", x)).expected_cost_usd
        last = costs[window.next - 1] / PRICES[window.next - 1]
        assert last == pytest.approx(scored, rel=1e-5)


def test_a_bill_a_thousand_times_too_high_is_charged_in_full_and_teaches_little() -> None:
    w = world()
    w.play(1000)
    state, record = (
        w.engine.state,
        w.engine.decide("outlier", np.ones(D), now=1000.0, allowed_models=["middle"]),
    )
    k = state.arms.row[record.model]
    mean, spend, debt = state.arms[k].costs.ratio, state.spend_usd, state.pacer.terms()["debt_usd"]
    w.engine.settle("outlier", cost_usd=1000 * record.expected_cost_usd)
    assert state.spend_usd - spend == pytest.approx(1000 * record.expected_cost_usd)
    assert state.pacer.terms()["debt_usd"] - debt == pytest.approx(999 * record.expected_cost_usd)
    assert mean < state.arms[k].costs.ratio < 1.1 * mean
    invariants.check(state, w.engine.records)


def test_an_outlier_does_not_lower_the_evidence_that_it_takes() -> None:
    w = world()
    w.play(1000)
    costs = w.engine.state.arms["cheap"].costs
    x, usual = np.append(np.zeros(D - 1), 1.0), costs.predict(float(costs.regression.theta[-1]))
    # Three of fifty times in a row are a new price.
    found = [bill(costs, times * usual, x) for times in (50.0, 50.0, 1.0, 1.0)]
    assert found == [False] * 4


@pytest.mark.parametrize("ratio", [5e-324, 2e-322, 1e-300, 1e-13, 1e300])
def test_a_bill_of_almost_nothing_has_a_logarithm(ratio: float) -> None:
    arms = Arms(D, Journal())
    arms.add("a", price=PRICE, A=np.eye(D), b=np.zeros(D), now_t=0, pulls=0)
    costs = arms["a"].costs
    for n in range(40):
        costs.observe(ratio, np.ones(D), known=0.5 * (n % 2), now=float(n))
        if arms.bills.due:
            estimate(arms.bills, arms.priced)
    assert np.isfinite(costs.regression.kept).all()
    assert math.isfinite(arms.bills.noise)
    assert math.isfinite(costs.expected(costs.regression.predict(np.ones(D)), 0.0))


@pytest.mark.parametrize("factor", [10.0, 0.1])
def test_a_silent_price_change_is_an_alert_and_in_the_expectations_soon_after(
    factor: float,
) -> None:
    w = world(late=30)
    w.play(1000)
    before = w.engine.state.arms[1].costs.ratio
    w.factor = lambda model: factor if model == "middle" else 1.0
    w.play(300)
    alert = next(a for a in w.news if a.signal == "cost")
    assert (alert.kind, alert.model, alert.direction) == (
        "drift",
        "middle",
        "up" if factor > 1.0 else "down",
    )
    assert alert.evidence["factor"] == pytest.approx(factor, rel=0.5)
    assert alert.since >= 1000.0
    assert alert.evidence["limit"] == LIMIT
    assert w.engine.state.arms[1].costs.ratio == pytest.approx(factor * before, rel=0.3)


def test_spend_is_back_at_the_budget_after_a_silent_rise() -> None:
    w = world(late=30)
    w.play(1000)
    w.factor = lambda model: 10.0 if model == "middle" else 1.0
    w.play(330)
    assert w.play(1500) <= 6e-4 * 1.05


def test_nothing_is_found_where_nothing_changed() -> None:
    w = world(seed=5)
    w.play(4000)
    assert w.news == []


def test_a_price_of_zero_is_free_until_bills_say_otherwise() -> None:
    free = {"free": ModelConfig(Price(0.0, 0.0), onboarding_pulls=0)}
    engine = Played.start(RouterConfig(free, 1e-4, D, "live", knobs_for("live")))
    assert engine.decide("a", np.ones(D), now=0.0).expected_cost_usd == 0.0
    for i in range(50):
        engine.decide(str(i), np.ones(D), now=0.0)
        engine.settle(str(i), cost_usd=2e-3)
    assert engine.decide("b", np.ones(D), now=0.0).expected_cost_usd == pytest.approx(2e-3, rel=0.3)
    priced = {"free": ModelConfig(Price(1.0, 1.0), onboarding_pulls=0)}
    engine.configure(RouterConfig(priced, 1e-4, D, "live", knobs_for("live")), now=1.0)
    assert engine.decide("c", np.ones(D), now=1.0).expected_cost_usd == pytest.approx(1e-3)


def test_a_bill_without_its_context_still_moves_the_mean() -> None:
    engine = Played.start(declaration())
    record = engine.decide("a", np.ones(D), now=0.0)
    record.x = None
    k = engine.state.arms.row[record.model]
    costs = engine.state.arms[k].costs
    before, knew = costs.ratio, costs.regression.theta.copy()
    engine.settle("a", cost_usd=record.expected_cost_usd / 3.0)
    assert costs.ratio < before
    assert (costs.regression.theta == knew).all()


def capped(usd: float, *, hard: bool) -> Played:
    config = declaration(None)
    caps = (Cap(usd, 3600.0, hard=hard),)
    return Played.start(RouterConfig(config.models, None, D, "live", config.knobs, {"caps": caps}))


def test_a_soft_cap_falls_back_to_the_cheapest_model_and_refills_with_time() -> None:
    engine = capped(0.05, hard=False)
    records = [engine.decide(str(i), np.ones(D), now=1.0) for i in range(200)]
    assert (records[-1].model, records[-1].reason) == ("cheap", "capped")
    assert [alert.kind for alert in engine.take_alerts()] == ["cap_reached"]
    later = engine.decide("later", np.ones(D), now=86_400.0)
    assert later.candidates is not None
    assert "capped" not in later.candidates.excluded


def test_a_hard_cap_refuses_what_it_cannot_pay_and_bills_below_expectation_give_it_back() -> None:
    engine = capped(0.05, hard=True)
    with pytest.raises(CapReached):
        for i in range(10_000):
            engine.decide(str(i), np.ones(D), now=1.0)
    decided = engine.state.seq
    for i in range(decided):
        engine.settle(str(i), cost_usd=0.0)
    engine.decide("again", np.ones(D), now=1.0)
    assert engine.state.seq == decided + 1


def test_a_cap_that_is_declared_anew_remembers_what_was_spent() -> None:
    engine = capped(0.05, hard=True)
    for i in range(2):
        engine.decide(str(i), np.ones(D), now=1.0)
    spent = 0.05 - buckets_of(engine.state)[0].left_usd
    config = engine.state.config
    engine.configure(
        RouterConfig(
            config.models, None, D, "live", config.knobs, {"caps": (Cap(0.1, 3600.0, hard=True),)}
        ),
        now=1.0,
    )
    assert buckets_of(engine.state)[0].left_usd == pytest.approx(0.1 - spent)


def two_kinds(kinds: list[int], factor: float, *, price: float = 1.0) -> tuple[Played, list[str]]:
    """Bill a single model's answers of prompts of kind 0 and 1, far apart; those of kind 1 cost
    `factor` times as much. From the 600th request on every bill is `price` times as high.
    """
    rng, d = np.random.default_rng(3), 9
    engine = Played.start(
        RouterConfig(
            {"m": ModelConfig(Price(1.0, 1.0))}, 1e-3, d, "live", knobs_for("live", {"seed": 1})
        )
    )
    centers = rng.normal(0.0, 1.5, (2, d - 1))
    for n, kind in enumerate(kinds):
        x = np.append(centers[kind] + rng.normal(size=d - 1), 1.0)
        engine.decide(str(n), x, now=float(n))
        bill = 1e-3 * factor**kind * (price if n >= 600 else 1.0) * rng.lognormal(0.0, 0.3)
        engine.settle(str(n), cost_usd=bill)
    return engine, [a.signal or a.kind for a in engine.take_alerts() if a.kind == "drift"]


@pytest.mark.parametrize("factor", [6.0, 1.0 / 6.0])
def test_another_kind_of_prompt_is_no_alarm_and_is_expected_at_its_cost_soon_after(
    factor: float,
) -> None:
    engine, alarms = two_kinds([0] * 600 + [1] * 40, factor)
    assert alarms == []
    expected = [record.expected_cost_usd for record in engine.records.values()]
    assert np.mean(expected[615:]) / np.mean(expected[500:600]) == pytest.approx(factor, rel=0.3)


@pytest.mark.parametrize("price", [6.0, 1.0 / 6.0])
@pytest.mark.parametrize("kinds", [[0] * 640, [0, 1] * 320, [0] * 300 + [1] * 340])
def test_another_price_is_an_alarm_whatever_the_kinds_of_prompts_that_are_known(
    kinds: list[int], price: float
) -> None:
    _, alarms = two_kinds(kinds, 2.0, price=price)
    assert set(alarms) == {"cost"}


def test_bills_in_many_dimensions_are_learned_as_in_few_and_kept_whole_at_any_time() -> None:
    rng = np.random.default_rng(2)
    X = rng.standard_normal((21, WIDE))
    X[:, -1] = 1.0
    arms, others = Arms(WIDE, Journal()), Arms(WIDE, Journal())
    costs, kept = (
        one.add("m", price=PRICE, A=np.eye(WIDE), b=np.zeros(WIDE), now_t=0, pulls=0).costs
        for one in (arms, others)
    )
    prior, regression = arms.bills, costs.regression
    A, b = np.diag(prior.ridges), prior.ridges * prior.mean
    for n, x in enumerate(X):
        ratio = float(rng.lognormal())
        assert not bill(costs, ratio, x)
        left = 1.0 - 1.0 / MEMORY
        A, b = left * A + np.outer(x, x), left * b + math.log(ratio) * x
        assert regression.pending == (n + 1) % TAILS
        assert regression.theta == pytest.approx(np.linalg.solve(A, b), abs=1e-9)
        packed = regression.kept.copy()
        kept.regression.restore(packed)
        np.testing.assert_array_equal(kept.regression.kept, packed)
    assert regression.A_inv() == pytest.approx(np.linalg.inv(A), abs=1e-9)


@pytest.mark.parametrize("numbers", [1, TAILS * WIDE])
def test_a_regression_with_more_pending_rows_than_there_can_be_is_refused(numbers: int) -> None:
    arms = Arms(WIDE, Journal())
    arms.add("m", price=PRICE, A=np.eye(WIDE), b=np.zeros(WIDE), now_t=0, pulls=0)
    for regression in (arms["m"].rewards, arms["m"].costs.regression):
        with pytest.raises(DamagedState):
            regression.restore(np.concatenate([regression.kept, np.zeros(numbers)]))
