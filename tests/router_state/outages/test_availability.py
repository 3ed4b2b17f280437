"""Models that do not answer: who is left out, who is tried, and who is back."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.publishing.published_values import route_value
from benchmarks.played import Played
from router_state.changes import Journal, Outcome
from router_state.events import Asked, Charged, Judged
from router_state.outages.availability import LONGEST_REST, PIECE, Availability
from router_state.outages.health import IN_A_ROW, MOST_WAIT, SLOW_WAIT, TRIAL_SHARE
from router_state.outages.outages import Outages
from router_state.record import RequestRecord
from router_state.state import invariants, record_bytes
from tests.router_state.core_reference import (
    CHEAP,
    MIDDLE,
    context,
    declaration,
    freeze,
    thaw,
)

X = context(1.0, 0.0, 0.0)
NAMES = ("a", "b")
OPEN: list[str | None] = [None, None]


def failing(n: int, *, status: str = "error", start: float = 0.0) -> Availability:
    """Return what is known after n calls of `a` that failed, one a second."""
    known = Availability(Journal())
    for k in range(n):
        known.observe("a", status, decided=k + 1, seq=k + 1, now=start + k)
    return known


def alerts(known: Availability) -> list[str]:
    return [alert.kind for alert in known._journal.take_alerts()]


def test_a_model_is_down_after_five_failures_in_a_row_and_not_before() -> None:
    for n in range(1, IN_A_ROW):
        known = failing(n)
        assert known.rule_out(NAMES, OPEN, now=10.0, seq=n) == OPEN
        assert alerts(known) == []
    known = failing(IN_A_ROW)
    assert known.rule_out(NAMES, OPEN, now=4.0, seq=5) == ["down", None]
    assert alerts(known) == ["model_down"]


def test_an_answer_in_between_begins_the_count_anew_and_leaves_nothing_to_remember() -> None:
    known = failing(IN_A_ROW - 1)
    assert known.called("a", now=4.5, seq=5) == 1
    known.observe("a", None, decided=5, seq=5, now=5.0, nth=1)
    assert known.models == {} and known.values() is None
    assert Availability(Journal()).values() is None


@pytest.mark.parametrize("status", [None, "ok", "refused", "cancelled"])
def test_what_is_no_failure_is_not_remembered(status: str | None) -> None:
    known = Availability(Journal())
    known.observe("a", status, decided=1, seq=1, now=0.0)
    assert known.values() is None and known._journal.pieces == set()


def test_trials_are_single_further_and_further_apart_and_bounded() -> None:
    known, seq, tried = failing(IN_A_ROW), IN_A_ROW, []
    for tenth in range(40, 3000):
        now, seq = tenth / 10, seq + 1
        if known.rule_out(NAMES, OPEN, now=now, seq=seq - 1) == OPEN:
            tried.append(now)
            known.called("a", now=now, seq=seq)
            known.observe("a", "timeout", decided=seq, seq=seq, now=now)
    gaps = [b - a for a, b in pairwise(tried)]
    assert [round(gap, 1) for gap in gaps] == sorted(round(gap, 1) for gap in gaps)
    assert max(gaps) == pytest.approx(MOST_WAIT, abs=0.2)
    # One request in a hundred, however many there are.
    assert min(gaps) >= TRIAL_SHARE / 10 - 0.2


def test_answers_of_calls_from_before_do_not_hide_an_outage() -> None:
    known, numbers = failing(1), []
    for seq in range(2, 2 + IN_A_ROW):
        numbers.append(known.called("a", now=1.0, seq=seq))
        known.observe("a", "ok", decided=1, seq=seq, now=1.0)
    for nth in (3, 1, 2, 5, 4):
        assert known.models["a"].down_since is None
        known.observe("a", "error", decided=1 + nth, seq=7, now=1.4, nth=numbers[nth - 1])
        known.observe("a", "ok", decided=1, seq=7, now=1.4)
    assert alerts(known) == ["model_down"]


@given(seed=st.integers(0, 2**32 - 1))
def test_a_model_of_which_one_call_in_five_fails_is_seldom_down(seed: int) -> None:
    rng, known, down = random.Random(seed), Availability(Journal()), 0
    for seq in range(1, 1001):
        nth = known.called("a", now=seq / 10, seq=seq)
        status = "error" if rng.random() < 0.2 else "ok"
        known.observe("a", status, decided=seq, seq=seq, now=seq / 10, nth=nth)
        down = len(known._journal.alerts)
    assert down <= 6


def test_a_quiet_router_tries_once_a_minute() -> None:
    known = failing(IN_A_ROW)
    assert known.rule_out(NAMES, OPEN, now=5.0 + SLOW_WAIT, seq=7) == OPEN


def test_the_first_answer_brings_it_back_and_five_failures_take_it_away_again() -> None:
    known = failing(IN_A_ROW)
    known.called("a", now=20.0, seq=200)
    # A call from before the outage says nothing of now.
    known.observe("a", "ok", decided=3, seq=200, now=20.5)
    assert known.models["a"].down_since is not None
    known.observe("a", "ok", decided=200, seq=201, now=21.0)
    assert known.rule_out(NAMES, OPEN, now=21.0, seq=201) == OPEN
    assert alerts(known) == ["model_down", "model_back"]
    for n in range(IN_A_ROW):
        assert known.rule_out(NAMES, OPEN, now=22.0, seq=203) == OPEN
        known.observe("a", "error", decided=202 + n, seq=207, now=22.0)
    assert known.rule_out(NAMES, OPEN, now=22.0, seq=207) == ["down", None]


def test_where_nobody_else_is_left_a_model_that_is_down_is_called_and_one_alert_says_so() -> None:
    known = failing(IN_A_ROW)
    for k in range(IN_A_ROW):
        known.observe("b", "error", decided=9 + k, seq=9 + k, now=5.0)
    for _ in range(3):
        assert known.rule_out(NAMES, OPEN, now=5.5, seq=14) == OPEN
    assert alerts(known) == ["model_down", "model_down", "all_models_down"]
    # A retired model is not one that could still answer.
    assert known.rule_out(("a", "b", "c"), [None, None, "retired"], now=5.5, seq=14)[0] is None
    known.observe("b", "ok", decided=15, seq=15, now=6.0)
    assert alerts(known) == ["model_back"] and not known.all_down


def test_a_request_for_one_model_gets_it_down_or_not() -> None:
    known = failing(IN_A_ROW)
    only = [None, "not_allowed"]
    assert known.rule_out(NAMES, only, now=4.0, seq=5) == only
    assert "all_models_down" not in alerts(known)


def test_a_model_rests_as_long_as_it_asks_to_but_not_for_a_day() -> None:
    known = Availability(Journal())
    known.observe("a", "rate_limited", decided=1, seq=1, now=0.0, retry_after=7.0)
    assert known.rule_out(NAMES, OPEN, now=6.9, seq=1) == ["rate_limited", None]
    assert known.rule_out(NAMES, OPEN, now=7.0, seq=1) == OPEN
    known.observe("a", "error", decided=2, seq=2, now=8.0, retry_after=86_400.0)
    assert known.rule_out(NAMES, OPEN, now=8.0 + LONGEST_REST, seq=2) == OPEN


def test_a_limited_model_gets_about_the_rate_that_it_answers() -> None:
    """Ten requests a second, of which it answers three."""
    known, left, answered, refused = Availability(Journal()), 3.0, 0, 0
    for seq in range(1, 6001):
        now = seq / 10
        left = min(left + 0.3, 3.0)
        if known.rule_out(NAMES, OPEN, now=now, seq=seq) != OPEN:
            continue
        known.called("a", now=now, seq=seq)
        good = left >= 1.0
        left -= good
        if seq > 600:
            answered, refused = answered + good, refused + (not good)
        known.observe("a", "ok" if good else "rate_limited", decided=seq, seq=seq, now=now)
    assert refused <= 0.01 * 5400
    assert answered >= 0.8 * 0.3 * 5400


def engine(**declared: Any) -> Played:
    config = declaration({"a": CHEAP, "b": MIDDLE}, profile="live", **declared)
    return Played.start(config)


def outage(one: Played, n: int, *, status: str = "error") -> None:
    """Let n calls of model `a` fail."""
    for k in range(n):
        one.apply(Asked(f"f{k}", X, allowed_models=["a"]), float(k))
        one.apply(Charged(f"f{k}", 0.0, status=status), float(k))


def test_a_model_that_is_down_is_left_out_until_it_answers_a_trial() -> None:
    one = engine()
    outage(one, IN_A_ROW)
    decided = one.apply(Asked("1", X), 5.0).decision
    assert decided is not None and decided.model == "b"
    assert decided.candidates is not None and decided.candidates.excluded == ["down", None]
    trial = one.apply(Asked("2", X, allowed_models=["a"]), 80.0).decision
    assert trial is not None
    changes = one.apply(Charged("2", 1e-4, status="ok"), 81.0)
    assert [alert.kind for alert in changes.alerts] == ["model_back"] and PIECE in changes.pieces
    invariants.check(one.state, one.records)


def test_failed_attempts_teach_no_costs_and_the_answer_teaches_its_own_model() -> None:
    one = engine()
    one.apply(Asked("1", X, allowed_models=["a"]), 0.0)
    before = one.state.arms["a"].costs.bills
    assert one.apply(Charged("1", 2e-5, status="timeout"), 1.0).outcome is Outcome.APPLIED
    assert one.state.arms["a"].costs.bills == before and one.state.arms["a"].costs.awaited == 0
    record = one.records["1"]
    assert not record.is_answered and record.bill is not None and one.state.spend_usd == 2e-5
    again = record_bytes.unpack_record(record_bytes.pack_record(record))
    assert (again.call, again.is_answered) == (record.call, False)
    late = Charged("1", 3e-5, model="b", revision=1)
    assert one.apply(late, 2.0).outcome is Outcome.REVISED
    record = one.records["1"]
    assert (record.called, record.is_answered, record.call) == ("b", True, None)
    # In all it cost 3e-5, of which 1e-5 were the answer's.
    assert one.state.arms["b"].costs.bills == 1.0 and one.state.spend_usd == pytest.approx(3e-5)
    one.apply(Judged("1", 0.9), 3.0)
    assert one.state.arms["b"].rewards.last_update == 1
    assert one.apply(late, 4.0).outcome is Outcome.DUPLICATE
    invariants.check(one.state, one.records)


def test_tokens_of_a_fallback_have_its_price() -> None:
    one = engine()
    one.apply(Asked("1", X, allowed_models=["a"]), 0.0)
    one.apply(Charged("1", 0.0, status="error"), 1.0)
    one.apply(Charged("1", tokens=(1000, 1000), model="b", revision=1), 2.0)
    assert one.state.spend_usd == pytest.approx(
        MIDDLE.cost_usd(input_tokens=1000, output_tokens=1000)
    )


def test_an_error_is_a_reward_only_where_the_router_says_so() -> None:
    for reward in (None, 0.0):
        one = engine(error_reward=reward)
        outage(one, 3)
        assert one.state.arms["a"].rewards.last_update == (0 if reward is None else 3)
        assert one.state.rewards_applied == 0
        outage(one, 3)  # the same again
        assert one.state.arms["a"].rewards.last_update == (0 if reward is None else 3)


def test_a_restart_in_the_middle_of_an_outage_changes_nothing() -> None:
    one = engine()
    outage(one, IN_A_ROW)
    other = thaw(freeze(one), {f"f{k}": X for k in range(IN_A_ROW)})
    for k in range(200):
        found = [each.apply(Asked(f"{k}", X), 5.0 + k).decision for each in (one, other)]
        assert found[0] is not None and found[1] is not None
        assert found[0].model == found[1].model
        status = "error" if found[0].model == "a" and k < 150 else "ok"
        for each in (one, other):
            each.apply(Charged(f"{k}", 1e-4, status=status), 5.0 + k)
    assert freeze(one) == freeze(other)


def test_a_model_that_leaves_the_portfolio_is_forgotten() -> None:
    one = engine()
    outage(one, IN_A_ROW)
    one.configure(declaration({"b": MIDDLE}, profile="live"), now=9.0)
    outages = one.state.having(Outages)
    assert outages is not None and outages.availability.models == {}


def decided(**changed: Any) -> RequestRecord:
    one = Played.start(declaration(profile="live", **changed))
    return one.decide("1", X, now=0.0)


def test_a_decision_names_the_next_best_models() -> None:
    import orjson

    record = decided()
    value = orjson.loads(route_value("r", "1", record, repeat=False))
    others = sorted(
        (one for one in value["candidates"] if one["model"] != record.model),
        key=lambda one: -one["score"],
    )
    assert value["fallbacks"] == [one["model"] for one in others]
    alone = Played.start(declaration({"only": CHEAP}, profile="live")).decide("1", X, now=0.0)
    assert "fallbacks" not in orjson.loads(route_value("r", "1", alone, repeat=False))


@given(
    st.lists(
        st.tuples(
            st.sampled_from(NAMES),
            st.sampled_from(["ok", "error", "timeout", "rate_limited", "cancelled", "refused"]),
            st.integers(0, 5),
            st.none() | st.floats(0, 1e5),
            st.floats(0, 1e4),
        ),
        max_size=60,
    )
)
def test_whatever_happens_it_stays_what_it_can_be_and_comes_back_as_it_was(
    events: list[Any],
) -> None:
    known, now, seq = Availability(Journal()), 0.0, 0
    for model, status, ago, retry_after, seconds in events:
        now, seq = now + seconds, seq + 1
        known.called(model, now=now, seq=seq)
        known.observe(
            model, status, decided=max(seq - ago, 0), seq=seq, now=now, retry_after=retry_after
        )
        assert list(known.faults()) == []
        assert None in known.rule_out(NAMES, OPEN, now=now, seq=seq)
    other = Availability(Journal())
    if (values := known.values()) is not None:
        other.restore(orjson.dumps(values))
    assert other.values() == known.values()
