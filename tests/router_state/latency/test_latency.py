"""Targets of latency: what is learned of times, what a target does, and what it says."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from agents.declaring.configuration import config_of, declaration_of
from agents.publishing.published_values import lambda_value, route_value
from benchmarks.played import Played
from drawing.alert_words import sentence
from drawing.budget_lines import standing_lines
from router_state.changes import Alert, Journal
from router_state.config import Price
from router_state.errors import InvalidConfig
from router_state.events import Asked, Charged, Judged
from router_state.instants import utc
from router_state.kernel import WINDOW, SharedPrior, waits
from router_state.latency.goal import TAIL, LatencyGoal
from router_state.latency.latency_target import Latency
from router_state.latency.observing import Taken
from router_state.latency.speed import Speed
from router_state.latency.timing import ENOUGH_CALLS, UNHEARD, Timing
from router_state.learning.guess import LATENCIES
from router_state.pacing.pacer import Unpaced
from router_state.registered import candidate_fields
from router_state.state import invariants, portable
from router_state.state.config_bytes import config_body, config_from
from schemas.alerts import AlertKind, AlertRaised
from schemas.event import MalformedEvent, decode
from schemas.lambdas import LambdaUpdated
from schemas.reasons import Reason
from schemas.routers import RouterDeclared
from schemas.routes import RouteDecided
from tests.router_state.core_reference import declaration, freeze, thaw

PRICES = {"slow": Price(1.0, 4.0), "fast": Price(1.0, 4.0), "dear": Price(4.0, 16.0)}
TWO = {name: PRICES[name] for name in ("slow", "fast")}
REWARDS = {"slow": 0.7, "fast": 0.6, "dear": 0.9}
SECONDS = {"slow": 5.0, "fast": 0.5, "dear": 0.5}
USD = {"slow": 0.0005, "fast": 0.0005, "dear": 0.002}


def play(
    latency: LatencyGoal | None,
    *,
    n: int = 600,
    seconds: Any = SECONDS,
    budget: float | None = None,
    told: bool = True,
    first_token: bool = False,
    models: tuple[str, ...] = ("slow", "fast"),
) -> tuple[Played, list[str], list[Alert]]:
    """Play requests of one router; return it, the models it chose, and its alerts."""
    engine = Played.start(
        declaration(
            {name: PRICES[name] for name in models},
            profile="live",
            budget=budget,
            dimensions=2,
            latency=latency,
        )
    )
    rng, chosen, alerts = np.random.default_rng(1), [], []
    for i in range(n):
        record = engine.decide(str(i), np.array([rng.normal(), 1.0]), now=float(i))
        chosen.append(record.model)
        took = seconds[record.model] if isinstance(seconds, dict) else seconds(record.model, i)
        took *= math.exp(0.3 * rng.normal())
        name = "first_token" if first_token else "latency"
        usd = USD[record.model]
        engine.settle(str(i), cost_usd=usd, **({name: took} if told else {}))
        engine.learn(str(i), reward=REWARDS[record.model] + 0.05 * rng.uniform(-1.0, 1.0))
        alerts += engine.take_alerts()
    invariants.check(engine.state, engine.records)
    return engine, chosen, alerts


def timing_of(engine: Played) -> Timing:
    """Return what a router with a target knows of times."""
    latency = engine.state.having(Latency)
    assert latency is not None
    return latency.timing


def share(chosen: list[str], model: str = "slow", *, of_last: int = 300) -> float:
    return chosen[-of_last:].count(model) / of_last


def test_one_call_in_twenty_is_slow_where_the_better_model_is() -> None:
    _, chosen, alerts = play(LatencyGoal(p95_seconds=2.0))
    assert 0.03 <= share(chosen) <= TAIL + 0.01
    assert alerts == []
    _, free, _ = play(None)
    assert share(free) == 1.0


def test_seconds_are_solved_without_dollars_and_the_window_goes_with_its_last_dual() -> None:
    engine, _, _ = play(LatencyGoal(mean_seconds=1.0), n=200)
    state = engine.state
    assert type(state.pacer) is Unpaced and timing_of(engine).per_unit > 0.0
    window = state.arms.window
    assert window is not None and window.size == WINDOW
    # Another limit goes on with its contexts.
    engine.configure(_with(engine, LatencyGoal(mean_seconds=2.0)), now=200.0)
    assert state.arms.window is window
    engine.take_alerts()
    before = set(freeze(engine))
    engine.configure(_with(engine, None), now=201.0)
    assert state.arms.window is None
    assert {name for name in before - set(freeze(engine)) if "window" in name}
    invariants.check(state, engine.records)


def test_a_mean_is_kept_by_a_mixture() -> None:
    engine, chosen, _ = play(LatencyGoal(mean_seconds=1.0), n=1000)
    # 5.2 and 0.52 seconds on average, lognormal: a ninth of the calls may be slow.
    assert share(chosen) == pytest.approx(0.1, abs=0.04)
    timing = timing_of(engine)
    assert timing.mean_seconds == pytest.approx(1.0, rel=0.2)


def test_the_time_of_the_first_token_is_another_one() -> None:
    goal = LatencyGoal(of="first_token", p95_seconds=2.0)
    _, chosen, _ = play(goal, first_token=True)
    assert share(chosen) <= TAIL + 0.01
    engine, untold, alerts = play(goal)  # the bills say when the whole answer was there
    assert share(untold) == 1.0
    assert [alert.kind for alert in alerts] == ["latency_unknown"]
    assert not timing_of(engine).in_use


def test_a_price_of_a_second_counts_as_dollars_do() -> None:
    # The budget is enough for the dear model on a third of the requests.
    for usd, slow in ((None, 2 / 3), (0.01, 0.0)):
        goal = None if usd is None else LatencyGoal(usd_per_second=usd)
        _, chosen, _ = play(goal, budget=0.001, models=("dear", "slow", "fast"))
        assert share(chosen, "dear") == pytest.approx(1 / 3, abs=0.05)
        assert share(chosen, "slow") == pytest.approx(slow, abs=0.05)
    # Where a dollar is worth nothing, so is a second.
    engine, chosen, _ = play(LatencyGoal(usd_per_second=10.0), budget=1.0)
    assert share(chosen) == 1.0
    assert timing_of(engine).per_unit == 0.0


def test_without_times_a_target_changes_nothing_and_says_so() -> None:
    goal = LatencyGoal(p95_seconds=2.0)
    with_target, chosen, alerts = play(goal, told=False, budget=0.01)
    without, free, _ = play(None, told=False, budget=0.01)
    assert chosen == free
    ours, theirs = with_target.state, without.state
    assert (ours.lambda_t, ours.spend_usd) == (theirs.lambda_t, theirs.spend_usd)
    assert [(alert.kind, alert.size) for alert in alerts] == [("latency_unknown", UNHEARD)]
    told = AlertRaised(
        router_id="r",
        kind=AlertKind(alerts[0].kind),
        direction="up",
        size=alerts[0].size,
        since=utc(1.0),
        evidence=dict(alerts[0].evidence),
        observed_at=utc(1.0),
    )
    assert sentence(told) == ("150 answers in a row had no time: the target has no effect on them")


def test_times_on_bills_change_nothing_without_a_target() -> None:
    told, chosen, _ = play(None, told=True, budget=0.001)
    untold, other, _ = play(None, told=False, budget=0.001)
    assert chosen == other
    assert freeze(told) == freeze(untold)


def test_a_target_that_cannot_be_met_is_said_with_what_would() -> None:
    engine, chosen, alerts = play(LatencyGoal(p95_seconds=0.2))
    (alert,) = alerts
    assert alert.kind == "latency_unreachable"
    # The fast model's 95 % are within 0.5·exp(0.3·1.64) s.
    assert alert.evidence["reachable_ms"] == pytest.approx(820.0, rel=0.1)
    assert alert.evidence["needed_usd_per_request"] is None
    assert share(chosen) < 0.05
    invariants.check(engine.state, engine.records)


def test_a_budget_wins_and_the_alert_names_the_one_that_would_do() -> None:
    prices = {"slow": Price(0.1, 0.1), "fast": Price(10.0, 10.0)}
    goal = LatencyGoal(mean_seconds=1.0)
    engine = Played.start(
        declaration(prices, profile="live", budget=0.001, dimensions=2, latency=goal)
    )
    rng, alerts, spent = np.random.default_rng(1), [], 0.0
    for i in range(800):
        record = engine.decide(str(i), np.array([rng.normal(), 1.0]), now=float(i))
        usd = {"slow": 0.0001, "fast": 0.01}[record.model]
        spent += usd
        engine.settle(str(i), cost_usd=usd, latency=SECONDS[record.model])
        engine.learn(str(i), reward=REWARDS[record.model])
        alerts += engine.take_alerts()
    assert spent / 800 <= 1.05 * 0.001
    (alert,) = [alert for alert in alerts if alert.kind == "latency_unreachable"]
    # 8 of 9 requests would have to go to the fast model.
    assert alert.evidence["needed_usd_per_request"] == pytest.approx(0.0089, rel=0.1)


def test_a_model_that_became_fast_is_found_by_single_trials() -> None:
    def seconds(model: str, i: int) -> float:
        return 0.5 if model == "fast" or i >= 2000 else 50.0

    _, chosen, alerts = play(LatencyGoal(mean_seconds=0.8), n=6000, seconds=seconds)
    assert share(chosen[:2000]) < 0.03
    assert share(chosen) > 0.9
    assert ("drift", "latency") in [(alert.kind, alert.signal) for alert in alerts]


def test_a_call_that_was_given_up_counts_as_at_least_its_time() -> None:
    goal = LatencyGoal(p95_seconds=2.0)
    engine, _, _ = play(goal, n=200)
    timing = timing_of(engine)
    engine.decide("late", np.array([0.0, 1.0]), now=200.0)
    before, wait = timing.debt.usd, _wait(engine, "late")
    engine.settle("late", cost_usd=0.0, status="timeout", latency=10.0, model="fast")
    assert timing.debt.usd == pytest.approx(before + 1.0 - wait)
    # The answer that comes after it has kept the caller waiting for both.
    known, learned = timing.count, timing.speeds["slow"].costs.ratio
    engine.settle("late", cost_usd=0.002, model="slow", revision=1, latency=0.1)
    assert timing.debt.usd == pytest.approx(before + 1.0 - wait)
    assert timing.count == known + 1.0
    assert timing.speeds["slow"].costs.ratio < learned
    # One that was given up early says nothing of the model, and pays nothing back.
    engine.decide("early", np.array([0.0, 1.0]), now=201.0)
    before, ratio = timing.debt.usd, timing.speeds["fast"].costs.ratio
    engine.settle("early", cost_usd=0.0, status="error", latency=0.01, model="fast")
    assert (timing.debt.usd, timing.speeds["fast"].costs.ratio) == (before, ratio)


def _wait(engine: Played, request_id: str) -> float:
    taken = engine.records[request_id].kept_by("latency", Taken)
    assert taken is not None and taken.charged is not None
    return taken.charged


def test_state_is_the_same_after_a_stop_and_a_file() -> None:
    engine, _, _ = play(LatencyGoal(p95_seconds=2.0), n=300, budget=0.001)
    contexts = {name: record.x for name, record in engine.records.items()}
    again = thaw(freeze(engine), contexts)  # type: ignore[arg-type]
    assert freeze(again) == freeze(engine)
    for one in (engine, again):
        one.decide("next", np.array([0.5, 1.0]), now=1000.0)
    assert freeze(again) == freeze(engine)
    data = portable.pack(engine.state, {})
    other = Played.start(
        declaration(
            TWO,
            profile="live",
            budget=0.001,
            dimensions=2,
            latency=LatencyGoal(p95_seconds=2.0),
        ).__class__(**{**_fields(engine), "snapshot": data})
    )
    timing = timing_of(other)
    assert timing.in_use and timing.debt.usd == 0.0


def _fields(engine: Played) -> dict[str, Any]:
    config = engine.state.config
    return {name: getattr(config, name) for name in config.__slots__}


def test_what_was_learned_stays_with_another_limit_and_goes_with_other_times() -> None:
    engine, _, _ = play(LatencyGoal(p95_seconds=2.0), n=200)
    timing = timing_of(engine)
    slow = timing.speeds["slow"].costs.ratio
    engine.configure(_with(engine, LatencyGoal(mean_seconds=1.0)), now=200.0)
    assert timing_of(engine) is timing and timing.speeds["slow"].costs.ratio == slow
    assert timing.debt.usd == 0.0
    engine.configure(_with(engine, LatencyGoal(of="first_token", mean_seconds=1.0)), now=200.0)
    assert not timing_of(engine).in_use
    engine.configure(_with(engine, None), now=200.0)
    assert engine.state.having(Latency) is None
    assert not [name for name in freeze(engine) if "latenc" in name]
    invariants.check(engine.state, engine.records)


def _with(engine: Played, latency: LatencyGoal | None) -> Any:
    capabilities = {} if latency is None else {"latency": latency}
    return type(engine.state.config)(**{**_fields(engine), "capabilities": capabilities})


def test_chances_are_those_of_a_lognormal() -> None:
    prior = SharedPrior("p", 2, LATENCIES, Journal())
    speed = Speed("m", prior, Journal())
    rng = np.random.default_rng(3)
    for i in range(3000):
        x = np.array([rng.normal(), 1.0])
        took = math.exp(0.4 + 0.3 * x[0] + 0.5 * rng.normal())
        assert speed.learn(took, x, seq=i, now=float(i)) is None
    assert speed.variance == pytest.approx(0.25, rel=0.1)
    x = np.array([[1.0, 1.0]], dtype=np.float32)
    seconds, slow = waits(x, 1, 2, [speed.costs], variances=np.array([speed.spread]), limit=4.0)
    assert seconds[0] == pytest.approx(math.exp(0.7 + 0.125), rel=0.1)
    # P(Z > (ln 4 − 0.7)/0.5)
    assert slow[0] == pytest.approx(0.0849, abs=0.02)


@pytest.mark.parametrize("seconds", [0.0, 1e-9, 86_400.0])
def test_any_time_can_be_learned(seconds: float) -> None:
    engine, _, _ = play(LatencyGoal(p95_seconds=2.0), n=40, seconds=lambda model, i: seconds)
    record = engine.decide("x", np.array([0.0, 1.0]), now=50.0)
    published = candidate_fields(record)["expected_latency_ms"]
    assert len(published) == len(engine.state.arms.names)
    assert all(isinstance(one, float) and math.isfinite(one) for one in published)


def test_what_is_published_fits_the_schemas() -> None:
    for goal in (
        LatencyGoal(p95_seconds=4.0),
        LatencyGoal(of="first_token", mean_seconds=0.8),
        LatencyGoal(usd_per_second=0.002),
    ):
        for n in (0, 10, 60):
            engine, _, _ = play(goal, n=n, budget=0.001, first_token=goal.of == "first_token")
            state = engine.state
            value = lambda_value(
                "r",
                state,
                observed_at=utc(100.0),
                applied={"requests": 0, "costs": 0, "rewards": 0},
                unbooked=None,
            )
            told = decode(LambdaUpdated, value)
            assert told.latency is not None and told.latency.known == n
            assert told.latency.of == goal.of
            (line,) = standing_lines(told)
            assert ("no effect yet" in line) == (n < ENOUGH_CALLS)
            # What counts is named: the field, and that earlier bills do not.
            field = "first_token_ms" if goal.of == "first_token" else "latency_ms"
            why = f"{n} of the {ENOUGH_CALLS:.0f} calls that it takes have reported {field}; only"
            assert (why in line) == (n < ENOUGH_CALLS)
    record = engine.decide("last", np.array([0.0, 1.0]), now=100.0)
    route = decode(RouteDecided, route_value("r", "last", record, repeat=False))
    assert route.candidates is not None
    assert all(one.expected_latency_ms for one in route.candidates)
    assert all(one.slow is None for one in route.candidates)


@pytest.mark.parametrize(
    "said",
    [
        {"latency_target": {"p95_ms": 4000.0}},
        {"latency_target": {"p95_ms": 1e-9}},
        {"latency_target": {"mean_ms": 1234.567, "of": "first_token"}},
        {"usd_per_second": 0.002},
        {"usd_per_second": {"first_token": 0.002}},
    ],
)
def test_a_declaration_is_the_same_after_the_core(said: dict[str, Any]) -> None:
    document = {
        "router_id": "r",
        "models": {"m": {"input_price_per_m": 1.0, "output_price_per_m": 1.0}},
        "budget_usd_per_request": 0.01,
        **said,
    }
    declared = RouterDeclared.model_validate(document)
    config = config_of(declared, offset=3, references={})
    assert config_from(config_body(config)).capabilities == config.capabilities
    again = declaration_of(config, "r")
    assert {name: again[name] for name in said} == said


@pytest.mark.parametrize(
    "said",
    [
        b'"latency_target": {}',
        b'"latency_target": {"p95_ms": 4000, "mean_ms": 1000}',
        b'"latency_target": {"p95_ms": 0}',
        b'"latency_target": {"p95_ms": 1e9}',
        b'"latency_target": {"p95_ms": 4000, "of": "request"}',
        b'"usd_per_second": 0',
        b'"usd_per_second": {"first_token": -1}',
        b'"latency_target": {"p95_ms": 4000}, "usd_per_second": 0.1',
    ],
)
def test_a_contradiction_is_refused(said: bytes) -> None:
    with pytest.raises(MalformedEvent) as caught:
        decode(RouterDeclared, b'{"router_id": "r", "models": {}, ' + said + b"}")
    assert caught.value.reason == Reason.INVALID_FIELD


def test_a_price_without_a_budget_and_a_target_under_paper_are_refused() -> None:
    with pytest.raises(InvalidConfig, match="usd_per_second needs a budget"):
        declaration(PRICES, profile="live", budget=None, latency=LatencyGoal(usd_per_second=1.0))
    with pytest.raises(InvalidConfig, match="profile 'paper' knows no times"):
        declaration(PRICES, profile="paper", latency=LatencyGoal(p95_seconds=1.0))
    for given in ({}, {"p95_seconds": math.nan}, {"p95_seconds": 1.0, "mean_seconds": 1.0}):
        with pytest.raises(InvalidConfig):
            LatencyGoal(**given)  # type: ignore[arg-type]


def test_events_and_calls_of_methods_are_alike() -> None:
    goal = LatencyGoal(p95_seconds=2.0)
    by_method, _, _ = play(goal, n=50)
    other = Played.start(declaration(TWO, profile="live", budget=None, dimensions=2, latency=goal))
    rng = np.random.default_rng(1)
    for i in range(50):
        x = np.array([rng.normal(), 1.0])
        record = other.apply(Asked(str(i), x), float(i)).decision
        assert record is not None
        took = SECONDS[record.model] * math.exp(0.3 * rng.normal())
        other.apply(Charged(str(i), USD[record.model], latency=took), float(i))
        other.apply(Judged(str(i), REWARDS[record.model] + 0.05 * rng.uniform(-1.0, 1.0)), float(i))
    assert freeze(other).keys() == freeze(by_method).keys()
    one, two = timing_of(other).debt, timing_of(by_method).debt
    assert (one.usd, one.scatter, one.settled) == (two.usd, two.scatter, two.settled)
