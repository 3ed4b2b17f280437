"""Ends of models: who is told, what is no longer called, and whose labels count for nobody."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import orjson
import pytest

from agents.publishing.published_values import alert_raised
from benchmarks.played import Played
from drawing.alert_words import sentence
from router_state.endings.endings import FEW_REDIRECTS, PIECE, Endings
from router_state.events import Asked, Charged, Judged, Redeclared
from schemas.event import MalformedEvent, decode
from schemas.routers import RouterDeclared
from tests.router_state.core_reference import freeze
from tests.router_state.declared_engine import DEAR, PRICE, X, again, ask, config, engine

DAY = 86_400.0
END = datetime(2027, 3, 31, tzinfo=UTC).timestamp()
MODELS: dict[str, Any] = {"old": {**PRICE, "retires_at": "2027-03-31"}, "new": DEAR}
PLAIN: dict[str, Any] = {"a": PRICE, "b": DEAR}


def excluded(one: Played, request_id: str, *, now: float) -> dict[str, str | None]:
    record = ask(one, request_id, now=now)
    assert record.candidates is not None
    return dict(zip(record.candidates.models, record.candidates.excluded, strict=True))


def kinds(one: Played) -> list[str]:
    return [alert.kind for alert in one.take_alerts()]


def learned(one: Played, model: str) -> tuple[float, ...]:
    arm = one.state.arms[model]
    return (*arm.rewards.theta, arm.costs.bills, arm.costs.ratio)


@pytest.mark.parametrize("profile", ["live", "paper"])
def test_the_end_of_a_model_is_told_a_fortnight_before_once(profile: str) -> None:
    one = engine(MODELS, profile=profile)
    assert excluded(one, "1", now=END - 14 * DAY - 1) == {"old": None, "new": None}
    assert kinds(one) == []
    excluded(one, "2", now=END - 14 * DAY)
    (alert,) = one.take_alerts()
    assert (alert.kind, alert.model, alert.size) == ("model_retires", "old", 14.0)
    assert alert.evidence["advice"] == "pbstream models add NEW --like old"
    told = sentence(alert_raised("r", alert))
    assert "old" in told and "2027-03-31" in told and "--like old" in told
    other = again(one)
    for played in (one, other):
        excluded(played, "3", now=END - 13 * DAY)
        assert kinds(played) == []
    # Another date is news.
    moved = {**MODELS, "old": {**PRICE, "retires_at": "2027-04-01T12:00:00Z"}}
    one.apply(Redeclared(config(moved, offset=2, profile=profile)), END - 13 * DAY)
    excluded(one, "4", now=END - 12 * DAY)
    assert kinds(one) == ["model_retires"]


def test_in_the_last_week_no_first_calls_go_to_it_and_after_its_end_none() -> None:
    one = engine(MODELS)
    last = END - 7 * DAY
    assert excluded(one, "1", now=last - 1)["old"] is None
    assert excluded(one, "2", now=last)["old"] == "retires_soon"
    # One that is known is called until its end.
    known = engine(MODELS)
    for n in range(20):
        ask(known, f"k{n}", allowed_models=["old"], now=0.0)
        known.settle(f"k{n}", 0.001)
    assert excluded(known, "3", now=last)["old"] is None
    assert excluded(known, "4", now=END - 1)["old"] is None
    assert excluded(known, "5", now=END)["old"] == "past_its_end"


def test_if_nothing_else_is_left_it_is_called() -> None:
    one = engine({"old": MODELS["old"]})
    assert ask(one, "1", now=END + DAY).model == "old"
    one.settle("1", 0.0, status="gone")
    assert ask(one, "2", now=END + DAY).model == "old"


def test_a_model_that_is_gone_is_not_called_until_it_is_declared_again() -> None:
    one = engine(PLAIN)
    ask(one, "1", allowed_models=["a"])
    ask(one, "late", allowed_models=["a"])
    one.settle("1", 0.0, status="gone")
    (alert,) = one.take_alerts()
    assert (alert.kind, alert.model) == ("model_gone", "a")
    assert "--like a" in sentence(alert_raised("r", alert))
    before = learned(one, "a")
    other = again(one)
    assert freeze(one) == freeze(other)
    for played in (one, other):
        assert excluded(played, "2", now=1e9) == {"a": "gone", "b": None}
        assert played.state.having(Endings).lambda_fields(0.0) == {"gone": ["a"]}  # type: ignore[union-attr]
    one.settle("1", 0.0, revision=1, status="gone")
    assert kinds(one) == [] and learned(one, "a") == before
    one.apply(Redeclared(config(PLAIN, offset=2)), 2.0)
    assert excluded(one, "3", now=3.0) == {"a": None, "b": None}
    # A call of the declaration before says nothing about the one in force.
    one.settle("late", 0.0, status="gone")
    assert excluded(one, "4", now=3.0) == {"a": None, "b": None}
    assert not one.state.having(Endings).pieces  # type: ignore[union-attr]


def test_a_model_that_is_gone_is_no_failure_and_teaches_no_reward() -> None:
    one = engine(PLAIN, error_reward=0.0)
    ask(one, "1", allowed_models=["a"])
    one.settle("1", 0.0, status="gone")
    assert one.state.t == 0 and one.state.rewards_applied == 0
    assert one.records["1"].bill is not None and not one.records["1"].is_answered


@pytest.mark.parametrize("profile", ["live", "paper"])
@pytest.mark.parametrize("first", ["bill", "label"])
def test_the_answer_of_another_model_is_paid_and_teaches_nobody(profile: str, first: str) -> None:
    """In whichever order the bill and the label come, the model is as if neither had."""
    one, untouched = (engine(PLAIN, profile=profile) for _ in range(2))
    for played in (one, untouched):
        ask(played, "1", allowed_models=["a"])
    bill, label = Charged("1", 0.5, answered_by="c"), Judged("1", 0.0, x=X)
    for event in (bill, label) if first == "bill" else (label, bill):
        one.apply(event, 1.0)
    assert one.state.spend_usd == 0.5 and one.state.rewards_applied == 1
    found, wanted = learned(one, "a"), learned(untouched, "a")
    assert found == pytest.approx(wanted, abs=1e-9) and learned(one, "b") == learned(untouched, "b")
    # A revision of the label moves nothing either.
    one.apply(Judged("1", 1.0, revision=1, x=X), 2.0)
    assert learned(one, "a") == pytest.approx(wanted, abs=1e-9)
    assert again(one).records["1"].is_redirected


def test_an_answer_by_another_model_of_the_portfolio_teaches_neither() -> None:
    one, untouched = engine(PLAIN), engine(PLAIN)
    for played in (one, untouched):
        ask(played, "1", allowed_models=["a"])
    one.apply(Charged("1", 0.5, answered_by="b"), 1.0)
    one.apply(Judged("1", 0.0, x=X), 1.0)
    assert [learned(one, name) for name in "ab"] == [learned(untouched, name) for name in "ab"]


def answer(one: Played, request_id: str, model: str, name: str | None) -> bool:
    """Bill an answer by this name; return whether it is a redirect."""
    ask(one, request_id, allowed_models=[model])
    one.settle(request_id, 0.001, answered_by=name)
    return one.records[request_id].is_redirected


def test_names_by_which_a_model_itself_answers_are_no_redirects() -> None:
    models = {
        "openai/gpt-4o": PRICE,
        "gpt-x-high": {**PRICE, "variant_of": "gpt-x", "params": {"effort": "high"}},
        "prod": {**PRICE, "answers_as": ["gpt-4o-mini*", "O3"]},
    }
    one = engine(models)
    for n, (model, name, redirected) in enumerate(
        [
            ("openai/gpt-4o", None, False),
            ("openai/gpt-4o", "gpt-4o-2024-08-06", False),
            ("openai/gpt-4o", "gpt-4o-mini", True),
            ("gpt-x-high", "gpt-x-2026-05-01", False),
            ("gpt-x-high", "gpt-x-high", False),
            ("gpt-x-high", "gpt-y", True),
            ("prod", "gpt-4o-mini-2024-07-18", False),
            ("prod", "o3", False),
            ("prod", "gpt-4o", True),
        ]
    ):
        assert answer(one, str(n), model, name) is redirected, (model, name)


def test_after_a_few_redirects_an_alert_says_who_answers_for_whom() -> None:
    one = engine(PLAIN)
    for n in range(FEW_REDIRECTS - 1):
        assert answer(one, str(n), "a", "c")
    assert kinds(one) == []
    one = again(one)
    assert answer(one, "third", "a", "c")
    (alert,) = one.take_alerts()
    assert (alert.kind, alert.model, alert.evidence["answered_by"]) == (
        "model_redirected",
        "a",
        "c",
    )
    told = sentence(alert_raised("r", alert))
    assert "c answers for a" in told and "--like a" in told and "answers_as" in told
    answer(one, "fourth", "a", "c")
    assert kinds(one) == []
    # Its own answer ends the count; so does another name.
    answer(one, "own", "a", "a")
    assert one.state.having(Endings).pieces == ()  # type: ignore[union-attr]
    for n in range(2 * FEW_REDIRECTS):
        answer(one, f"turns{n}", "a", "cd"[n % 2])
    assert kinds(one) == []


def test_a_redirect_that_was_a_mistake_is_corrected_by_a_later_bill() -> None:
    one = engine(PLAIN)
    assert answer(one, "1", "a", "c")
    one.settle("1", 0.002, revision=1, answered_by="a")
    assert not one.records["1"].is_redirected
    one.apply(Judged("1", 0.25, x=X), 1.0)
    assert one.state.arms["a"].rewards.predict(X) < engine(PLAIN).state.arms["a"].rewards.predict(X)


def test_a_router_whose_models_answer_themselves_keeps_nothing() -> None:
    one, plain = engine(PLAIN), engine(PLAIN)
    for n in range(5):
        answer(one, str(n), "a", "a-2026-01-01")
        answer(plain, str(n), "a", None)
    assert freeze(one) == freeze(plain)
    assert PIECE not in {piece for c in one.state.capabilities for piece in c.pieces}


def test_a_failed_call_tells_nothing_of_who_answers() -> None:
    one = engine(PLAIN)
    ask(one, "1", allowed_models=["a"])
    one.settle("1", 0.0, status="error", answered_by="c")
    assert not one.records["1"].is_redirected


@pytest.mark.parametrize("at", ["2027-3-31", "31.03.2027", "soon", "2027-03-31T00:00:00+02:00", 5])
def test_dates_are_dates_or_times_in_utc(at: Any) -> None:
    raw = {"router_id": "r", "models": {"a": {**PRICE, "retires_at": at}}}
    with pytest.raises(MalformedEvent, match="retires_at"):
        decode(RouterDeclared, orjson.dumps(raw))


def test_a_repeated_request_finds_its_answer_whatever_has_ended() -> None:
    one = engine(PLAIN)
    before = ask(one, "1", allowed_models=["a"])
    one.settle("1", 0.0, status="gone")
    assert one.play(Asked("1", X), 1.0).decision is one.records["1"]
    assert before.model == "a"
