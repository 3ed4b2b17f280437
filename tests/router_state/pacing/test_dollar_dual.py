"""The price of a dollar: exact over the window, and the budget met with bills late, missing, or all
at once.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.played import Played
from router_state.choice import Choice
from router_state.config import ModelConfig, Price, RouterConfig
from router_state.costs import believed
from router_state.events import Asked
from router_state.kernel import EVERY, SAVED, Options
from router_state.pacing import prices
from router_state.pacing.dollar_dual import UNREACHABLE, DollarDual
from router_state.pacing.scoring import candidates
from router_state.profiles import knobs_for
from router_state.state import invariants
from router_state.state.record_bytes import pack_record
from tests.router_state.live_world import D, World, declaration, world


def dual(w: World) -> DollarDual:
    pacer = w.engine.state.pacer
    assert isinstance(pacer, DollarDual)
    return pacer


def mean_cost(scores: np.ndarray, costs: np.ndarray, price: float) -> float:
    return float(costs[np.arange(len(scores)), (scores - price * costs).argmax(1)].mean())


@given(
    st.integers(1, 40),
    st.integers(1, 6),
    st.floats(0.01, 2.0),
    st.integers(0, 2**32 - 1),
    st.sampled_from([0.0, 1e-300, 1e-3, 1.0, 1e3, 1e15]),
)
def test_the_dual_is_the_smallest_price_that_meets_the_target(
    n: int, K: int, target: float, seed: int, start: float
) -> None:
    rng = np.random.default_rng(seed)
    scores, costs = rng.normal(size=(n, K)), rng.lognormal(size=(n, K))
    price = Options.of(scores, costs).price(target=target, start=start)
    if price is None:
        assert costs.min(1).mean() > target
        return
    assert mean_cost(scores, costs, price * (1 + 1e-9) + 1e-9) <= target * (1 + 1e-9)
    if price > 0.0:
        assert mean_cost(scores, costs, price * (1 - 1e-6)) > target * (1 - 1e-9)


def test_equal_models_and_equal_costs_have_a_price_of_zero() -> None:
    ones = np.ones((5, 3))
    assert Options.of(ones, ones).price(target=1.0) == 0.0
    assert Options.of(ones, ones).price(target=0.9) is None


@pytest.mark.parametrize("late", [0, 30, 100, 300])
def test_spend_meets_the_budget_however_late_the_bills_are(late: int) -> None:
    w = world(late=late)
    w.play(1000)
    assert w.play(1000) == pytest.approx(6e-4, rel=0.05)


def test_commitments_alone_hold_the_budget_in_a_burst_without_bills() -> None:
    w = world()
    w.play(500)
    w.late = 10_000
    assert w.play(1000) == pytest.approx(6e-4, rel=0.12)


def test_a_first_burst_of_which_nothing_is_known_does_not_overspend() -> None:
    assert world(late=10_000).play(1000) < 6e-4 * 1.05


def test_bills_that_never_come_stay_charged_at_their_expectation() -> None:
    w = world(late=50)
    w.billed = lambda i: i % 10 != 0
    w.play(1500)
    assert w.engine.expire(now=1e6) > 0
    assert w.play(1500) == pytest.approx(6e-4, rel=0.05)


def test_a_bill_after_its_commitment_expired_corrects_the_debt() -> None:
    w = world()
    w.billed = lambda i: i != 10
    w.play(100)
    w.engine.expire(now=1e6)
    before, record = dual(w).debt.usd, w.engine.records["10"]
    w.engine.settle("10", cost_usd=0.5)
    assert dual(w).debt.usd == pytest.approx(before + 0.5 - record.expected_cost_usd)


@pytest.mark.parametrize("factor", [0.5, 2.0])
def test_another_budget_is_met_from_the_next_decision_on(factor: float) -> None:
    w = world()
    w.play(600)
    old = dual(w).lambda_t / 6e-4
    w.engine.configure(declaration(6e-4 * factor), now=600.0)
    w.play(1)
    assert (dual(w).lambda_t / (6e-4 * factor) > old) == (factor < 1.0)
    assert w.play(1000) == pytest.approx(6e-4 * factor, rel=0.06)


def test_an_announced_price_is_in_the_next_decision() -> None:
    w = world()
    w.play(500)
    record = w.engine.decide("a", np.ones(D), now=500.0)
    w.engine.configure(declaration(prices={"dear": Price(0.05, 0.10)}), now=500.0)
    cut = w.engine.decide("b", np.ones(D), now=500.0)
    before, after = (
        r.candidates.expected_cost_usd[2] for r in (record, cut) if r.candidates is not None
    )
    assert after == pytest.approx(before / 100.0)
    assert cut.lambda_t < record.lambda_t


def test_little_credit_is_kept_while_the_budget_does_not_bind() -> None:
    w = world(1.0)
    w.play(300)
    assert dual(w).lambda_t == 0.0
    assert dual(w).debt.usd >= -(SAVED + EVERY) * 1.0


def test_credit_is_limited_where_the_budget_binds() -> None:
    w = world()
    w.play(400)
    for i in range(300, 400):
        w.engine.settle(str(i), cost_usd=0.0, revision=1)
    w.play(20)
    assert dual(w).debt.usd >= -(SAVED + EVERY) * 6e-4  # cut when it is solved, every 8 decisions


def test_what_moves_the_debt_by_many_budgets_is_answered_before_the_next_decision() -> None:
    w = world()
    w.play(400)
    journal = w.engine.state.journal
    assert not journal.jumped
    w.engine.settle("399", cost_usd=30 * 6e-4, revision=1)
    before = dual(w).lambda_t
    assert journal.jumped
    w.play(1)
    assert dual(w).lambda_t > before
    w.engine.settle("399", cost_usd=31 * 6e-4, revision=2)
    assert not journal.jumped


def test_a_call_out_of_reach_is_made_only_where_no_cheaper_one_is_allowed() -> None:
    w = world(1e-4)
    arms, x = w.engine.state.arms, np.ones(D)
    dear = arms.row["dear"]
    believed.start(arms[dear].costs, None, arms[dear].per_1k, tokens=0.0)  # 75 budgets
    record = w.engine.decide("known", x, now=0.0)
    assert record.candidates is not None
    assert record.candidates.excluded == [None, None, "out_of_reach"]
    assert w.engine.decide("no other", x, now=1.0, allowed_models=["dear"]).model == "dear"
    for k in range(len(arms)):
        believed.start(arms[k].costs, None, 2.0 * arms[dear].per_1k, tokens=0.0)
    record = w.engine.decide("none within", x, now=3.0)
    assert record.candidates is not None
    assert None in record.candidates.excluded


def paced(cheapest: float, owed: float) -> tuple[DollarDual, float]:
    """Return a pacer that has just solved with this debt, and what a request costs at its cheapest
    model, both in budgets."""
    w = world(1e-3)
    arms, pacer = w.engine.state.arms, dual(w)
    for k, budgets in enumerate((cheapest, 2.0, 3.0)):
        believed.start(arms[k].costs, None, budgets * pacer.budget_usd, tokens=0.0)
    pacer.debt.usd, w.engine.state.journal.jumped = owed * pacer.budget_usd, True
    x = np.append(np.zeros(D - 1), 1.0)
    assert arms.window is not None
    for _ in range(100):
        arms.window.push(x, None)
    seen = w.engine.state.policy.look(w.engine.state, Asked("r", x))
    prices.weigh(pacer, arms, Choice(Asked("r", x), 0.0, 0.0, 1, seen, []))
    _, costs = candidates(arms.window, arms).arrays()
    return pacer, float(costs.min(1).mean()) / pacer.budget_usd


@pytest.mark.parametrize(
    ("cheapest", "owed"),
    [(0.2, 0.0), (0.2, 5.0), (0.2, 50.0), (0.2, 120.0), (0.9, 20.0), (0.9, 100.0), (0.2, -10.0)],
)
def test_the_target_is_that_of_the_debt_at_the_window_s_cheapest_models(
    cheapest: float, owed: float
) -> None:
    pacer, lowest = paced(cheapest, owed)
    # A debt of 10 budgets is what chance makes of 100 bills, each a budget off.
    paid = owed**3 / (owed**2 + 100.0) / 100.0
    saved = 1.0 - lowest
    paid *= saved / math.hypot(paid, saved) if owed > 0.0 else 1.0
    assert pacer.target_usd == pytest.approx((1.0 - paid) * pacer.budget_usd)


def test_before_the_first_bill_a_tight_budget_does_not_go_up_the_price_list() -> None:
    prices = 0.1 * 100.0 ** (np.arange(20) / 19)
    models = {f"m{k:02d}": ModelConfig(Price(p, p)) for k, p in enumerate(prices.tolist())}
    engine = Played.start(RouterConfig(models, 1.1e-4, D))
    calls = [engine.decide(str(i), np.ones(D), now=float(i)).model for i in range(200)]
    counts = np.array([calls.count(name) for name in models])
    # Those within a factor of two of the cheapest get nearly all, all others share 25 budgets.
    assert counts[:4].sum() > 190
    assert (counts[4:] * prices[4:]).sum() / 1000.0 < 25 * 1.1e-4


def test_without_a_budget_dollars_have_no_price() -> None:
    w = world(None)
    w.play(50)
    assert w.engine.state.pacer.budget_usd is None
    assert {record.lambda_t for record in w.engine.records.values()} == {0.0}
    w.engine.configure(declaration(6e-4), now=50.0)
    w.play(600)
    assert w.play(1000) == pytest.approx(6e-4, rel=0.07)


def test_a_budget_below_the_cheapest_model_is_an_alert_once_and_routes_to_the_cheapest() -> None:
    w = world(1e-6)
    w.play(400)
    assert [alert.kind for alert in w.news] == ["budget_unreachable"]
    assert set(w.chosen[10:]) == {"cheap"}
    assert dual(w).lambda_t == UNREACHABLE


def test_one_model_left_and_models_that_retire_keep_the_router_going() -> None:
    w = world()
    w.play(300)
    w.engine.configure(declaration(models=("cheap",)), now=300.0)
    w.play(100)
    assert set(w.chosen[300:]) == {"cheap"}
    w.engine.configure(declaration(), now=400.0)
    w.play(500)
    assert w.play(1000) == pytest.approx(6e-4, rel=0.07)


def test_requests_limited_to_dear_models_are_paid_for_by_the_others() -> None:
    engine = Played.start(declaration())
    rng, spent = np.random.default_rng(0), []
    for i in range(3000):
        x = np.array([*rng.normal(size=D - 1), 1.0])
        allowed = ["middle"] if i % 2 else None
        record = engine.decide(str(i), x, now=float(i), allowed_models=allowed)
        spent.append(0.4 * record.price.per_1k)
        assert not allowed or record.model == "middle"
        engine.settle(str(i), cost_usd=spent[-1])
    invariants.check(engine.state, engine.records)
    assert np.mean(spent[1000:]) == pytest.approx(6e-4, rel=0.05)


def test_a_price_limit_holds_against_any_score() -> None:
    engine = Played.start(declaration(None))
    for i in range(20):
        assert engine.decide(str(i), np.ones(D), now=0.0, max_price_per_1k=1e-3).model != "dear"


def test_a_silence_of_a_day_changes_nothing() -> None:
    w, rested = world(seed=3), world(seed=3)
    w.play(200), rested.play(200)
    x = np.ones(D)
    left, right = (
        e.decide("next", x, now=now) for e, now in ((w.engine, 201.0), (rested.engine, 86_400.0))
    )
    left.decided_at = right.decided_at = 0.0
    assert pack_record(left) == pack_record(right) or left.candidates == right.candidates


def test_a_request_limited_to_a_model_that_is_gone_does_not_put_the_budget_out_of_reach() -> None:
    w = world()
    w.play(400)
    before = w.engine.state.lambda_t
    w.engine.decide("only", np.array([0.0] * (D - 1) + [1.0]), now=400.0, allowed_models=["dear"])
    w.engine.settle("only", cost_usd=0.01)
    w.engine.configure(declaration(models=("cheap", "middle")), now=401.0)
    w.play(60)
    assert w.engine.state.lambda_t < 10.0 * before
    assert w.chosen[-60:].count("middle") > 30


@pytest.mark.parametrize("seed", range(6))
def test_bills_of_a_model_that_is_affordable_raise_no_budget_alert_however_they_scatter(
    seed: int,
) -> None:
    """The mean of fifty bills with a deviation of three means may be twice the true one."""
    rng, price = np.random.default_rng(seed), Price(1.0, 1.0)
    config = RouterConfig({"m": ModelConfig(price)}, 1.1e-3, D, "live", knobs_for("live"))
    engine = Played.start(config)
    for n in range(600):
        x = np.append(rng.normal(size=D - 1), 1.0)
        engine.decide(str(n), x, now=float(n))
        engine.settle(str(n), cost_usd=1e-3 * rng.lognormal(-1.125, 1.5))
    assert [a.kind for a in engine.take_alerts()] == []


def test_a_model_that_became_cheap_is_found_while_no_model_is_within_the_budget() -> None:
    rng = np.random.default_rng(5)
    models = {name: ModelConfig(Price(p, p)) for name, p in (("a", 1.0), ("b", 1.5), ("c", 9.0))}
    engine = Played.start(RouterConfig(models, 5e-4, D, "live", knobs_for("live")))
    now = {"a": 1e-3, "b": 1.5e-3, "c": 9e-3}
    spent, chosen = [], []
    for n in range(3000):
        if n == 1500:
            now["b"] = 4e-4
        x = np.append(rng.normal(size=D - 1), 1.0)
        record = engine.decide(str(n), x, now=float(n))
        spent.append(now[record.model] * rng.lognormal(-0.02, 0.2))
        chosen.append(record.model)
        engine.settle(str(n), cost_usd=spent[-1])
    assert 0 < chosen[500:1500].count("b") < 100
    assert chosen[:1500].count("c") <= 10
    # Probes cost 1 % on average; one of c is as dear as eight calls, and a few come by chance.
    assert np.mean(spent[500:1500]) < 1.045 * 1e-3
    assert chosen[-500:].count("b") > 450
    assert min(record.propensity for record in engine.records.values()) >= 0.001
    invariants.check(engine.state, engine.records)
