"""What people look at: the live board, its drawing, the explanation of a decision."""

from __future__ import annotations

import io
import json
import math
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from rich.console import Console

from commands.cli.explain import _bill, superseded
from doors.console.explained_decision import BECAUSE, DOUBT, TERMS, explain_decision
from doors.console.output import print_json
from drawing import numbers
from drawing.alert_words import sentence
from drawing.budget_lines import per_request, standing_lines
from drawing.numbers import NO_PRICE, UNTIL, dual, dual_in_words, times
from router_state.pacing.dollar_dual import UNREACHABLE
from schemas import (
    AlertRaised,
    Candidate,
    CostReported,
    DeadLetter,
    LambdaUpdated,
    RewardObserved,
    RouteDecided,
    RouteReason,
)
from schemas.alerts import AlertKind
from schemas.lambdas import FloorStanding, PeriodStanding
from streams.settings import load_settings
from watching import screen
from watching.board import Board

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


def decision(number: int, model: str = "small", **changed: Any) -> RouteDecided:
    candidates = (
        Candidate(
            model="small",
            mean=0.79,
            bonus=0.002,
            penalty=0.004,
            score=0.788,
            expected_cost_usd=2.9e-5,
            excluded=None,
        ),
        Candidate(
            model="large",
            mean=0.92,
            bonus=0.003,
            penalty=0.08,
            score=0.843,
            expected_cost_usd=5.3e-4,
            excluded="ceiling",
        ),
    )
    fields: dict[str, Any] = {
        "router_id": "default",
        "request_id": f"r-{number}",
        "model": model,
        "seq": number,
        "reason": RouteReason.UCB,
        "propensity": 1.0,
        "candidates": candidates,
        "expected_reward": 0.79,
        "expected_cost_usd": 2.9e-5,
        "lambda_t": 0.1,
        "config_offset": 4,
        "decided_at": NOON,
        "repeat": False,
    }
    return RouteDecided(**{**fields, **changed})


def state(**changed: Any) -> LambdaUpdated:
    fields: dict[str, Any] = {
        "router_id": "default",
        "seq": 10,
        "lambda_t": 0.25,
        "budget_usd_per_request": 0.001,
        "spend_usd": 0.0096,
        "committed_usd": 0.001,
        "in_flight": 2,
        "decided": 10,
        "settled": 8,
        "expired": 0,
        "rewards_applied": 5,
        "unmatched_cost_usd": 0.0,
        "config_offset": 4,
        "observed_at": NOON,
    }
    return LambdaUpdated(**{**fields, **changed})


def standing(**changed: Any) -> PeriodStanding:
    """Return how the budget of a month stands."""
    fields: dict[str, Any] = {
        "period": "month",
        "begins": NOON,
        "ends": NOON + timedelta(days=9),
        "usd": 24.0,
        "charged_usd": 18.0,
        "left_usd": 6.0,
        "reserved_usd": 0.02,
        "requests_left": 2990.0,
        "requests_low": 2500.0,
        "requests_high": 3500.0,
        "per_request_usd": 0.002,
        "forecast_usd": 23.98,
        "forecast_low_usd": 23.0,
        "forecast_high_usd": 25.0,
        "binds": True,
    }
    return PeriodStanding(**{**fields, **changed})


def drift() -> AlertRaised:
    return AlertRaised(
        router_id="default",
        kind=AlertKind.DRIFT,
        model="large",
        signal="reward",
        direction="down",
        size=-0.31,
        since=NOON,
        evidence={},
        observed_at=NOON,
    )


def dead(reason: str) -> DeadLetter:
    return DeadLetter(
        topic="pb.costs",
        partition=0,
        offset=1,
        stage="decode",
        exception_class="E",
        message="",
        reason=reason,
    )


def busy_board() -> Board:
    board = Board("default")
    for number in range(1, 9):
        board.observe(decision(number, "small" if number % 4 else "large"), at=number / 4)
        board.observe(
            CostReported(router_id="default", request_id=f"r-{number}", cost_usd=0.0012),
            at=number / 4,
        )
    board.observe(decision(1, repeat=True), at=2.0)
    board.observe(
        RewardObserved(router_id="default", request_id="r-1", reward=0.8, source="judge"), at=2.0
    )
    board.observe(
        RewardObserved(router_id="default", request_id="r-2", reward=0.6, source="judge"), at=2.0
    )
    board.observe(state(), at=2.0)
    board.observe(drift(), at=2.0)
    board.observe(dead("orphan_cost"), at=2.0)
    return board


def text(renderable: Any, *, width: int = 120) -> str:
    out = Console(file=io.StringIO(), width=width)
    out.print(renderable)
    assert isinstance(out.file, io.StringIO)
    return out.file.getvalue()


def test_a_board_counts_decisions_once_and_repeats_apart() -> None:
    board = busy_board()
    assert (board.decided, board.repeats, board.billed) == (8, 1, 8)
    assert board.shares == {"large": 0.25, "small": 0.75}


def test_spend_against_budget_is_the_mean_bill_by_the_workers_account() -> None:
    assert busy_board().spend_per_budget == 0.0096 / 8 / 0.001


def test_a_router_that_was_let_go_and_declared_anew_is_another_one() -> None:
    later = NOON + timedelta(hours=1)
    board = Board("default", state=state(decided=1, settled=0, spend_usd=0.0, observed_at=later))
    for number in range(1, 9):
        board.observe(decision(number, "large"), at=0.0)
    board.observe(decision(1, "large"), at=0.0)  # delivered again
    assert board.decided == 9
    again = decision(1, "small", request_id="r-9", decided_at=later)
    board.observe(again, at=0.0)
    for number in (1, 9):
        label = RewardObserved(
            router_id="default", request_id=f"r-{number}", reward=number / 10, source="judge"
        )
        board.observe(label, at=0.0)
    assert (board.decided, board.shares, board.mean_reward) == (1, {"small": 1.0}, 0.9)


def test_a_ratio_to_next_to_nothing_stays_readable(capsys: pytest.CaptureFixture[str]) -> None:
    assert tuple(map(numbers.number, (1e296, 12_345.6, -2e15))) == ("1e+296", "12,346", "−2e+15")
    print_json({"ratio": math.inf, "text": "Infinity"})
    assert json.loads(capsys.readouterr().out) == {"ratio": None, "text": "Infinity"}


@pytest.mark.parametrize(
    ("factor", "said"),
    [(0.5, "0.5"), (1.49, "1.5"), (9.96, "10"), (151.0, "150"), (6e5, "600,000"), (2e9, "2e+09")],
)
def test_a_factor_has_two_digits_and_no_exponent_up_to_a_million(factor: float, said: str) -> None:
    assert times(factor) == f"{said} times"


def test_failed_calls_do_not_make_bills_in_tokens_look_free() -> None:
    board = Board("default")
    for number in (1, 2):
        board.observe(decision(number), at=0.0)
        board.observe(
            RewardObserved(
                router_id="default", request_id=f"r-{number}", reward=0.8, source="judge"
            ),
            at=0.0,
        )
    answered = {"request_id": "r-1", "input_tokens": 900, "output_tokens": 80}
    failed = {"request_id": "r-2", "cost_usd": 0.0, "status": "timeout"}
    for bill in (answered, failed):
        board.observe(CostReported.model_validate({"router_id": "default", **bill}), at=0.0)
    board.observe(state(), at=0.0)
    assert board.pareto().router is None


def test_an_explanation_names_the_session_and_who_comes_next() -> None:
    told = text(explain_decision(decision(1, session_id="chat-7", fallbacks=("large",))))
    assert "session chat-7" in told and "Should it not answer: large." in told
    assert "of its budget" not in told
    told = text(explain_decision(decision(1, session_id="run", session_left_usd=0.25)))
    assert "session run ($0.25 left of its budget)" in told
    told = text(explain_decision(decision(1)))
    assert "session" not in told and "Should it not answer" not in told


@pytest.mark.parametrize(
    ("bill", "told"),
    [
        ({"cost_usd": 0.0, "status": "timeout", "latency_ms": 4000}, ", status timeout, ended"),
        (
            {"input_tokens": 90, "output_tokens": 8, "cached_input_tokens": 60, "model": "large"},
            "90 input (60 cached) and 8 output tokens, of large",
        ),
        (
            {"cost_usd": 0.1, "first_token_ms": 300, "latency_ms": 1200},
            ", first token after 300 ms",
        ),
    ],
)
def test_an_explained_bill_says_how_the_call_went(bill: dict[str, Any], told: str) -> None:
    event = CostReported.model_validate({"router_id": "r", "request_id": "a", **bill})
    assert told in _bill(event, event.cost_usd)


def test_without_a_budget_or_a_bill_there_is_no_ratio() -> None:
    board = Board("default")
    assert board.spend_per_budget is None
    board.observe(state(budget_usd_per_request=None), at=0.0)
    assert board.spend_per_budget is None
    board.observe(state(settled=0, spend_usd=0.0), at=0.0)
    assert board.spend_per_budget is None


def test_an_older_state_does_not_replace_a_newer_one() -> None:
    board = Board("default")
    board.observe(state(lambda_t=0.5, observed_at=NOON.replace(hour=13)), at=0.0)
    board.observe(state(lambda_t=0.1), at=1.0)
    assert board.state is not None
    assert board.state.lambda_t == 0.5


def test_the_rate_is_of_the_last_seconds_and_falls_to_zero() -> None:
    board = Board("default")
    for number in range(1, 101):
        board.observe(decision(number), at=number / 100)
    assert 90 <= board.rate(1.0) <= 110
    assert board.rate(60.0) == 0.0


def test_decisions_from_before_the_view_have_no_rate() -> None:
    board = Board("default")
    board.observe(decision(1), at=float("-inf"))
    assert board.rate(0.0) == 0.0


def test_the_drawing_shows_every_number_of_the_board() -> None:
    shown = text(screen.draw(busy_board(), now=2.0, total=20))
    for part in (
        "8 of 20",
        "0.700",
        "$0.0096",
        "$0.001",
        "1.200",
        "0.25",
        "75%",
        "25%",
        "orphan_cost 1",
        "large: quality fell by 0.31",
    ):
        assert part in shown
    assert "orphan_cost 1" in shown
    assert "large: quality fell by 0.31" in shown


def test_a_board_begins_with_the_answer_and_its_picture() -> None:
    board = busy_board()
    drawn = text(screen.draw(board, now=2.0), width=80).splitlines()
    # Two labels, 0.8 and 0.6, and bills of $0.0012.
    assert "Quality 0.700 at $0.0012 a request: too few requests yet to compare." in drawn[1]
    assert not any(line.lstrip().startswith("1.2") for line in drawn)
    picture = "\n".join(drawn[2:16])
    assert all(
        sign in picture for sign in ("this router ★", "small ○", "○ large", "dollars a request")
    )
    assert max(map(len, drawn)) <= 80
    unlabelled = Board("default")
    unlabelled.observe(decision(1), at=0.0)
    unlabelled.observe(state(), at=0.0)
    assert "★" not in text(screen.draw(unlabelled, now=0.0))


def test_a_board_says_what_to_type_next_until_there_is_a_decision() -> None:
    board = Board("default")
    assert "pbstream models add NAME" in text(screen.draw(board, now=0.0))
    declared = state(decided=0, settled=0, in_flight=0, lambda_t=0.3)
    board.observe(declared, at=0.0)
    assert "pbstream request" in text(screen.draw(board, now=0.0))
    assert list(board.lambda_history) == []
    board.observe(declared.model_copy(update={"decided": 1}), at=0.0)
    assert "pbstream" not in text(screen.draw(board, now=0.0))
    assert list(board.lambda_history) == [0.3]


def test_an_empty_board_can_be_drawn_on_a_narrow_terminal() -> None:
    assert "requests/s" in text(screen.draw(Board("default"), now=0.0), width=60)


def test_the_line_and_the_document_say_the_same() -> None:
    board = busy_board()
    line = screen.line(board, now=2.0, total=20)
    document: Any = screen.as_json(board, now=2.0)
    for part in (
        "decided 8/20",
        "cost ÷ budget 1.20",
        "λ_t 0.25",
        "reward 0.700",
        "small 75%",
        "dead letters 1",
        "alerts 1",
    ):
        assert part in line
    assert document["spend_per_budget"] == board.spend_per_budget
    assert document["dead_letters"] == {"orphan_cost": 1}
    assert document["state"]["lambda_t"] == 0.25


def test_an_explanation_holds_every_term_of_every_candidate() -> None:
    shown = text(explain_decision(decision(7)), width=160)
    for part in (
        "→ small",
        "highest score",
        "expected reward",
        "0.7900",
        "+0.0020",
        "−0.0040",
        "0.7880",
        "$0.000029",
        "+0.0030",
        "−0.0800",
        "0.8430",
    ):
        assert part in shown
    assert "above the price ceiling" in shown
    for part in (
        "decision 7 of router default",
        "λ_t 0.1",
        "configuration 4",
        "2026-11-21 12:00:00 UTC",
    ):
        assert part in shown


def test_each_reason_of_a_decision_has_a_sentence() -> None:
    shown = {reason: text(explain_decision(decision(1, reason=reason))) for reason in RouteReason}
    assert len({sentence.splitlines()[0] for sentence in shown.values()}) == len(RouteReason)
    assert not any(f": {reason.value}." in sentence for reason, sentence in shown.items())


def test_a_propensity_below_one_is_told() -> None:
    assert "with probability 0.25" in text(
        explain_decision(decision(1, propensity=0.25)), width=200
    )


def test_a_repeat_without_candidates_is_explained_without_a_table() -> None:
    shown = text(explain_decision(decision(1, candidates=None, repeat=True)))
    assert "with the first one" in shown
    assert "answered again" in shown


def test_no_column_of_an_explanation_stands_twice_and_each_is_a_word_of_the_field() -> None:
    assert not {*TERMS} & {*DOUBT} - {"model"}
    for columns in (TERMS, DOUBT):
        assert len({*columns}) == len(columns)
    for symbol in ("mean", "bonus", "drawn", "of nothing"):
        assert symbol not in TERMS + DOUBT
    assert "expected reward + exploration − penalty" in BECAUSE["ucb"]


def test_where_no_price_meets_the_budget_words_stand_for_lambda_and_say_how_it_ends() -> None:
    board = busy_board()
    board.observe(state(lambda_t=UNREACHABLE, observed_at=NOON.replace(hour=13)), at=2.0)
    assert board.state is not None
    dear = decision(1, lambda_t=UNREACHABLE)
    whole = {
        "explain": text(explain_decision(dear), width=200),
        "watch": text(screen.draw(board, now=2.0), width=200),
    }
    for name, shown in whole.items():
        assert UNTIL in shown, name
    for name, shown in {**whole, "line": screen.line(board, now=2.0)}.items():
        assert NO_PRICE in shown and "1000000" not in shown and "1e+06" not in shown, name


@pytest.mark.parametrize(
    ("lambda_t", "shown"),
    [
        (None, "–"),
        (0.0, "0"),
        (0.12345, "0.1235"),
        (1234.5, "1,234"),
        (999_999.0, "999,999"),
        (UNREACHABLE, NO_PRICE),
    ],
)
def test_lambda_is_a_number_or_words(lambda_t: float | None, shown: str) -> None:
    assert dual(lambda_t) == shown
    assert bool(lambda_t is not None and dual_in_words(lambda_t)) == (shown == NO_PRICE)


@pytest.mark.parametrize(
    ("value", "digits", "signed", "shown"),
    [
        (None, 3, False, "–"),
        (-0.0001, 3, False, "0.000"),
        (-0.0, 3, True, "+0.000"),
        (-0.25, 2, False, "−0.25"),
        (0.25, 2, True, "+0.25"),
        (-537_000.4, 3, False, "−537,000"),
    ],
)
def test_a_number_has_no_sign_at_zero_and_no_decimals_where_it_is_large(
    value: float | None, digits: int, signed: bool, shown: str
) -> None:
    assert numbers.number(value, digits, signed=signed) == shown


def alert(kind: str, **fields: Any) -> AlertRaised:
    known = {"model": "large", "direction": "up", "size": 1.0, "evidence": {}, **fields}
    return AlertRaised(router_id="r", kind=AlertKind(kind), since=NOON, observed_at=NOON, **known)


@pytest.mark.parametrize(
    ("raised", "said"),
    [
        (
            alert("drift", signal="reward", size=0.2, evidence={"rewards": 41}),
            "large: quality rose by 0.20, seen in 41 rewards",
        ),
        (
            alert("drift", signal="cost", evidence={"factor": 2.24, "bills": 7}),
            "large: a call costs 2.2 times what it did, seen in 7 bills",
        ),
        (alert("drift", signal="cost", direction="down"), "large: cost fell"),
        (alert("recovered", signal="reward"), "large: as good as before again"),
        (
            alert("cap_reached", model=None, evidence={"cap_usd": 5.0, "seconds": 3600.0}),
            "a cap in dollars is used up ($5 an hour)",
        ),
        (
            alert(
                "session_budget",
                model=None,
                size=0.82,
                evidence={"budget_usd": 2.0, "session_id": "s"},
            ),
            "a session has spent 82 % of its budget ($2): s",
        ),
        (
            alert("budget_unreachable", size=1.3, evidence={"cheapest_usd": 0.002}),
            "costs 1.3 times the budget ($0.002 a request)",
        ),
    ],
)
def test_an_alert_is_a_sentence(raised: AlertRaised, said: str) -> None:
    assert said in sentence(raised)


def test_a_board_fits_a_narrow_terminal() -> None:
    shown = text(screen.draw(busy_board(), now=2.0), width=70)
    assert "budget/request" in shown
    assert "…" not in shown


def test_every_kind_of_alert_has_a_sentence() -> None:
    for kind in AlertKind:
        assert len(sentence(alert(kind.value, evidence={"needed_usd": 0.5}))) > 10


def test_budgets_of_a_period_are_said_in_words() -> None:
    floor = FloorStanding(
        expected_reward=0.93, best_reward=0.94, needed_usd_per_request=0.0015, binds=False
    )
    board = Board("default")
    board.observe(state(budgets=(standing(),), floor=floor), at=0.0)
    assert board.spend_per_budget is None
    lines = standing_lines(board.state or state(), now=NOON)
    assert "$18 spent, $6 left until 2026-11-30 12:00 UTC, in 9.0 days, for some 2,990" in lines[0]
    assert "will have been spent" in lines[0] and lines[0].endswith("and it binds")
    first = state(budgets=(standing(),), decided=0)
    (said,) = standing_lines(first, now=NOON)
    assert said.endswith("no traffic seen yet, so nothing is forecast") and "requests" not in said
    spent = state(budgets=(standing(left_usd=-0.5, charged_usd=24.5),))
    assert "nothing left until" in standing_lines(spent, now=NOON)[0]
    assert per_request(spent) == "nothing is left" and per_request(first) == "$0.001"
    # A router that nobody asks is published no more, and its period may have ended meanwhile.
    (ended,) = standing_lines(first, now=NOON + timedelta(days=9))
    assert "$18 spent of the period that ended on 2026-11-30 12:00 UTC" in ended
    assert "the floor takes $0.0015 a request" in lines[1]
    assert "left of the month $6" in screen.line(board, now=0.0)


@pytest.mark.parametrize(
    ("kind", "evidence", "words"),
    [
        ("budget_spent", {"usd": 5.0, "period": "day", "when_spent": "refuse"}, "are refused"),
        ("goals_contradict", {"needed_budget_usd_per_request": None}, "no budget would meet it"),
        (
            "goals_contradict",
            {
                "needed_budget_usd_per_request": 0.01,
                "needed_budget_usd": 30.0,
                "period": "month",
            },
            r"\$30 per month would meet it",
        ),
        ("goals_contradict", {"needed_budget_usd_per_request": 0.01}, r"\$0.01 a request would"),
    ],
)
def test_alerts_of_periods_say_what_follows(
    kind: str, evidence: dict[str, Any], words: str
) -> None:
    raised = AlertRaised(
        router_id="default",
        kind=AlertKind(kind),
        direction="up",
        size=0.1,
        since=NOON,
        evidence=evidence,
        observed_at=NOON,
    )
    assert re.search(words, sentence(raised))


def test_a_label_of_a_lower_source_is_not_shown_as_if_it_counted() -> None:
    labels = [
        RewardObserved(
            router_id="default", request_id="a", reward=0.5, source=source, revision=revision
        )
        for source, revision in (
            ("user", 0),
            ("human", 0),
            ("judge", 3),
            ("human", 0),
            ("human", 1),
        )
    ]
    notes = superseded(labels, load_settings().source_rank)
    assert [bool(note) for note in notes] == [False, False, True, True, False]
    assert "by human counts" in notes[2] and "higher revision" in notes[3]
