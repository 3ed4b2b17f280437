"""Incumbents: who answers, with which probability, what the budget pays, and what is kept."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.declaring.configuration import config_of, declaration_of
from agents.publishing.published_values import alert_raised, lambda_value, route_value
from benchmarks.played import Played
from drawing.alert_words import sentence
from router_state.changes import Alert
from router_state.config import RouterConfig
from router_state.errors import InvalidConfig
from router_state.events import Asked, Charged, Event, Judged, Redeclared, Verified
from router_state.incumbents.assigning import HOLDOUT, INCUMBENT, ROUTER, Incumbent, model_at
from router_state.incumbents.incumbents import Incumbents
from router_state.incumbents.ramp_guard import BACK, ON, Guard
from router_state.instants import utc
from router_state.record import RequestRecord
from router_state.state import invariants, record_bytes
from schemas.event import MalformedEvent, decode
from schemas.lambdas import LambdaUpdated
from schemas.routers import RouterDeclared
from schemas.routes import RouteDecided, RouteReason
from studies.audit.explained import explain
from studies.audit.findings import Findings
from tests.router_state.core_reference import context, freeze, having, thaw

X = context(1.0, 0.0, 0.0)
MODELS: dict[str, dict[str, Any]] = {
    "small": {"input_price_per_m": 0.1, "output_price_per_m": 0.4, "expected_cost_usd": 0.001},
    "middle": {"input_price_per_m": 0.5, "output_price_per_m": 2.0, "expected_cost_usd": 0.005},
    "large": {"input_price_per_m": 5.0, "output_price_per_m": 20.0, "expected_cost_usd": 0.05},
}
MIX = {"small": 0.25, "large": 0.75}
PROFILES = ("live", "paper")
NOTHING = {"requests": -1, "costs": -1, "rewards": -1}


def declared(**fields: Any) -> RouterDeclared:
    document = {"router_id": "r", "models": MODELS, "dimensions": 4, **fields}
    return decode(RouterDeclared, orjson.dumps(document))


def config(**fields: Any) -> RouterConfig:
    return config_of(declared(**fields), offset=1, references={})


def engine(**fields: Any) -> Played:
    return Played.start(config(**fields))


def again(one: Played) -> Played:
    """Return an engine that was stopped and started."""
    return thaw(freeze(one), {name: record.x for name, record in one.records.items()})


def ask(one: Played, request_id: str, session: str | None = None, **more: Any) -> RequestRecord:
    decision = one.apply(Asked(request_id, X, session_id=session, **more), 0.0).decision
    assert decision is not None
    return decision


def published(record: RequestRecord) -> RouteDecided:
    kept = record_bytes.unpack_record(record_bytes.pack_record(record))
    value = route_value("r", "1", record, repeat=False)
    assert registered_fields(kept) == registered_fields(record)
    return decode(RouteDecided, value)


def registered_fields(record: RequestRecord) -> dict[str, Any]:
    value = orjson.loads(route_value("r", "1", record, repeat=True))
    return {name: value.get(name) for name in ("routed_by", "routed_share", "would_route")}


@pytest.mark.parametrize("profile", PROFILES)
def test_a_router_that_observes_answers_with_the_incumbent_and_says_what_it_would_do(
    profile: str,
) -> None:
    one = engine(incumbent=MIX, mode="observe", profile=profile, budget_usd_per_request=0.01)
    found = [published(ask(one, str(n))) for n in range(400)]
    assert {route.model for route in found} == {"small", "large"}
    assert {(route.routed_by, route.routed_share) for route in found} == {("incumbent", 0.0)}
    for route in found:
        assert route.reason == "incumbent" and route.would_route is not None
        assert route.propensity == pytest.approx(MIX[route.model])
        assert route.would_route.model in MODELS and route.would_route.propensity > 0.0


@pytest.mark.parametrize("profile", PROFILES)
def test_the_budget_of_a_request_pays_what_was_routed_and_nothing_else(profile: str) -> None:
    """The dual is the same, to the bit, as where the incumbent's requests never were."""
    fields = {"budget_usd_per_request": 0.004, "profile": profile, "incumbent": "large"}
    one = engine(mode="observe", **fields)
    before = (one.state.pacer.terms(), one.state.lambda_t)
    for n in range(50):
        ask(one, str(n))
        one.apply(Charged(str(n), 0.06), 1.0)
        one.apply(Charged(str(n), 0.05, revision=1), 1.0)
    after = (one.state.pacer.terms(), one.state.lambda_t)
    if profile == "paper":
        assert after == before
    else:
        assert after[0]["debt_usd"] == before[0]["debt_usd"] == 0.0
    # The bills are the router's money all the same, and its models learn from them.
    assert one.state.spend_usd == pytest.approx(50 * 0.05)
    assert one.state.arms["large"].costs.bills > 0.0 or profile == "paper"
    # A routed request is paced as ever.
    one.apply(Redeclared(config(mode="route", **fields)), 2.0)
    record = ask(one, "routed")
    assert record.is_paced and published(record).routed_by == "router"
    if profile == "live":
        expected = record.expected_cost_usd - 0.004
        assert one.state.pacer.terms()["debt_usd"] == pytest.approx(expected)


def test_dollars_of_a_period_and_caps_count_whoever_spends_them() -> None:
    day = {"usd": 5.0, "per": "day"}
    one = engine(incumbent="large", mode="observe", budget=day)
    ask(one, "1")
    one.apply(Charged("1", 0.5), 1.0)
    (found,) = lambda_of(one).budgets or ()
    assert found.charged_usd == pytest.approx(0.5)
    # A cap leaves the cheapest model alone, and the incumbent is another one: the router answers.
    one = engine(incumbent="large", mode="observe", caps={"hour": {"usd": 0.1, "mode": "soft"}})
    ask(one, "1")
    one.apply(Charged("1", 0.5), 1.0)
    route = published(ask(one, "2"))
    assert (route.model, route.routed_by, route.routed_share) == ("small", "router", 1.0)
    assert route.would_route is None


def test_an_audit_follows_what_the_router_would_have_done() -> None:
    one = engine(incumbent=MIX, mode="observe", budget_usd_per_request=0.01)
    for n in range(50):
        ask(one, f"warm-{n}")
        one.apply(Judged(f"warm-{n}", 0.5), 1.0)
    route = published(ask(one, "1"))
    assert route.would_route is not None
    findings = Findings()
    explain(route, "here", findings)
    assert not findings.violations
    worst = min(route.candidates or (), key=lambda one: one.score).model
    would = route.would_route.model_copy(update={"model": worst, "reason": RouteReason.UCB})
    explain(route.model_copy(update={"would_route": would}), "here", findings)
    assert findings.violations == {"decision_unexplained": 1}


def test_an_audit_takes_the_incumbents_answer_in_place_of_a_plan_of_three_calls() -> None:
    fields = {"verifiers": {"tests": {"usd": 0.0, "exact": True}}, "max_attempts": 3}
    one, findings = engine(incumbent="large", mode="observe", **fields), Findings()
    for n in range(200):
        route = published(ask(one, str(n)))
        explain(route, "here", findings)
        one.apply(Judged(str(n), float(n % 3 > 0)), 1.0)
    assert not findings.violations


def lambda_of(one: Played) -> LambdaUpdated:
    value = lambda_value("r", one.state, observed_at=utc(1.0), applied=NOTHING, unbooked=None)
    return decode(LambdaUpdated, value)


@pytest.mark.parametrize("profile", PROFILES)
def test_the_incumbents_models_learn_from_its_bills_and_labels(profile: str) -> None:
    one = engine(incumbent="middle", mode="observe", profile=profile)
    for n in range(30):
        ask(one, str(n))
        one.apply(Charged(str(n), 0.003), 1.0)
        one.apply(Judged(str(n), 0.9), 1.0)
    seen = ask(one, "last").candidates
    assert seen is not None
    assert seen.reward(1) > 0.8 and seen.reward(1) > seen.reward(0)
    standing = lambda_of(one).incumbent
    assert standing is not None
    assert (standing.answered, standing.billed) == (31, 30)
    assert standing.spend_usd == pytest.approx(0.09)


@given(
    share=st.floats(0.0, 1.0),
    holdout=st.floats(0.0, 0.999),
    more=st.floats(0.0, 1.0),
    name=st.text(st.characters(categories=["L", "N", "P", "S"]), min_size=1),
)
def test_who_is_routed_stays_routed_as_the_share_grows_and_the_hold_out_stays(
    share: float, holdout: float, more: float, name: str
) -> None:
    low, high = sorted((share, more))
    before, _ = Incumbent({"a": 1.0}, "r", False, low, holdout).drawn(name)
    after, _ = Incumbent({"a": 1.0}, "r", False, high, holdout).drawn(name)
    observed, _ = Incumbent({"a": 1.0}, "r", True, high, holdout).drawn(name)
    if before == ROUTER:
        assert after == ROUTER
    assert (before == HOLDOUT) == (after == HOLDOUT) == (observed == HOLDOUT)
    assert observed != ROUTER


@pytest.mark.parametrize(("share", "holdout"), [(0.1, 0.0), (0.5, 0.2), (1.0, 0.05), (0.98, 0.1)])
def test_shares_are_what_is_declared(share: float, holdout: float) -> None:
    one, n = Incumbent(MIX, "r", share=share, holdout=holdout), 40_000
    drawn = [one.drawn(f"request-{i}") for i in range(n)]
    count = Counter(by for by, _ in drawn)
    routed = min(share, 1.0 - holdout)
    assert one.routed == routed
    for by, expected in ((ROUTER, routed), (HOLDOUT, holdout), (INCUMBENT, 1 - routed - holdout)):
        assert abs(count[by] / n - expected) < 5.0 * (max(expected, 1e-9) / n) ** 0.5
    # The incumbent's model does not depend on who answers.
    for by in count:
        models = Counter(model_at(MIX, place) for who, place in drawn if who == by)
        total = sum(models.values())
        assert abs(models["small"] / total - 0.25) < 5.0 * (0.25 * 0.75 / total) ** 0.5


def test_two_routers_draw_apart() -> None:
    one, other = (Incumbent(MIX, name, share=0.5) for name in ("r", "s"))
    same = [one.drawn(str(i))[0] == other.drawn(str(i))[0] for i in range(4000)]
    assert abs(np.mean(same) - 0.5) < 0.05


@pytest.mark.parametrize(("profile", "epsilon"), [("live", 0.0), ("live", 0.2), ("paper", 0.2)])
def test_a_propensity_is_the_share_of_requests_like_it_that_get_the_model(
    profile: str, epsilon: float
) -> None:
    fields = {"profile": profile, "epsilon": epsilon, "gamma": 1.0}
    one = engine(incumbent={"small": 0.4, "middle": 0.6}, share=0.5, holdout=0.1, **fields)
    for n in range(60):
        record = ask(one, f"warm-{n}", allowed_models=["small", "middle", "large"])
        reward = {"small": 0.5, "middle": 0.6, "large": 0.62}[record.model]
        one.apply(Judged(f"warm-{n}", reward), 1.0)
    start, n = freeze(one), 3000
    drawn: Counter[str] = Counter()
    logged: dict[str, list[float]] = {name: [] for name in MODELS}
    for i in range(n):
        record = ask(one, str(i))
        drawn[record.model] += 1
        logged[record.model].append(record.propensity)
    assert len(start) == len(freeze(one)) - n
    # Nothing is learned in between, so the chance of a model hardly moves from request to request.
    for name, found in logged.items():
        if found:
            off = 5.0 * (0.25 / n) ** 0.5 + 0.02
            assert abs(drawn[name] / n - float(np.mean(found))) < off, name
    # Σ 1/p over the requests is how many there were of each model that has a chance.
    for found in logged.values():
        if len(found) > 200:
            assert sum(1.0 / p for p in found) == pytest.approx(n, rel=0.15)


def test_a_session_stays_with_who_answers_it() -> None:
    one = engine(incumbent=MIX, share=0.5, holdout=0.1, by="session")
    found: dict[str, set[str]] = {}
    for n in range(300):
        session = f"s{n % 30}"
        found.setdefault(session, set()).add(published(ask(one, str(n), session)).routed_by or "")
    assert {len(by) for by in found.values()} == {1}
    assert len({min(by) for by in found.values()}) > 1
    # Without a session each request is drawn for.
    assert len({published(ask(one, f"n{n}")).routed_by for n in range(100)}) > 1


def test_where_the_incumbent_may_not_be_called_the_router_answers() -> None:
    one = engine(incumbent=MIX, mode="observe")
    route = published(ask(one, "1", allowed_models=["middle"]))
    assert (route.model, route.routed_by, route.routed_share) == ("middle", "router", 1.0)
    # What is left of a mix gets all of its share.
    route = published(ask(one, "2", allowed_models=["small", "middle"]))
    assert (route.model, route.propensity, route.routed_by) == ("small", 1.0, "incumbent")


def test_a_router_without_an_incumbent_says_nothing_of_one() -> None:
    one = engine()
    route = published(ask(one, "1"))
    assert (route.routed_by, route.routed_share, route.would_route) == (None, None, None)
    assert lambda_of(one).incumbent is None and one.state.having(Incumbents) is None


@given(
    share=st.floats(0.0, 1.0),
    holdout=st.floats(0.0, 0.9),
    mode=st.sampled_from(["observe", "route"]),
    by=st.sampled_from(["session", "request"]),
    incumbent=st.sampled_from(["small", MIX]),
)
def test_what_is_declared_comes_back(**fields: Any) -> None:
    found = config(**fields)
    said = declaration_of(found, "r")
    assert {name: said[name] for name in fields} == fields
    one = Played.start(found)
    ask(one, "1", "s")
    restored = again(one)
    assert restored.state.config.capabilities == found.capabilities
    assert freeze(restored) == freeze(one)
    invariants.check(restored.state, restored.records)
    assert ask(restored, "2", "s").model == ask(one, "2", "s").model
    assert having(restored.state, Incumbents).answered == having(one.state, Incumbents).answered


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"mode": "observe"}, "need an incumbent"),
        ({"share": 0.5}, "need an incumbent"),
        ({"holdout": 0.5}, "need an incumbent"),
        ({"incumbent": "huge"}, "not declared"),
        ({"incumbent": {"small": 0.5, "huge": 0.5}}, "not declared"),
        ({"incumbent": {"small": 0.5, "large": 0.4}}, "add up to 1"),
        ({"incumbent": {}}, "at least 1"),
        ({"incumbent": {"small": 0.0, "large": 1.0}}, "above 0"),
        ({"incumbent": "small", "holdout": 1.0}, "below 1"),
        ({"incumbent": "small", "share": 1.5}, "between 0 and 1"),
        ({"incumbent": "small", "mode": "shadow"}, "observe"),
        ({"ramp": [0.5]}, "need an incumbent"),
        ({"incumbent": "small", "ramp": [0.5, 0.1]}, "must rise"),
        ({"incumbent": "small", "ramp": [0.5], "share": 0.5}, "has the shares"),
        ({"incumbent": "small", "ramp": [0.5], "share": 0.5, "by": "session"}, "leave share out"),
        ({"incumbent": "small", "margin": 0.5}, "needs a ramp"),
    ],
)
def test_declarations_that_contradict_themselves_are_refused(
    fields: dict[str, Any], words: str
) -> None:
    with pytest.raises(MalformedEvent, match=words):
        declared(**fields)


def test_the_core_knows_the_incumbents_models() -> None:
    with pytest.raises(InvalidConfig, match="'gone'"):
        RouterConfig(models={}, capabilities={"incumbent": Incumbent({"gone": 1.0}, "r")})


RAMP = {"incumbent": "large", "ramp": [0.3, 0.6, 1.0], "margin": 0.1, "holdout": 0.1}


def judged(one: Played, n: int, *, router: float, seed: int = 0) -> list[Alert]:
    """Decide and judge requests: the router's answers earn so much, the incumbent's 0.5."""
    rng, alerts = np.random.default_rng(seed), list[Alert]()
    for _ in range(n):
        name = f"{seed}-{one.state.seq}"
        record = ask(one, name)
        one.apply(Charged(name, 0.001), 1.0)
        mean = router if record.is_paced else 0.5
        alerts += one.apply(Judged(name, float(rng.random() < mean)), 1.0).alerts
    return [alert for alert in alerts if alert.kind in ("ramped", "fell_back")]


def share_of(one: Played) -> float:
    standing = lambda_of(one).incumbent
    assert standing is not None
    return standing.routed_share


def test_a_ramp_goes_on_while_the_router_is_not_worse() -> None:
    one = engine(**RAMP)
    assert share_of(one) == 0.3
    alerts = judged(one, 4000, router=0.6)
    assert [(alert.kind, alert.size) for alert in alerts] == [("ramped", 0.6), ("ramped", 1.0)]
    assert alerts[0].evidence["share_before"] == 0.3
    assert alerts[0].evidence["difference_low"] > -0.1  # type: ignore[operator]
    assert share_of(one) == 0.9  # the hold-out stays
    assert "instead of 30 % are routed" in sentence(alert_raised("r", alerts[0]))
    # It goes on from where it is, after a crash and when something else is declared.
    restored = again(one)
    assert share_of(restored) == 0.9 and freeze(restored) == freeze(one)
    one.apply(Redeclared(config(**RAMP, budget_usd_per_request=1.0)), 2.0)
    assert share_of(one) == 0.9
    one.apply(Redeclared(config(**RAMP | {"ramp": [0.2, 1.0]})), 3.0)
    assert share_of(one) == 0.2


def test_a_ramp_falls_back_when_the_router_is_worse_and_ends_below_its_first_share() -> None:
    one = engine(**RAMP)
    judged(one, 1200, router=0.7)
    assert share_of(one) > 0.3
    alerts = judged(one, 4000, router=0.1, seed=1)
    assert {alert.kind for alert in alerts} == {"fell_back"}
    assert alerts[-1].size == 0.0 and share_of(one) == 0.0
    assert not any(ask(one, f"after-{n}").is_paced for n in range(50))
    assert "worse than the incumbent" in sentence(alert_raised("r", alerts[0]))
    assert share_of(again(one)) == 0.0


def test_a_ramp_waits_for_the_budget_and_for_labels_of_both_sides() -> None:
    one = engine(**RAMP, budget_usd_per_request=0.0005)
    assert judged(one, 1500, router=0.7) == []
    one = engine(**RAMP)
    for n in range(300):
        record = ask(one, str(n))
        if record.is_paced:
            one.apply(Judged(str(n), 0.9), 1.0)
    assert share_of(one) == 0.3


def test_a_label_counts_once_for_the_guard() -> None:
    one = engine(**RAMP)
    ask(one, "1")
    for rank, reward in enumerate([0.1, 0.1, 0.9]):
        one.apply(Judged("1", reward, rank=rank), 1.0)
    guard = having(one.state, Incumbents).guard
    assert guard.router + guard.incumbent == 1


def test_false_steps_are_rare() -> None:
    """A router exactly as bad as the margin goes on, and one as good as it falls back, once in a
    hundred times at most."""
    wrong = 0
    for seed in range(200):
        rng, guard = np.random.default_rng(seed), Guard()
        margin = 0.1 if seed % 2 else 0.0
        for _ in range(2500):
            routed = bool(rng.random() < 0.1)
            reward = float(rng.random() < (0.5 - margin if routed else 0.5))
            guard.judged(reward, routed=routed, share=0.1)
            if guard.leads_to(guard.interval(), margin, None) == (ON if seed % 2 else BACK):
                wrong += 1
                break
    assert wrong <= 4


@pytest.mark.parametrize("verdict_first", [True, False])
def test_the_budget_pays_no_verdicts_on_the_incumbents_answers(verdict_first: bool) -> None:
    fields = {"budget_usd_per_request": 0.01, "verifiers": {"judge": {"usd": 0.002}}}
    one = engine(incumbent="large", share=0.0, **fields)
    assert ask(one, "q").call is not None
    debt = one.state.pacer.terms()["debt_usd"]
    events: list[Event] = [Verified("q", "judge", 0.0), Charged("q", 0.07)]
    for event in events if verdict_first else reversed(events):
        one.play(event)
    assert one.state.pacer.terms()["debt_usd"] == debt
    assert one.state.spend_usd == pytest.approx(0.072)
    assert having(one.state, Incumbents).spend_usd == pytest.approx(0.07)
    invariants.check(one.state, one.records)
