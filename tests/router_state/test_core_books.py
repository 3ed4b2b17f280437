"""Every dollar once: bills in any order, twice, revised, late, or never."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.played import Played
from router_state.changes import Outcome
from router_state.config import ModelConfig, Price, RouterConfig
from router_state.events import Orphaned
from router_state.learning.guess import COSTS
from router_state.profiles import knobs_for
from router_state.state import invariants
from tests.router_state.core_reference import CHEAP, DEAR, MIDDLE, context, declaration, freeze

PROFILES = ("paper", "live")
costs = st.lists(st.floats(0.0, 0.05), min_size=1, max_size=30)


def decided(n: int, **options: Any) -> Played:
    engine = Played.start(declaration(**options))
    for i in range(n):
        engine.decide(str(i), context(i % 3, i % 5, -1), now=float(i))
    return engine


@pytest.mark.parametrize("profile", PROFILES)
@given(costs=costs, random=st.randoms(use_true_random=False))
def test_bills_in_any_order_come_to_the_same_spend(
    profile: str, costs: list[float], random: Any
) -> None:
    engine = decided(len(costs), profile=profile)
    order = list(range(len(costs)))
    random.shuffle(order)
    for i in order:
        assert engine.settle(str(i), cost_usd=costs[i]) is Outcome.APPLIED
        invariants.check(engine.state, engine.records)
    assert engine.state.spend_usd == pytest.approx(math.fsum(costs), rel=1e-9, abs=1e-15)
    assert engine.state.settled == len(costs)
    assert engine.state.in_flight == 0
    assert engine.state.committed_usd == 0.0


@pytest.mark.parametrize("profile", PROFILES)
@given(costs=costs, rewards=st.lists(st.floats(0.0, 1.0), min_size=30, max_size=30))
def test_every_event_given_twice_changes_nothing(
    profile: str, costs: list[float], rewards: list[float]
) -> None:
    # A declaration of no topic: those of one are told apart by their offsets, before the core.
    engine = Played.start(replace(declaration(profile=profile), offset=-1))
    for i, cost in enumerate(costs):
        request_id, x = str(i), context(i % 3, i % 5, -1)
        record = engine.decide(request_id, x, now=float(i))
        after = freeze(engine)
        assert (
            engine.decide(request_id, context(9, 9, 9), now=99.0, allowed_models=["dear"]) is record
        )
        assert freeze(engine) == after
        engine.settle(request_id, cost_usd=cost)
        after = freeze(engine)
        assert engine.settle(request_id, cost_usd=cost) is Outcome.DUPLICATE
        assert engine.settle(request_id, cost_usd=cost + 1.0) is Outcome.DUPLICATE
        assert freeze(engine) == after
        engine.learn(request_id, reward=rewards[i])
        after = freeze(engine)
        assert engine.learn(request_id, reward=rewards[i]) is Outcome.DUPLICATE
        assert engine.learn(request_id, reward=1.0 - rewards[i]) is Outcome.DUPLICATE
        assert freeze(engine) == after
        engine.configure(engine.state.config, now=float(i))
        assert freeze(engine) == after
    assert engine.expire(now=0.0) == 0


@given(st.lists(st.tuples(st.integers(0, 5), st.floats(0.0, 0.05)), min_size=1, max_size=12))
def test_the_highest_revision_is_what_was_spent_whatever_the_order(
    revisions: list[tuple[int, float]],
) -> None:
    engine = decided(2)
    engine.settle("1", cost_usd=0.25)
    highest, amount = -1, 0.0
    for revision, cost in revisions:
        outcome = engine.settle("0", cost_usd=cost, revision=revision)
        assert outcome is (
            Outcome.DUPLICATE
            if revision <= highest
            else Outcome.APPLIED
            if highest < 0
            else Outcome.REVISED
        )
        if revision > highest:
            highest, amount = revision, cost
        assert engine.state.spend_usd == pytest.approx(0.25 + amount, rel=1e-12)
    assert engine.state.settled == 2
    invariants.check(engine.state, engine.records)


def test_tokens_are_priced_as_at_the_decision() -> None:
    engine = Played.start(declaration({"only": DEAR}))
    engine.decide("a", context(1, 1, 1), now=0.0)
    engine.configure(declaration({"only": CHEAP}), now=1.0)
    engine.settle("a", tokens=(1_000, 2_000))
    assert engine.state.spend_usd == pytest.approx((1_000 * 1.25 + 2_000 * 10.0) / 1e6)


def test_the_pacer_follows_first_bills_only() -> None:
    engine = decided(2)
    engine.settle("0", cost_usd=0.01)
    after = engine.state.lambda_t
    assert after > 0.0
    engine.settle("0", cost_usd=0.05, revision=1)
    assert engine.state.lambda_t == after


def test_a_commitment_without_a_bill_expires_once_and_its_bill_still_counts() -> None:
    engine = decided(3, commitment_ttl_seconds=10.0)
    assert engine.state.in_flight == 3
    assert engine.expire(now=9.5) == 0
    assert engine.expire(now=11.0) == 2
    assert engine.expire(now=11.0) == 0
    assert (engine.state.in_flight, engine.state.expired) == (1, 2)
    invariants.check(engine.state, engine.records)
    assert engine.settle("0", cost_usd=0.02) is Outcome.APPLIED
    assert engine.state.spend_usd == 0.02
    assert engine.state.in_flight == 1
    invariants.check(engine.state, engine.records)


def test_a_bill_without_a_decision_is_counted_apart() -> None:
    engine = decided(1)
    engine.apply(Orphaned(0.125), 0.0)
    assert (engine.state.unmatched_cost_usd, engine.state.spend_usd) == (0.125, 0.0)


def test_a_removed_model_takes_no_traffic_and_still_settles_and_learns() -> None:
    engine = Played.start(declaration())
    engine.decide("a", context(1, 2, 3), now=0.0, allowed_models=["dear"])
    engine.configure(declaration({"cheap": CHEAP, "middle": MIDDLE}), now=1.0)
    for n in range(20):
        assert engine.decide(str(n), context(1, 2, 3), now=2.0).model != "dear"
    engine.settle("a", cost_usd=0.01)
    engine.learn("a", reward=1.0)
    k = engine.state.arms.row["dear"]
    assert engine.state.arms[k].rewards.theta @ context(1, 2, 3) > 0.9
    knew = engine.state.arms[k].rewards.theta.copy()
    engine.configure(declaration(), now=3.0)
    assert (engine.state.arms["dear"].rewards.theta == knew).all()
    assert engine.decide("back", context(1, 2, 3), now=4.0, allowed_models=["dear"]).model == "dear"
    invariants.check(engine.state, engine.records)


def test_a_model_can_be_removed_while_it_is_being_tried_out() -> None:
    engine = Played.start(declaration({"cheap": CHEAP, "middle": MIDDLE}))
    engine.configure(declaration(pulls=5), now=1.0)
    assert [engine.decide(str(n), context(0, 0, 0), now=2.0).reason for n in range(2)] == [
        "onboarding"
    ] * 2
    engine.configure(declaration({"cheap": CHEAP, "middle": MIDDLE}), now=3.0)
    assert engine.decide("after", context(0, 0, 0), now=4.0).model != "dear"
    engine.configure(declaration(pulls=5), now=5.0)
    assert engine.decide("again", context(0, 0, 0), now=6.0).reason == "ucb"


def test_a_new_price_holds_from_the_next_decision() -> None:
    engine = Played.start(declaration(lambda_c=0.3))
    before = engine.decide("a", context(1, 1, 1), now=0.0)
    engine.configure(
        declaration({"cheap": DEAR, "middle": MIDDLE, "dear": CHEAP}, offset=7, lambda_c=0.3),
        now=1.0,
    )
    after = engine.decide("b", context(1, 1, 1), now=2.0)
    assert (before.model, before.config_offset, after.model, after.config_offset) == (
        "cheap",
        0,
        "dear",
        7,
    )
    assert engine.records["a"].price == CHEAP


def test_forgotten_requests_are_unknown_and_leave_the_totals() -> None:
    engine = decided(200)
    for i in range(200):
        engine.settle(str(i), cost_usd=0.001)
    assert engine.forget(before=100.0) == 100
    assert engine.state.spend_usd == pytest.approx(0.2)
    assert (engine.state.seq, engine.state.settled, len(engine.records)) == (200, 200, 100)
    assert "99" not in engine.records
    assert engine.decide("99", context(0, 0, 0), now=201.0).seq == 201


def test_a_declared_expected_cost_is_believed_from_the_first_request_on() -> None:
    models = {
        "known": ModelConfig(Price(1.0, 1.0), onboarding_pulls=0, expected_cost_usd=0.002),
        "unknown": ModelConfig(Price(1.0, 1.0), onboarding_pulls=0),
        "free": ModelConfig(Price(0.0, 0.0), onboarding_pulls=0, expected_cost_usd=0.002),
    }
    engine = Played.start(RouterConfig(models, 1.0, 2, "live", knobs_for("live")))
    candidates = engine.decide("r", np.array([0.0, 1.0]), now=0.0).candidates
    assert candidates is not None
    # Nothing says what the other one costs: it is the mean of a lognormal, level and noise doubted.
    level = COSTS.noise / COSTS.bias
    unknown = 0.001 * math.exp(COSTS.mean + (COSTS.noise + level) / 2.0)
    assert candidates.expected_cost_usd == pytest.approx([0.002, unknown, 0.0])
    invariants.check(engine.state, engine.records)


def test_the_oldest_commitments_expire_first_and_no_more_at_once_than_asked() -> None:
    engine = decided(5, commitment_ttl_seconds=10.0)
    assert engine.expire(now=100.0, limit=2) == 2
    assert [record.expired for record in engine.records.values()] == [
        True,
        True,
        False,
        False,
        False,
    ]
    assert engine.expire(now=100.0, limit=0) == 0
    assert engine.expire(now=100.0) == 3
    invariants.check(engine.state, engine.records)


def test_a_clock_that_stepped_back_keeps_no_old_commitment_open() -> None:
    engine = Played.start(declaration(commitment_ttl_seconds=10.0))
    engine.decide("ahead", context(0, 0, 0), now=1000.0)
    engine.decide("normal", context(0, 0, 0), now=0.0)
    assert engine.expire(now=20.0) == 1
    assert list(engine.state.open_commitments) == ["ahead"]
    invariants.check(engine.state, engine.records)


def test_invariants_hold_after_requests_were_forgotten() -> None:
    engine = decided(200)
    for i in range(0, 200, 2):
        engine.settle(str(i), cost_usd=0.001)
        engine.learn(str(i), reward=0.5)
    assert engine.forget(before=100.0, limit=30) == 30
    invariants.check(engine.state, engine.records)
    assert engine.forget(before=100.0) == 70
    invariants.check(engine.state, engine.records)
    assert engine.state.forgotten.requests == 100
    assert engine.state.in_flight == 50


def test_finished_requests_are_forgotten_first_and_awaited_ones_never() -> None:
    engine = decided(10)
    for i in (0, 2, 3, 4):
        engine.settle(str(i), cost_usd=0.001)
    for i in (1, 3, 4):
        engine.learn(str(i), reward=0.5)
    assert engine.forget_early(keep=10) == 0
    assert engine.forget_early(keep=8) == 2
    assert list(engine.records) == ["0", "1", "2", *"56789"]
    assert engine.forget_early(keep=0, limit=1) == 1
    assert engine.forget_early(keep=0) == 1
    assert list(engine.records) == ["1", *"56789"]
    assert engine.forget_early(keep=0) == 0
    assert engine.state.spend_usd == pytest.approx(0.004)
    invariants.check(engine.state, engine.records)


@given(large=st.sets(st.integers(0, 59), min_size=20, max_size=50), bill=st.floats(1e-6, 1e-3))
def test_what_was_large_leaves_no_residue_beside_what_is_small(
    large: set[int], bill: float
) -> None:
    """Sums in plain floats leave 1e-9 of what remains, or more, in most of the draws."""
    engine = Played.start(declaration({"m": Price(0.1, 0.1)}, profile="live"))
    for n in range(60):
        tokens = 10**9 if n in large else 1
        engine.decide(f"{n}", context(0.1, 0.2, 0.3), now=float(n), input_tokens=tokens)
        engine.settle(f"{n}", cost_usd=999.9) if n % 2 else None
        invariants.check(engine.state, engine.records)
    # Commitments of 100 dollars go first, then bills of 1,000 turn out to be small ones.
    for n in (*sorted(large), *range(60)):
        engine.settle(f"{n}", cost_usd=bill, revision=1)
        invariants.check(engine.state, engine.records)
