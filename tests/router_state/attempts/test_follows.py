"""Requests that follow others: what was seen decides, and what was tried is ruled out."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.taking.core_events import asked
from benchmarks.played import Played
from router_state.attempts.following import MOST_REQUESTS, ChainTooLong
from router_state.attempts.verdicts import Attempts
from router_state.attempts.verifier import Declared, Verifier
from router_state.cache_price import CachePrice
from router_state.config import ModelConfig, Price, RouterConfig
from router_state.errors import RouterStateError, UnknownVerifier, VerdictOutOfRange
from router_state.events import Aged, Asked, Follows, Verified
from router_state.kernel import Failures
from router_state.profiles import knobs_for
from router_state.record import RequestRecord
from router_state.state import invariants
from schemas.quick import Request, read
from tests.router_state.core_reference import context, freeze, having, thaw

X = context(0.5, -0.2, 0.1)
PRICES = {"small": Price(0.1, 0.2), "middle": Price(0.5, 1.5), "large": Price(3.0, 12.0)}


def config(**capabilities: Any) -> RouterConfig:
    return RouterConfig(
        {name: ModelConfig(price, onboarding_pulls=0) for name, price in PRICES.items()},
        1e-3,
        4,
        "live",
        knobs_for("live", {"seed": 3}),
        capabilities=capabilities,
    )


def plain() -> Played:
    return Played.start(config())


def verified() -> Played:
    return Played.start(config(attempts=Declared({"tests": Verifier(exact=True)})))


def test_calls_of_a_plan_are_tried_once_they_are_known_to_be_made() -> None:
    for billed in (False, True):
        one = verified()
        name = next(
            f"r{number}"
            for number in range(100)
            if (record := one.decide(f"r{number}", X, now=number / 100.0)).plan is not None
            and len(record.plan.steps) > 1
        )
        plan = one.records[name].plan
        assert plan is not None
        one.settle(name, 1e-4)
        one.play(Verified(name, "tests", 0.0))
        if billed:
            one.settle(name, 1e-3, attempt=1)
        record = again(one, "next", name)
        models = tuple(step.model for step in plan.steps)
        assert tuple(chain(record)["tried"]) == (models if billed else models[:1])
        assert chain(record)["count"] == 1


def again(
    one: Played, request_id: str, follows: str, *, now: float = 1.0, **seen: Any
) -> RequestRecord:
    changes = one.play(Asked(request_id, X, follows=Follows(follows, **seen)), now)
    if changes.refusal is not None:
        raise changes.refusal
    record = changes.decision
    assert record is not None
    return record


def chain(record: RequestRecord) -> dict[str, Any]:
    assert record.call is not None
    kept: dict[str, Any] = record.call.kept["attempts"]
    return kept


def shut(record: RequestRecord) -> set[str]:
    seen = record.candidates
    assert seen is not None
    pairs = zip(seen.models, seen.excluded, strict=True)
    return {name for name, why in pairs if why == "tried"}


def mean(record: RequestRecord, model: str) -> float:
    assert record.candidates is not None
    return float(record.candidates.mean[record.candidates.models.index(model)])


@pytest.mark.parametrize("make", [plain, verified])
def test_models_that_were_tried_are_ruled_out_while_there_are_others(make: Any) -> None:
    one = make()
    tried = [one.decide("r0", X, now=0.0).model]
    for number in range(1, 5):
        record = again(one, f"r{number}", f"r{number - 1}")
        assert chain(record)["number"] == number + 1
        if len(set(tried)) < len(PRICES):
            assert record.model not in tried
            assert shut(record) == set(tried)
        else:
            assert shut(record) == set()
        tried.append(record.model)
        if record.plan is not None:  # what a plan called is tried, too
            tried += [step.model for step in record.plan.steps[: record.plan.answered + 1]]
    assert set(tried) == set(PRICES)
    invariants.check(one.state, one.records)


def test_a_failure_makes_every_answer_worth_less_and_a_success_more() -> None:
    means = {}
    for verdict in (None, 0.0, 1.0):
        one = verified()
        one.decide("r0", X, now=0.0)
        said: dict[str, Any] = {} if verdict is None else {"verdicts": {"tests": verdict}}
        record = again(one, "r1", "r0", **said)
        means[verdict] = mean(record, record.model)
    assert means[0.0] < means[None] < means[1.0]


def test_a_verdict_on_the_topic_counts_as_one_in_the_request_and_wins() -> None:
    means = []
    for on_topic, said in ((0.0, None), (None, 0.0), (0.0, 1.0)):
        one = verified()
        one.decide("r0", X, now=0.0)
        if on_topic is not None:
            one.play(Verified("r0", "tests", on_topic))
        seen: dict[str, Any] = {} if said is None else {"verdicts": {"tests": said}}
        record = again(one, "r1", "r0", **seen)
        means.append((chain(record)["count"], chain(record)["sum"] < 0.0))
    assert means[0] == means[1] == means[2] == (1, True)


@pytest.mark.parametrize(
    ("good", "bad"),
    [
        ({"tests_passed": 1.0}, {"tests_passed": 0.1}),
        ({"repeats": 0}, {"repeats": 5}),
        ({"severity": 0.0}, {"severity": 0.9}),
    ],
)
def test_signals_need_no_verifier(good: dict[str, float], bad: dict[str, float]) -> None:
    means = []
    for signals in (good, bad):
        one = plain()
        one.decide("r0", X, now=0.0)
        record = again(one, "r1", "r0", signals=signals)
        means.append(mean(record, record.model))
        assert freeze(thaw_of(one)) == freeze(one)
    assert means[1] < means[0]


def thaw_of(one: Played) -> Any:
    return thaw(freeze(one), dict.fromkeys(one.records, X))


@given(st.lists(st.tuples(st.floats(0.05, 0.95), st.floats(0.0, 1.0)), max_size=6))
def test_each_further_failure_costs_less_than_the_one_before(
    seen: list[tuple[float, float]],
) -> None:
    failures = Failures()
    assert failures.gap(0.7, 0.4) == 0.0
    for reward, share in seen:
        after = failures.and_one(reward, reward * share)
        assert after.gap(0.7, 0.4) >= 0.0
        # With ρ = 1 all answers tell the same: their mean counts.
        assert after.gap(0.7, 1.0) * after.count == pytest.approx(after.gap(0.7, 0.0))
        failures = after


def test_labels_of_what_followed_teach_how_much_a_failure_tells() -> None:
    found = {}
    for reward in (0.0, 1.0):
        one = plain()
        for number in range(40):
            one.decide(f"a{number}", X, now=float(number))
            one.learn(f"a{number}", reward=0.8)
            again(one, f"b{number}", f"a{number}", now=number + 0.5, signals={"severity": 1.0})
            one.learn(f"b{number}", reward=reward)
        table = having(one.state, Attempts).tables.signals["severity"]
        found[reward] = table.alike
        invariants.check(one.state, one.records)
    assert found[0.0] > 0.4 > found[1.0]


def test_what_follows_a_failure_teaches_no_model_that_it_is_worse() -> None:
    one, other = plain(), plain()
    for engine, follows in ((one, True), (other, False)):
        for number in range(30):
            engine.decide(f"a{number}", X, now=float(number))
            if follows:
                seen: dict[str, Any] = {"signals": {"severity": 1.0}}
                record = again(engine, f"b{number}", f"a{number}", now=number + 0.5, **seen)
            else:
                record = engine.decide(f"b{number}", X, now=number + 0.5)
            engine.learn(f"b{number}", reward=0.3, model="middle")
            assert record is not None
    means = [engine.state.arms["middle"].rewards.predict(X) for engine in (one, other)]
    assert means[0] > means[1] + 0.02


@pytest.mark.parametrize("gone", ["never", "forgotten", "later"])
def test_one_that_is_not_remembered_is_followed_by_a_plain_decision(gone: str) -> None:
    one, other = verified(), verified()
    if gone == "forgotten":
        for engine in (one, other):
            engine.decide("r0", X, now=0.0)
            engine.play(Aged(50.0), 100.0)
    record = again(one, "r1", "r0", now=100.0, verdicts={"tests": 0.0})
    same = other.decide("r1", X, now=100.0)
    assert (record.model, record.propensity) == (same.model, same.propensity)
    assert chain(record) == {"follows": "r0", "known": False}
    if gone == "later":
        one.decide("r0", X, now=101.0)
        assert chain(again(one, "r2", "r1"))["number"] == 2


def test_the_same_request_again_changes_nothing() -> None:
    one = verified()
    one.decide("r0", X, now=0.0)
    first = again(one, "r1", "r0", signals={"repeats": 2})
    before = freeze(one)
    assert again(one, "r1", "elsewhere", verdicts={"nobody": 2.0}).seq == first.seq
    assert freeze(one) == before


def test_two_requests_may_follow_the_same_one() -> None:
    one = plain()
    tried = one.decide("r0", X, now=0.0).model
    for name in ("r1", "r2"):
        record = again(one, name, "r0")
        assert list(chain(record)["tried"]) == [tried]
        assert chain(record)["number"] == 2


def test_a_chain_has_a_longest_length_and_refusals_change_nothing() -> None:
    one = plain()
    one.decide("r1", X, now=0.0)
    for number in range(2, MOST_REQUESTS + 1):
        again(one, f"r{number}", f"r{number - 1}")
    before = freeze(one)
    with pytest.raises(ChainTooLong, match="16 requests have followed each other"):
        again(one, "r17", f"r{MOST_REQUESTS}")
    assert freeze(one) == before


@pytest.mark.parametrize(
    ("seen", "error"),
    [
        ({"verdicts": {"nobody": 0.5}}, UnknownVerifier),
        ({"verdicts": {"tests": 1.5}}, VerdictOutOfRange),
        ({"signals": {"repeats": -1}}, VerdictOutOfRange),
        ({"signals": {"severity": float("nan")}}, VerdictOutOfRange),
    ],
)
def test_what_cannot_be_seen_is_refused(
    seen: dict[str, Any], error: type[RouterStateError]
) -> None:
    one = verified()
    one.decide("r0", X, now=0.0)
    before = freeze(one)
    with pytest.raises(error):
        again(one, "r1", "r0", **seen)
    assert freeze(one) == before


# A session that has escalated.


@pytest.mark.parametrize("pays", [True, False])
def test_a_session_stays_with_the_model_it_went_up_to_where_its_cache_pays(*, pays: bool) -> None:
    """The next turn follows nothing: only the cached prefix speaks for the model called last."""
    cached = CachePrice(read_per_m=0.05 if pays else 3.0, min_tokens=100)
    one = Played.start(
        RouterConfig(
            {
                "small": ModelConfig(Price(1.0, 0.1), onboarding_pulls=0),
                "large": ModelConfig(Price(3.0, 0.1), onboarding_pulls=0),
            },
            1.2e-3,
            4,
            "live",
            knobs_for("live", {"seed": 3}),
            capabilities={"caches": {"large": cached}},
        )
    )
    # Both answer alike, so the cheaper call is better; bills are mostly input.
    for number in range(80):
        record = one.decide(f"a{number}", X, now=float(number), input_tokens=1000)
        price = one.state.arms[record.model].price
        one.settle(f"a{number}", tokens=(1000, 100), model=record.model)
        one.learn(f"a{number}", reward=0.8)
        assert price is record.price
    up = next(
        number for number in range(50) if _escalated(one, f"s{number}", 100.0 + number) == "large"
    )
    later = [
        one.decide(f"t{n}", X, now=160.0 + n, session_id=f"s{up}", input_tokens=1000).model
        for n in range(10)
    ]
    fresh = [
        one.decide(f"f{n}", X, now=175.0 + n, session_id=f"new{n}", input_tokens=1000).model
        for n in range(10)
    ]
    assert (later.count("large") > 7) is pays
    assert fresh.count("large") < 5


def _escalated(one: Played, session: str, now: float) -> str:
    """Let a session's first answer fail and be tried again; return the second model."""
    first = one.decide(f"{session}-1", X, now=now, session_id=session, input_tokens=1000)
    seen = Follows(f"{session}-1", signals={"tests_passed": 0.0})
    asked = Asked(f"{session}-2", X, session_id=session, input_tokens=1000, follows=seen)
    second = one.play(asked, now + 0.1).decision
    assert second is not None
    assert second.model != first.model
    one.settle(f"{session}-2", tokens=(1000, 100))
    return second.model


def test_a_request_on_the_wire_says_what_it_follows_and_what_was_seen() -> None:
    told = {
        "router_id": "coder",
        "request_id": "r1",
        "prompt": "again",
        "follows": "r0",
        "verdicts": {"tests": 0},
        "signals": {"repeats": 3, "severity": 0.5},
    }
    event = read(Request, key=None, value=json.dumps(told).encode())
    follows = asked(event, X).follows
    assert follows == Follows("r0", {"tests": 0.0}, {"repeats": 3, "severity": 0.5})
    plain = read(Request, key=None, value=json.dumps(dict(list(told.items())[:3])).encode())
    assert asked(plain, X).follows is None
