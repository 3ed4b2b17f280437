"""What verdicts mean, which plans are made, and what they cost."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.played import Played
from router_state import registered
from router_state.attempts.verdicts import Attempts
from router_state.attempts.verifier import Declared, Verifier
from router_state.config import ModelConfig, Price, RouterConfig
from router_state.errors import InvalidConfig
from router_state.events import Asked, Follows, Redeclared, Verified, Waited
from router_state.kernel import (
    Candidates,
    Chance,
    CostModel,
    Looks,
    Options,
    PlannedOptions,
    Planning,
    VerdictTable,
)
from router_state.profiles import knobs_for
from router_state.record import RequestRecord
from router_state.runs.run_budget import RunBudget
from router_state.runs.runs import Runs
from router_state.sources.declared_sources import DeclaredSources
from router_state.state import invariants, record_bytes
from tests.router_state.core_reference import context, freeze, having, thaw

X = context(0.5, -0.2, 0.1)
MODELS = {"small": Price(0.1, 0.2), "large": Price(3.0, 12.0)}
TESTS = Verifier(exact=True)


def config(budget: float | None = 1e-3, seed: int = 0, **capabilities: Any) -> RouterConfig:
    return RouterConfig(
        {name: ModelConfig(price) for name, price in MODELS.items()},
        budget,
        4,
        "live",
        knobs_for("live", {"seed": seed, "commitment_ttl_seconds": 50.0}),
        capabilities=capabilities,
    )


def engine(verifier: Verifier = TESTS, **more: Any) -> Played:
    return Played.start(config(attempts=Declared({"tests": verifier}), **more))


def planned(one: Played, start: int = 0, **asked: Any) -> tuple[str, RequestRecord]:
    """Return the first request for which two calls are planned."""
    for number in range(start, start + 200):
        record = one.decide(f"r{number}", X, now=float(number) / 100.0, **asked)
        if record.plan is not None and len(record.plan.steps) == 2:
            return f"r{number}", record
    raise AssertionError("no plan was made")


def verdicts(one: Played, request_id: str, verdict: float, **said: Any) -> str:
    return one.play(Verified(request_id, "tests", verdict, **said)).outcome.value


# The table.


def told(passes: float, stops: float, *, labels: int = 2000, seed: int = 1) -> VerdictTable:
    """Return a table that has learned a verifier which passes and stops so many."""
    rng, table = np.random.default_rng(seed), VerdictTable(2, ("a", "b"))
    for _ in range(labels):
        right = rng.random() < 0.6
        verdict = int(rng.random() < (passes if right else 1.0 - stops))
        table.see(0, verdict, 0.6)
        table.learn(0, verdict, 0.6, 0.0, float(right))
    return table


@pytest.mark.parametrize(("passes", "stops"), [(0.9, 0.8), (0.85, 0.6), (0.5, 0.5), (0.9, 0.1)])
def test_a_table_learns_what_a_verifier_passes_and_stops(passes: float, stops: float) -> None:
    right, wrong = told(passes, stops).likelihoods(0, 1, 0.0)
    assert abs(right - passes) < 0.05
    assert abs(wrong - (1.0 - stops)) < 0.05


def test_what_one_model_taught_is_believed_of_another_with_more_doubt() -> None:
    table = told(0.95, 0.9)
    for model in (0, 1):
        low, high = (table.likelihoods(model, 1, away) for away in (-1.0, 1.0))
        assert low[0] - low[1] < high[0] - high[1]
    own, other = (
        table.likelihoods(model, 1, 1.0)[0] - table.likelihoods(model, 1, -1.0)[0]
        for model in (0, 1)
    )
    assert own < other
    right, wrong = table.likelihoods(1, 1, 0.0)
    assert right - wrong > 0.3


def test_labels_of_accepted_answers_alone_bias_no_table() -> None:
    rng, table = np.random.default_rng(3), VerdictTable(2, ("a",))
    for _ in range(4000):
        is_right = rng.random() < 0.6
        verdict = int(rng.random() < (0.9 if is_right else 0.2))
        table.see(0, verdict, 0.6)
        if verdict or rng.random() < 0.02:  # what did not pass is seldom returned
            table.learn(0, verdict, 0.6, 0.0, float(is_right))
    right, wrong = table.likelihoods(0, 1, 0.0)
    assert abs(right - 0.9) < 0.05
    assert abs(wrong - 0.2) < 0.07


def test_a_coin_teaches_no_reward_and_an_exact_verifier_the_reward_itself() -> None:
    coin, exact = told(0.5, 0.5, labels=5000), VerdictTable(2, ("a",), exact=True)
    for verdict in (0, 1):
        assert coin.tells(0, verdict, 0.6, 0.24)[1] < 0.02
        exact.see(0, verdict, 0.6)
    for verdict in (0, 1):
        said, weight = exact.tells(0, verdict, 0.6, 0.24)
        assert abs(said - verdict) < 0.02
        assert weight > 0.9
        assert exact.learn(0, verdict, 0.6, 0.01, float(verdict))[1] < 0.2


@given(
    st.lists(st.tuples(st.integers(0, 2), st.floats(-2.0, 3.0), st.floats(0.0, 1.0)), max_size=60)
)
def test_a_table_stays_sound_and_its_numbers_survive(seen: list[tuple[int, float, float]]) -> None:
    table = VerdictTable(3, ("a", "b"))
    for j, reward, label in seen:
        table.see(1, j, reward)
        table.learn(1, j, reward, 0.1, label)
        table.learn_second(0.3, reward, 0.1, label)
    assert table.is_sound()
    for edge in (1, 2):
        assert all(0.0 <= share <= 1.0 for share in table.likelihoods(1, edge, 0.5))
    other = VerdictTable(3, ("a", "b"))
    other.restore(table.array.tolist())
    assert other.array.tolist() == table.array.tolist()
    other.keep(("b", "c"))
    assert other.likelihoods(0, 1, 0.0) == table.likelihoods(1, 1, 0.0)


# Plans.


def value_of(
    r: list[float], c: list[float], fee: float, plan: tuple[int, int], t: float, f: float
) -> tuple[float, float]:
    """Return what a plan earns and costs, errors of models being independent."""
    a, b = plan
    passes = t * r[a] + f * (1.0 - r[a])
    return t * r[a] + (1.0 - passes) * r[b], c[a] + fee + (1.0 - passes) * c[b]


rewards = st.lists(st.floats(0.05, 0.95), min_size=3, max_size=4)


@given(rewards, st.floats(0.0, 0.5), st.floats(0.5, 1.0), st.floats(0.0, 0.5), st.data())
def test_the_best_plan_is_the_best_of_all(
    r: list[float], fee: float, t: float, f: float, data: st.DataObject
) -> None:
    c = [data.draw(st.floats(0.0, 1.0)) for _ in r]
    K, price = len(r), data.draw(st.floats(0.0, 2.0))
    looks = Looks(1, K)
    looks.charge(0, fee, 0.0)
    for k in range(K):
        looks.put(0, k, t, f)
        looks.know(k, True)
    terms = [number for k in range(K) for number in (r[k], 0.0, c[k])]
    names = tuple("abcd"[:K])
    seen = Candidates(names, terms, [price * cost for cost in c], [None] * K)
    models = [CostModel(name, _prior(), Price(0.0, 0.0), _journal()) for name in names]
    alone = [r[k] - price * c[k] for k in range(K)]
    b = int(np.argmax(alone))
    limits: dict[str, Any] = {"shut": (), "left_usd": 1e9, "most_usd": 1e9}
    found = Planning(seen, models, looks, looks, per_dollar=price, **limits).best(b)
    every = {}
    for first in range(K):
        for second in range(K):
            if first != second:
                reward, cost = value_of(r, c, fee, (first, second), t, f)
                every[first, second] = reward - price * cost - alone[b]
    best = max(every.values())
    if found is None:
        assert best <= 1e-12
    else:
        assert math.isclose(found[3], best, abs_tol=1e-12)
        assert math.isclose(every[found[0], found[2]], best, abs_tol=1e-12)
    # No money for two calls, no verifier: no plan.
    for refused in ({"left_usd": 0.0}, {"most_usd": -1.0}, {"shut": (0,)}):
        if refused != {"left_usd": 0.0} or min(c) + fee > 0.0:
            one = Planning(seen, models, looks, looks, per_dollar=price, **limits | refused)
            assert one.best(b) is None


def _prior() -> Any:
    return engine().state.arms.bills


def _journal() -> Any:
    return engine().state.journal


@given(st.integers(0, 10_000), st.floats(0.05, 0.9))
def test_the_price_of_a_dollar_is_the_smallest_at_which_plans_meet_the_budget(
    seed: int, target: float
) -> None:
    rng = np.random.default_rng(seed)
    n, K = 24, 3
    scores, costs = rng.random((n, K)), rng.random((n, K))
    looks = Looks(1, K)
    looks.charge(0, 0.01, 0.3)
    for k in range(K):
        looks.put(0, k, 0.9, 0.2)
        looks.know(k, bool(rng.random() < 0.7))

    def spent(price: float) -> float:
        one = PlannedOptions(Options.of(scores, costs), looks, {0: (0,)})
        return float(one.spend(price))

    options = PlannedOptions(Options.of(scores, costs), looks, {0: (0,)})
    price = options.price(target=target, start=0.3)
    if price is None:
        assert options.cheapest() > target
        return
    assert spent(price * (1 + 1e-9) + 1e-12) <= target + 1e-9
    assert price == 0.0 or spent(price * (1 - 1e-6)) >= target - 1e-9


# Decisions.


def test_without_verifiers_nothing_is_planned_and_nothing_drawn() -> None:
    plain, none = Played.start(config()), engine()
    for number in range(60):
        one = plain.decide(f"r{number}", X, now=0.0)
        other = none.decide(f"r{number}", X, now=0.0, fields={"attempts": []})
        assert other.plan is None
        assert (one.model, one.propensity) == (other.model, other.propensity)


def test_verifiers_that_a_request_named_before_any_were_declared_are_not_kept() -> None:
    one = Played.start(config())
    one.decide("r1", X, now=0.0, fields={"attempts": ["tests"]}, follows=Follows("r0"))
    other = thaw(freeze(one), {"r1": X})
    for each in (one, other):
        each.play(Redeclared(config(attempts=Declared({"tests": TESTS}))))
    assert freeze(one) == freeze(other)


def test_verifiers_that_were_taken_away_leave_nothing_that_a_restart_would_lose() -> None:
    one = engine()
    for number in range(60):
        one.decide(f"r{number}", X, now=float(number))
        one.settle(f"r{number}", 1e-4)
        one.learn(f"r{number}", reward=1.0)
    one.play(Redeclared(config()))
    other = thaw(freeze(one), {f"r{number}": X for number in range(60)})
    for each in (one, other):
        each.play(Redeclared(config(attempts=Declared({"tests": TESTS}))))
    assert freeze(one) == freeze(other)


def test_a_plan_is_the_first_call_a_verdict_and_the_second_call() -> None:
    request_id, record = planned(engine())
    plan = record.plan
    assert plan is not None
    first, second = plan.steps
    assert (first.model, first.verify, first.accept_at) == (record.model, "tests", 0.5)
    assert second.model != first.model
    assert first.probability == 1.0
    assert 0.0 < second.probability < 1.0
    assert record.expected_cost_usd == pytest.approx(
        first.expected_cost_usd + second.probability * second.expected_cost_usd
    )
    assert request_id


@pytest.mark.parametrize("late", [False, True])
def test_a_verdict_that_passes_releases_the_second_call(*, late: bool) -> None:
    one = engine(runs=RunBudget(10.0))
    request_id, record = planned(one, session_id="s")
    run = having(one.state, Runs).known.find("s")
    assert run is not None
    before = run.charged_usd - record.expected_cost_usd
    events = [lambda: one.settle(request_id, 1e-4), lambda: verdicts(one, request_id, 1.0)]
    for event in reversed(events) if late else events:
        event()
    record = one.records[request_id]
    assert record.bill is not None
    assert not record.is_awaited
    assert record.bill.cost_usd == 1e-4
    assert run.charged_usd == pytest.approx(before + 1e-4)
    invariants.check(one.state, one.records)


def test_a_second_call_that_was_never_made_releases_its_commitment_in_time() -> None:
    one = engine(runs=RunBudget(10.0))
    request_id, record = planned(one, session_id="s")
    run = having(one.state, Runs).known.find("s")
    assert run is not None
    charged = run.charged_usd - record.expected_cost_usd
    one.settle(request_id, 1e-4)
    verdicts(one, request_id, 0.0)
    record = one.records[request_id]
    plan = record.plan
    assert plan is not None
    assert record.is_awaited
    assert record.awaited_usd == plan.steps[1].expected_cost_usd
    one.play(Waited(), 1000.0)
    assert not one.records[request_id].is_awaited
    assert run.charged_usd == pytest.approx(charged + 1e-4)
    # A bill that comes all the same counts.
    one.settle(request_id, 5e-3, attempt=1)
    assert run.charged_usd == pytest.approx(charged + 1e-4 + 5e-3)
    invariants.check(one.state, one.records)


@pytest.mark.parametrize("revision", [0, 1])
def test_a_later_verdict_counts_only_with_a_higher_revision(revision: int) -> None:
    one = engine()
    request_id, _ = planned(one)
    one.settle(request_id, 1e-4)
    assert verdicts(one, request_id, 1.0) == "applied"
    told = verdicts(one, request_id, 0.0, revision=revision)
    assert told == ("revised" if revision else "duplicate")
    plan = one.records[request_id].plan
    assert plan is not None
    assert plan.failed(0) is bool(revision)


def test_each_attempt_is_billed_once_and_priced_as_at_the_decision() -> None:
    one = engine()
    request_id, record = planned(one)
    plan = record.plan
    assert plan is not None
    verdicts(one, request_id, 0.0)
    one.settle(request_id, tokens=(1000, 100))
    one.settle(request_id, tokens=(1000, 100), attempt=1)
    usd = [MODELS[step.model].cost_usd(input_tokens=1000, output_tokens=100) for step in plan.steps]
    assert one.state.spend_usd == pytest.approx(sum(usd))
    assert one.settle(request_id, 1.0, attempt=1).value == "duplicate"
    one.settle(request_id, 1e-3, attempt=1, revision=1)
    assert one.state.spend_usd == pytest.approx(usd[0] + 1e-3)
    assert one.state.settled == 1


def test_a_call_of_a_plan_teaches_no_cost_of_its_failed_tries() -> None:
    learned = []
    for bills in ([(1e-4, None)], [(3e-4, "timeout"), (5e-4, "error"), (6e-4, None)]):
        one = engine()
        request_id, record = planned(one)
        for revision, (usd, status) in enumerate(bills):
            one.settle(request_id, usd, revision=revision, status=status)
        seen = one.state.policy.look(one.state, Asked("q", X))
        learned.append(seen.cost_usd(one.state.arms.row[record.model]))
    assert learned[0] == pytest.approx(learned[1])


@pytest.mark.parametrize(("attempt", "is_forgotten"), [(0, True), (1, False)])
def test_a_label_is_forgotten_once_another_model_is_known_to_have_given_its_answer(
    attempt: int, *, is_forgotten: bool
) -> None:
    one = engine()
    request_id, record = planned(one)
    arm = one.state.arms.find(record.model)
    assert arm is not None
    before = arm.rewards.look(X)[0]
    one.learn(request_id, reward=0.0, attempt=0)
    taught = arm.rewards.look(X)[0]
    one.settle(request_id, 1e-4, attempt=attempt, answered_by="another-2")
    expected = before if is_forgotten else taught
    assert arm.rewards.look(X)[0] == pytest.approx(expected, abs=1e-3)
    assert abs(taught - before) > 0.05
    invariants.check(one.state, one.records)


@pytest.mark.parametrize(("redirected", "is_learned"), [(0, True), (1, False)])
def test_a_label_is_learned_unless_another_model_gave_the_answer_that_it_is_of(
    redirected: int, *, is_learned: bool
) -> None:
    one = engine()
    request_id, record = planned(one)
    assert record.plan is not None
    arm = one.state.arms.find(record.plan.steps[1].model)
    assert arm is not None
    for attempt in (0, 1):
        name = "another-2" if attempt == redirected else None
        one.settle(request_id, 1e-4, attempt=attempt, answered_by=name)
        verdicts(one, request_id, 0.0)
    stored = record_bytes.unpack_record(record_bytes.pack_record(one.records[request_id]))
    assert stored.plan == one.records[request_id].plan
    before = arm.rewards.look(X)[0]
    one.learn(request_id, reward=0.0, attempt=1)
    assert (abs(arm.rewards.look(X)[0] - before) > 0.05) == is_learned
    invariants.check(one.state, one.records)


def test_a_verdict_on_the_only_call_leaves_the_published_decision_as_it_was() -> None:
    one = engine()
    record = one.decide("r", X, now=0.0, fields={"attempts": []})
    assert registered.published(record) == {}
    verdicts(one, "r", 1.0)
    assert one.records["r"].plan is not None
    assert registered.published(one.records["r"]) == {}


def test_a_reward_is_of_the_last_attempt_unless_it_says_another() -> None:
    for verdict, said, number in ((1.0, {}, 0), (0.0, {}, 1), (0.0, {"attempt": 0}, 0)):
        one = engine()
        request_id, record = planned(one)
        verdicts(one, request_id, verdict)
        one.learn(request_id, reward=1.0, **said)
        plan = one.records[request_id].plan
        assert plan is not None
        assert plan.labelled == number
        assert one.records[request_id].called == plan.steps[number].model
        assert record is not None


@pytest.mark.parametrize("sources", [{}, {"sources": DeclaredSources("human", ("judge",))}])
@pytest.mark.parametrize("verified", [True, False])
def test_a_label_of_another_attempt_is_of_that_ones_model(
    sources: dict[str, Any], *, verified: bool
) -> None:
    said: list[dict[str, Any]] = [
        {"reward": 1.0, "attempt": 1, "source": "judge", "rank": 3},
        {"reward": 0.0, "attempt": 0, "source": "human", "rank": 4},
    ]
    learned = []
    for labels in (said, said[1:]):
        one = engine(**sources)
        request_id, record = planned(one)
        if verified:
            verdicts(one, request_id, 0.0)
        for label in labels:
            one.learn(request_id, **label)
        plan = one.records[request_id].plan
        assert plan is not None
        assert plan.labelled == 0
        assert one.records[request_id].called == plan.steps[0].model == record.model
        assert one.state.rewards_applied == 1
        learned.append([arm.rewards.look(X)[0] for arm in one.state.arms.all])
        invariants.check(one.state, one.records)
    # After a verdict the label had taught how alike the models are as well, which stays.
    assert learned[0] == pytest.approx(learned[1], abs=0.1 if verified else 1e-3)


def test_the_fee_of_a_verdict_is_spent_once() -> None:
    one = engine(Verifier(2e-5), runs=RunBudget(10.0))
    one.decide("r", X, now=0.0, session_id="s")
    one.settle("r", 1e-4)
    verdicts(one, "r", 1.0)
    verdicts(one, "r", 1.0)
    verdicts(one, "r", 0.0, revision=1)
    assert one.state.spend_usd == pytest.approx(1.2e-4)
    invariants.check(one.state, one.records)


def test_a_label_may_come_before_its_verdict() -> None:
    orders = []
    for verdict_first in (True, False):
        one = engine(Verifier())
        one.decide("r", X, now=0.0, fields={"attempts": []})
        calls = [
            lambda one=one: verdicts(one, "r", 1.0),
            lambda one=one: one.learn("r", reward=1.0),
        ]
        for call in calls if verdict_first else reversed(calls):
            call()
        table = having(one.state, Attempts).tables.tables["tests"]
        orders.append(table.array[: 2 * 2].tolist())
    assert orders[0] != [-0.75, 0.75, 1.0, 1.0]
    assert orders[0] == pytest.approx(orders[1], abs=0.1)


def test_a_declaration_that_contradicts_itself_is_refused() -> None:
    for wrong in (
        Declared({}),
        Declared({"a": Verifier(usd=-1.0)}),
        Declared({"a": Verifier(bins=1)}),
        Declared({"a": Verifier()}, max_attempts=4),
    ):
        with pytest.raises(InvalidConfig):
            config(attempts=wrong)


# Propensities.


@pytest.mark.parametrize("price", [0.0, 20.0, 300.0])
@pytest.mark.parametrize("apart", [0.5, 1.5])
def test_propensities_are_the_frequencies_of_draws(price: float, apart: float) -> None:
    one = engine(Verifier())
    one.decide("first", X, now=0.0)
    tables = having(one.state, Attempts).tables
    numbers = tables.tables["tests"].array.copy()
    numbers[:2], numbers[2:4] = (-apart, apart), (1.0, 1.0)
    tables.tables["tests"].restore(numbers.tolist())
    tables.keep(one.state.arms.names)
    tables.views.refresh()
    arms, chance, done = one.state.arms, Chance(7), Counter[tuple[int, ...]]()
    limits: dict[str, Any] = {"per_dollar": price, "left_usd": 1.0, "most_usd": 1.0}
    tried, n = 0.3, 4000
    for _ in range(n):
        seen = one.state.policy.look(one.state, Asked("q", X))
        arms.draw(seen, price, chance)
        b = seen.leader()
        plans = Planning(seen, arms.costs, tables.views.sure, tables.views.hopeful, **limits)
        found = plans.best(b)
        if found is None and chance.random() < tried:
            found = plans.best(b, hopeful=True)
        done[(b,) if found is None else (found[0], found[2])] += 1
    for k in range(len(MODELS)):
        alone, planned, trial = plans.chances(k, k, tried)
        other = plans.chances(1 - k, k, tried)
        assert abs(done[k,] / n - alone) < 0.04
        assert abs(done[k, 1 - k] / n - planned - trial - other[1] - other[2]) < 0.04
        firsts = sum(count for calls, count in done.items() if calls[0] == k) / n
        assert abs(firsts - plans.chance_of_first(k, tried)) < 0.04


@pytest.mark.parametrize("declared", [True, False])
def test_a_verifier_that_the_router_does_not_declare_is_told(*, declared: bool) -> None:
    one = engine() if declared else Played.start(config())
    record = one.decide("r1", X, now=0.0, fields={"attempts": ("tets", "tests")})
    unknown = ["tets"] if declared else ["tets", "tests"]
    assert registered.published(record)["unknown_verifiers"] == unknown
    # A repeated request is answered from the stored record, before its bill and after it.
    for billed in (False, True):
        if billed:
            one.settle("r1", 1e-4)
        restored = record_bytes.unpack_record(record_bytes.pack_record(one.records["r1"]))
        assert registered.published(restored)["unknown_verifiers"] == unknown
    known = one.decide("r2", X, now=1.0, fields={"attempts": ("tests",) if declared else ()})
    assert "unknown_verifiers" not in registered.published(known)
