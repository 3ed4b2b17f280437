"""Verifiers that fail or take too long: the money that was kept for a second call, and what the
router believes of them."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.played import Played
from router_state.attempts import verdict_waits
from router_state.attempts.verdict_waits import VerdictWaits
from router_state.attempts.verdicts import Attempts
from router_state.attempts.verifier import Declared, Verifier
from router_state.config import ModelConfig, Price, RouterConfig
from router_state.events import Asked, Charged, Event, Verified, Waited
from router_state.profiles import knobs_for
from router_state.record import RequestRecord
from router_state.runs.run_budget import RunBudget
from router_state.runs.runs import Runs
from router_state.state import invariants
from tests.router_state.core_reference import context, freeze, having, thaw

MODELS = {"small": Price(0.1, 0.2), "middle": Price(0.5, 2.0), "large": Price(3.0, 12.0)}
X = context(0.5, -0.2, 0.1)
LONGEST, FEE = 1e6, 2e-5
COMES, FAILS, NEVER, LATE = "passes", "stops", "never", "late"
runs = st.lists(
    st.tuples(st.sampled_from([COMES, FAILS, NEVER, LATE]), st.floats(1e-6, 1e-3)),
    min_size=30,
    max_size=90,
)


def started(*, max_attempts: int = 2) -> Played:
    """Return a router whose verifier is trusted, so that it makes plans from the beginning."""
    return Played.start(
        RouterConfig(
            {name: ModelConfig(price) for name, price in MODELS.items()},
            1e-3,
            4,
            "live",
            knobs_for("live", {"commitment_ttl_seconds": LONGEST}),
            capabilities={
                "attempts": Declared({"tests": Verifier(FEE, exact=True)}, max_attempts),
                "runs": RunBudget(1e6),
            },
        )
    )


def planned(record: RequestRecord) -> bool:
    return record.plan is not None and len(record.plan.steps) > 1


def ask(one: Played, number: int, now: float) -> RequestRecord:
    return one.decide(f"r{number}", X, now=now, session_id="s")


def held(one: Played, start: int = 0) -> tuple[Played, str]:
    """Let verdicts come within 2 s; then return a request whose verdict does not."""
    for number in range(start, start + 300):
        now, name = 10.0 * number, f"r{number}"
        record = ask(one, number, now)
        one.settle(name, 1e-5)
        if not planned(record):
            continue
        if number > start + 100:
            return one, name
        one.decide(f"tick{number}", X, now=now + 2.0)
        one.settle(f"tick{number}", 1e-5)
        one.play(Verified(name, "tests", 1.0))
    raise AssertionError("no plan was made")


def test_money_for_a_call_behind_an_overdue_verdict_is_let_go() -> None:
    one, name = held(started())
    run, record = having(one.state, Runs).known.find("s"), one.records[name]
    assert run is not None
    kept, debt, charged = record.awaited_usd, one.state.pacer.terms()["debt_usd"], run.charged_usd
    assert kept > 0.0
    before = one.state.committed_usd
    record = one.decide("next", X, now=record.decided_at + 1000.0)
    assert one.records[name].awaited_usd == 0.0
    assert one.records[name].is_awaited  # a bill may still come
    assert run.charged_usd == pytest.approx(charged - kept)
    after = debt - kept + record.expected_cost_usd - 1e-3
    assert one.state.pacer.terms()["debt_usd"] == pytest.approx(after)
    assert one.state.committed_usd == pytest.approx(before - kept + record.expected_cost_usd)
    invariants.check(one.state, one.records)


@pytest.mark.parametrize("verdict", [0.0, 1.0])
def test_an_overdue_verdict_counts_when_it_comes(verdict: float) -> None:
    one, name = held(started())
    one.decide("next", X, now=one.records[name].decided_at + 1000.0)
    one.play(Verified(name, "tests", verdict))
    plan = one.records[name].plan
    assert plan is not None
    step = plan.steps[1]
    fee = FEE if step.verify else 0.0
    second = 0.0 if verdict else step.expected_cost_usd + fee
    assert one.records[name].awaited_usd == pytest.approx(second)
    if not verdict:
        one.settle(name, 3e-4, attempt=1)
    bill = one.records[name].bill
    assert bill is not None
    assert bill.cost_usd == pytest.approx(1e-5 + FEE + (0.0 if verdict else 3e-4))
    assert not one.records[name].is_awaited
    invariants.check(one.state, one.records)


def test_a_verdict_has_its_time_before_money_is_let_go() -> None:
    one, name = held(started())
    kept = one.records[name].awaited_usd
    one.decide("next", X, now=one.records[name].decided_at + 0.5)
    assert one.records[name].awaited_usd == kept


def test_where_no_verdict_ever_came_money_is_kept_for_the_longest_wait() -> None:
    one = started()
    records = {f"r{n}": ask(one, n, float(n)) for n in range(50)}
    name = next(name for name, record in records.items() if planned(record))
    one.decide("next", X, now=LONGEST - 1.0)
    assert one.records[name].awaited_usd == records[name].expected_cost_usd


@given(seconds=st.lists(st.floats(0.0, 1e5), min_size=400, max_size=400))
def test_most_verdicts_come_in_the_time_that_they_are_given(seconds: list[float]) -> None:
    found, late = 0.0, 0
    for taken in seconds:
        late += taken > found
        found = verdict_waits.given(found, taken)
        assert math.isfinite(found)
        assert found >= verdict_waits.LEAST_VERDICT_SECONDS
    # One of twenty, and those at the beginning: from one second to a day in 30 steps.
    assert late <= 1 + 30 + 400 // 20


def books(one: Played, number: int, what: str, usd: float) -> list[float]:
    """Make the calls of a request, as a caller does whose verifier passes, stops, fails or takes
    too long; return the bills."""
    name, plan = f"r{number}", one.records[f"r{number}"].plan
    if plan is None:
        one.settle(name, usd)
        return [usd]
    bills: list[float] = []
    for attempt, step in enumerate(plan.steps):
        one.settle(name, usd, attempt=attempt)
        bills.append(usd)
        if step.verify is None or what in (NEVER, LATE):
            break
        one.play(Verified(name, step.verify, float(what == COMES), attempt))
        bills.append(step.fee_usd)
        if what == COMES or step.accept_at is None:
            break
    return bills


@given(made=runs, max_attempts=st.sampled_from([2, 3]), data=st.data())
def test_books_and_propensities_hold_whatever_verifiers_fail(
    made: list[tuple[str, float]], max_attempts: int, data: Any
) -> None:
    one, spent = started(max_attempts=max_attempts), list[float]()
    stops_at = data.draw(st.integers(0, len(made) - 1))
    logged: dict[str, tuple[float, Any]] = {}
    other: Played | None = None
    for number, (what, usd) in enumerate(made):
        record, now = ask(one, number, 10.0 * number), 10.0 * number
        logged[f"r{number}"] = record.propensity, record.plan and record.plan.steps
        spent += books(one, number, what, usd)
        if other is not None:
            assert ask(other, number, now).propensity == record.propensity
            books(other, number, what, usd)
        if number == stops_at:
            other = thaw(freeze(one), dict.fromkeys(one.records, X))
    # A worker that was restarted lets the same money go.
    assert other is not None
    assert freeze(other) == freeze(one)
    for number, (what, _) in enumerate(made):
        plan = one.records[f"r{number}"].plan
        if what == LATE and plan is not None and plan.steps[0].verify is not None:
            one.play(Verified(f"r{number}", plan.steps[0].verify, 1.0))
            spent.append(plan.steps[0].fee_usd)
        invariants.check(one.state, one.records)
    one.play(Waited(), 10.0 * LONGEST)
    run = having(one.state, Runs).known.find("s")
    assert run is not None
    assert one.state.committed_usd == 0.0
    assert one.state.in_flight == 0
    assert one.state.spend_usd == pytest.approx(math.fsum(spent), abs=1e-12)
    assert run.charged_usd == pytest.approx(math.fsum(spent), abs=1e-9)
    # Whatever became of its verifier, a plan keeps its calls and its probability.
    for name, (propensity, steps) in logged.items():
        record = one.records[name]
        assert record.propensity == propensity
        assert (record.plan and record.plan.steps) == steps


def test_a_verdict_takes_its_request_from_those_that_are_looked_at() -> None:
    waits = VerdictWaits("tests", {"r0": 1.0}, 0.0, longest=10.0)
    assert waits.due == 11.0
    assert waits.add("r1", 5.0, 1) == 15.0
    waits.came("r0", 2.0)
    assert waits.due == 7.0
    waits.came("r1", 2.0)
    assert waits.due == math.inf
    assert waits.overdue({}, math.inf) == []


def test_a_share_of_verdicts_is_learned_by_model() -> None:
    one = started()
    for number in range(400):
        record = ask(one, number, 10.0 * number)
        one.settle(f"r{number}", 1e-5)
        if planned(record) and record.model == "middle":
            one.play(Verified(f"r{number}", "tests", 1.0))
    capability = having(one.state, Attempts)
    comes = capability.tables.comes["tests"]
    pairs = capability.evidence.pairs["tests"]
    assert {"small", "middle"} <= pairs.by_model.keys()
    small, middle = comes.of(["small", "middle"])
    assert small < comes.share < middle
    assert middle - small > 0.3
    # An answer without a verdict passes: so more of the small model's answers do.
    likely = capability.tables.views.likely
    restored = thaw(freeze(one), dict.fromkeys(one.records, X))
    again = having(restored.state, Attempts).tables
    assert again.comes == capability.tables.comes
    again.views.refresh()
    capability.tables.views.refresh()
    assert (again.views.likely.array == likely.array).all()


def judged_too(max_attempts: int = 2) -> Played:
    """Return a router with a second verifier, which plans do not use."""
    one = started(max_attempts=max_attempts)
    verifiers = {"tests": Verifier(FEE, exact=True), "judge": Verifier(FEE, bins=3)}
    capabilities = {**one.state.config.capabilities, "attempts": Declared(verifiers, max_attempts)}
    one.configure(replace(one.state.config, capabilities=capabilities), now=0.0)
    return one


def test_another_verifiers_verdict_keeps_no_money_for_an_overdue_one() -> None:
    one, name = held(judged_too())
    one.decide("next", X, now=one.records[name].decided_at + 1000.0)
    one.play(Verified(name, "judge", 1.0))
    assert one.records[name].awaited_usd == 0.0


def test_money_behind_an_overdue_verdict_is_let_go_after_a_failed_try_as_well() -> None:
    one, name = held(started())
    at = one.records[name].decided_at
    one.settle(name, 1e-5, revision=1, status="error")
    one.decide("next", X, now=at + 1000.0)
    assert one.records[name].awaited_usd > 0.0  # the second call follows a failure
    one.settle("next", 1e-5)
    one.settle(name, 1e-5, revision=2)
    assert one.records[name].awaited_usd > 0.0
    one.decide("after", X, now=at + 1001.0)
    assert one.records[name].awaited_usd == 0.0


def test_money_for_a_third_call_behind_an_overdue_verdict_is_let_go() -> None:
    one, name = held(started(max_attempts=3))
    for number in range(1000, 1300):
        record, now = ask(one, number, 10.0 * number), 10.0 * number
        if record.plan is not None and len(record.plan.steps) == 3:
            break
    else:
        raise AssertionError("no third call was planned")
    name = f"r{number}"
    one.settle(name, 1e-5)
    one.play(Verified(name, "tests", 0.0))
    one.settle(name, 1e-5, attempt=1)
    assert one.records[name].awaited_usd > 0.0
    one.decide("early", X, now=now + 2.5)
    assert one.records[name].awaited_usd > 0.0
    one.decide("next", X, now=now + 1000.0)
    assert one.records[name].awaited_usd == 0.0
    assert one.records[name].is_awaited
    one.play(Verified(name, "tests", 0.0, 1))
    assert one.records[name].awaited_usd > 0.0
    invariants.check(one.state, one.records)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("max_attempts", [2, 3])
def test_a_restarted_worker_lets_the_same_money_go(max_attempts: int, seed: int) -> None:
    one, rng = judged_too(max_attempts), random.Random(seed)
    held(one)
    asked, others = 0, [one]
    for number in range(600):
        now, what = 5000.0 + number, rng.choice(("ask", "bill", "verdict"))
        name, attempt = f"h{asked - 1 - rng.randrange(9)}", rng.choice((0, 0, 1, 2))
        event: Event = Asked(f"h{asked}", X, session_id="s")
        if what == "ask":
            asked += 1
        elif what == "bill":
            status, revision = rng.choice(("error", None)), rng.randrange(3)
            event = Charged(name, 1e-5, revision=revision, status=status, attempt=attempt)
        else:
            verifier, verdict = rng.choice(("tests", "judge")), float(rng.random() < 0.3)
            event = Verified(name, verifier, verdict, attempt, rng.randrange(3))
        for each in others:
            each.apply(event, now)
        if number % 20 == 0:
            assert all(freeze(each) == freeze(one) for each in others)
            others = [one, thaw(freeze(one), dict.fromkeys(one.records, X))]
