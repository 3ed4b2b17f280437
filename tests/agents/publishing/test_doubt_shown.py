"""What a decision says of the doubt about its candidates."""

from __future__ import annotations

import numpy as np
import pytest
from rich.console import Console

from agents.publishing.published_values import route_value
from doors.console.explained_decision import BECAUSE, because_of, explain_decision
from router_state.record import RequestRecord
from router_state.state import record_bytes
from schemas import RouteDecided, decode
from schemas.routes import RouteReason
from tests.router_state.costs.test_input_tokens import D, asked, often_free, started

X = np.append(np.zeros(D - 1), 1.0)


def shown(record: RequestRecord) -> RouteDecided:
    return decode(RouteDecided, route_value("r", "a", record, repeat=False))


def test_doubt_shrinks_with_rewards_and_bills() -> None:
    engine = started()
    before = shown(engine.decide("before", X, now=0.0)).candidates
    asked(engine, 300)
    after = shown(engine.decide("after", X, now=300.0)).candidates
    assert before is not None and after is not None
    for one, other in zip(before, after, strict=True):
        assert one.deviation is not None and other.deviation is not None
        assert other.deviation < 0.5 * one.deviation
        assert one.shared == before[0].shared


def test_eight_bills_of_ten_are_within_the_range() -> None:
    engine = started()
    asked(engine, 300, says=False)
    within = []
    for i in range(300, 500):
        record = engine.decide(f"r-{i}", X, now=float(i))
        one = next(c for c in shown(record).candidates or () if c.model == record.model)
        assert one.cost_low_usd is not None and one.cost_high_usd is not None
        asked(engine, 1, first=i + 1000, says=False)
        other = engine.records[f"r-{i + 1000}"]
        if other.model == record.model and other.bill is not None:
            within.append(one.cost_low_usd <= other.bill.cost_usd <= one.cost_high_usd)
    assert np.mean(within) == pytest.approx(0.8, abs=0.12)


def test_how_likely_a_bill_of_nothing_is_follows_the_bills() -> None:
    engine = started()
    asked(engine, 500, bill=often_free)
    candidates = shown(engine.decide("a", X, now=500.0)).candidates or ()
    most = max(candidates, key=lambda one: engine.state.arms[one.model].costs.bills)
    assert most.unpaid == pytest.approx(0.4, abs=0.1)


def test_an_answer_after_a_crash_lacks_the_doubt_and_nothing_else() -> None:
    engine = started()
    record = engine.decide("a", X, now=0.0)
    again = record_bytes.unpack_record(record_bytes.pack_record(record))
    first, second = shown(record), shown(again)
    assert first.candidates is not None and first.candidates[0].deviation is not None
    assert second.candidates is not None and second.candidates[0].deviation is None
    assert again.candidates == record.candidates
    record.candidates = again.candidates
    assert shown(again) == shown(record)


def test_explain_shows_uncertainty_range_and_what_is_common() -> None:
    engine = started()
    asked(engine, 100)
    console = Console(width=140)
    with console.capture() as captured:
        console.print(explain_decision(shown(engine.decide("a", X, now=100.0))))
    text = captured.get()
    for word in (
        "uncertainty",
        "common to all models",
        "own",
        "8 of 10 bills",
        "a bill of $0",
        "±",
    ):
        assert word in text


def test_levels_are_of_the_prompts_that_come_now() -> None:
    engine = started()
    asked(engine, 200)
    other = np.append(np.full(D - 1, 3.0), 1.0)
    for i in range(64):
        engine.decide(f"other-{i}", other, now=float(i))
    assert engine.state.arms.sample.array[-D:] == pytest.approx(other, abs=0.5)


def test_a_score_that_was_drawn_is_said_to_be_drawn() -> None:
    engine = started()
    decision = shown(engine.decide("a", X, now=0.0))
    assert decision.reason.value == "ucb" and decision.propensity < 1.0
    assert "drawn at random for each request" in because_of(decision)
    alone = decision.model_copy(update={"propensity": 1.0})
    without = tuple(one.model_copy(update={"deviation": None}) for one in decision.candidates or ())
    paper = decision.model_copy(update={"candidates": without})
    for other in (alone, paper):
        assert because_of(other).endswith("exploration − penalty)")
    new = decision.model_copy(update={"reason": RouteReason("onboarding")})
    assert because_of(new) == BECAUSE["onboarding"]
