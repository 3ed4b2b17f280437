"""Budgets of a run: what counts, who is ruled out, what is refused, and what is kept."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.declaring.configuration import config_of, declaration_of
from agents.publishing.published_values import route_value
from benchmarks.played import Played
from router_state import registered
from router_state.changes import Changes, Outcome
from router_state.config import RouterConfig
from router_state.drawers import IDLE_SECONDS
from router_state.events import Asked, Charged, Waited
from router_state.runs.run_budget import SessionSpent
from router_state.runs.runs import Runs
from router_state.state import invariants, record_bytes
from schemas.event import MalformedEvent, decode
from schemas.quick import Request, read
from schemas.requests import RequestSubmitted
from schemas.routers import RouterDeclared
from schemas.routes import RouteDecided
from tests.router_state.core_reference import context, freeze, having, thaw

X = context(1.0, 0.0, 0.0)
MODELS = {
    "small": {"input_price_per_m": 0.1, "output_price_per_m": 0.4, "expected_cost_usd": 0.001},
    "large": {"input_price_per_m": 5.0, "output_price_per_m": 20.0, "expected_cost_usd": 0.05},
}


def declared(**fields: Any) -> RouterDeclared:
    document = {"router_id": "r", "models": MODELS, "dimensions": 4, **fields}
    return decode(RouterDeclared, orjson.dumps(document))


def config(**fields: Any) -> RouterConfig:
    return config_of(declared(**fields), offset=1, references={})


def engine(**sessions: Any) -> Played:
    return Played.start(config(sessions=sessions) if sessions else config())


def again(one: Played) -> Played:
    """Return an engine that was stopped and started."""
    return thaw(freeze(one), {name: record.x for name, record in one.records.items()})


def ask(
    one: Played,
    request_id: str,
    *,
    session: str | None = "run",
    at: float = 0.0,
    budget: float | None = None,
    **more: Any,
) -> Changes:
    said = None if budget is None else {"runs": budget}
    return one.apply(Asked(request_id, X, session_id=session, fields=said, **more), at)


def left(changes: Changes) -> float | None:
    assert changes.decision is not None
    call = changes.decision.call
    return None if call is None else call.kept.get("runs")


def charged(one: Played, session: str = "run") -> float:
    run = having(one.state, Runs).known.find(session)
    assert run is not None
    return run.charged_usd


def test_what_is_expected_and_then_billed_counts() -> None:
    one = engine(budget_usd=1.0)
    first = ask(one, "1", allowed_models=["large"])
    assert first.decision is not None
    assert left(first) == 1.0 - first.decision.expected_cost_usd
    for revision, usd in enumerate([0.3, 0.2, 0.2]):
        one.apply(Charged("1", usd, revision=revision), 1.0)
        assert charged(one) == pytest.approx(usd)
    assert one.apply(Charged("1", 0.9, revision=1), 1.0).outcome is Outcome.DUPLICATE
    assert charged(one) == pytest.approx(0.2)
    # The same request again is the same answer, and costs the run nothing.
    repeated = ask(one, "1", allowed_models=["large"])
    assert repeated.outcome is Outcome.DUPLICATE and left(repeated) == left(first)
    assert charged(one) == pytest.approx(0.2)


def test_a_bill_that_does_not_come_stays_as_expected_until_it_comes_late() -> None:
    one = engine(budget_usd=1.0)
    decision = ask(one, "1").decision
    assert decision is not None
    one.apply(Waited(), 10_000.0)
    assert one.state.expired == 1 and charged(one) == decision.expected_cost_usd
    one.apply(Charged("1", 0.7), 10_001.0)
    assert charged(one) == pytest.approx(0.7)


def test_models_beyond_what_is_left_are_ruled_out() -> None:
    one = engine(budget_usd=0.5)
    ask(one, "1")
    one.apply(Charged("1", 0.495), 1.0)
    decision = ask(one, "2").decision
    assert decision is not None and decision.candidates is not None
    assert decision.model == "small" and decision.reason == "session_budget"
    assert decision.candidates.excluded == [None, "session_budget"]
    # Another run has its own budget, and a request without a session has none.
    assert left(ask(one, "3", session="other")) is not None
    assert left(ask(one, "4", session=None)) is None


def test_who_has_spent_all_gets_the_cheapest_model_or_is_refused() -> None:
    for mode in ("cheapest", "refuse"):
        one = engine(budget_usd=0.5, when_spent=mode)
        ask(one, "1")
        one.apply(Charged("1", 0.6), 1.0)
        before = freeze(one)
        changes = ask(one, "2")
        if mode == "cheapest":
            assert changes.decision is not None and changes.decision.model == "small"
            assert (left(changes) or 0.0) < -0.1
        else:
            assert isinstance(changes.refusal, SessionSpent)
            assert changes.refusal.reason == "session_spent" and freeze(one) == before
            # A correction of the bill lets the run go on, and so does a higher budget.
            assert ask(one, "3", budget=2.0).decision is not None
            one.apply(Charged("1", 0.1, revision=1), 2.0)
            assert ask(one, "4").decision is not None


def test_a_request_gives_its_session_a_budget_that_later_ones_share() -> None:
    one = engine()
    assert left(ask(one, "0")) is None
    assert left(ask(one, "1", budget=0.4, allowed_models=["small"])) == pytest.approx(
        0.4 - one.records["1"].expected_cost_usd
    )
    later = left(ask(one, "2", allowed_models=["small"]))
    assert later is not None and later < 0.4
    assert having(one.state, Runs).known.find("run").born == 2  # type: ignore[union-attr]
    # The bill of a request before the run's first one is none of its.
    before = charged(one)
    one.apply(Charged("0", 0.3), 1.0)
    assert charged(one) == before


def test_an_alert_tells_once_that_most_is_charged() -> None:
    one = engine(budget_usd=0.5)
    ask(one, "1")
    [alert] = one.apply(Charged("1", 0.4), 1.0).alerts
    assert alert.kind == "session_budget" and alert.size == pytest.approx(0.8)
    assert alert.evidence["session_id"] == "run" and alert.evidence["when_spent"] == "cheapest"
    one = again(one)
    assert one.apply(Charged("1", 0.45, revision=1), 1.0).alerts == []
    # A higher budget is another one.
    assert ask(one, "2", budget=1.0).alerts == []
    assert [a.kind for a in one.apply(Charged("1", 0.9, revision=2), 2.0).alerts] == [alert.kind]


def test_a_run_that_was_forgotten_begins_anew_and_owes_nothing() -> None:
    one = engine(budget_usd=0.5)
    ask(one, "1")
    runs = having(one.state, Runs)
    runs.known.clear()
    ask(one, "2", at=2 * IDLE_SECONDS)
    fresh = charged(one)
    one.apply(Charged("1", 0.49), 2 * IDLE_SECONDS)
    assert charged(one) == fresh == one.records["2"].expected_cost_usd
    invariants.check(one.state, one.records)


def test_a_router_without_budgets_keeps_nothing_of_runs() -> None:
    one = engine()
    for n in range(5):
        changes = ask(one, str(n))
        one.apply(Charged(str(n), 0.01), float(n))
        assert changes.decision is not None and changes.decision.call is not None
        assert "runs" not in changes.decision.call.kept
    assert not any("runs" in name or b"runs" in piece for name, piece in freeze(one).items())


Step = tuple[str, int, float]
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["ask", "bill", "revise", "expire", "stop"]),
        st.integers(0, 30),
        st.floats(0.0, 0.2),
    ),
    max_size=60,
)


@given(steps=STEPS, budget=st.floats(0.001, 0.5), seed=st.integers(0, 9))
def test_a_refusing_run_exceeds_its_budget_only_by_what_calls_cost_beyond_expectation(
    steps: list[Step], budget: float, seed: int
) -> None:
    one = Played.start(config(sessions={"budget_usd": budget, "when_spent": "refuse"}, seed=seed))
    for number, (kind, which, usd) in enumerate(steps):
        session = f"s{which % 2}"
        if kind == "ask":
            refused = ask(one, f"q{number}", session=session, at=float(number)).refusal
            assert refused is None or isinstance(refused, SessionSpent)
        elif kind in ("bill", "revise") and one.records:
            request_id = list(one.records)[which % len(one.records)]
            revision = number if kind == "revise" else 0
            one.apply(Charged(request_id, usd, revision=revision), float(number))
        elif kind == "expire":
            one.apply(Waited(), number + 10_000.0)
        elif kind == "stop":
            one = again(one)
        invariants.check(one.state, one.records)
        for name in ("s0", "s1"):
            calls = [r for r in one.records.values() if r.call and r.call.session_id == name]
            costs = [r.expected_cost_usd if r.bill is None else r.bill.cost_usd for r in calls]
            beyond = sum(
                max(c - r.expected_cost_usd, 0.0) for c, r in zip(costs, calls, strict=True)
            )
            assert sum(costs) <= budget + beyond + 1e-9
            if calls:
                assert charged(one, name) == pytest.approx(sum(costs), abs=1e-9)


def test_what_is_declared_and_asked_is_read_and_written_back() -> None:
    for fields in ({}, {"budget_usd": 2.0}, {"when_spent": "refuse"}):
        found = config(sessions=fields)
        assert found.capabilities["runs"].budget_usd == fields.get("budget_usd")
        document = declaration_of(found, "r")["sessions"]
        assert document == {"when_spent": "cheapest", **fields}
        kept = again(Played.start(found)).state.config
        assert kept.capabilities["runs"] == found.capabilities["runs"]
    said = {"router_id": "r", "request_id": "1", "context": [0.5, 1.0], "session_id": "s"}
    raw = orjson.dumps({**said, "session_budget_usd": 2})
    for request in (read(Request, key=None, value=raw), decode(RequestSubmitted, raw)):
        assert registered.request_fields(request) == {"runs": 2.0}
    plain = decode(RequestSubmitted, orjson.dumps(said))
    assert registered.request_fields(plain) is None


@pytest.mark.parametrize("usd", [0, -1, 2e6, "2"])
def test_a_budget_that_can_not_be_is_refused(usd: object) -> None:
    said = {"router_id": "r", "request_id": "1", "context": [0.5, 1.0], "session_id": "s"}
    with pytest.raises(MalformedEvent):
        decode(RequestSubmitted, orjson.dumps({**said, "session_budget_usd": usd}))
    with pytest.raises(MalformedEvent):
        declared(sessions={"budget_usd": usd})


def test_a_budget_of_no_session_is_refused() -> None:
    said = {"router_id": "r", "request_id": "1", "context": [0.5, 1.0], "session_budget_usd": 1}
    raw = orjson.dumps(said)
    with pytest.raises(MalformedEvent, match="needs session_id"):
        read(Request, key=None, value=raw)
    with pytest.raises(MalformedEvent, match="needs session_id"):
        decode(RequestSubmitted, raw)


def test_an_answer_says_what_is_left_and_says_it_again() -> None:
    one = engine(budget_usd=1.0)
    record = ask(one, "1").decision
    assert record is not None
    kept = record_bytes.unpack_record(record_bytes.pack_record(record))
    for each in (record, kept):
        answer = decode(RouteDecided, route_value("r", "1", each, repeat=False))
        assert answer.session_left_usd == 1.0 - record.expected_cost_usd
