"""Any sequence of decisions, bills, verdicts and rewards of a router with verifiers: the books
against lists, and every invariant after every step."""

from __future__ import annotations

import math
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from router_state import errors
from router_state.attempts.verdicts import Attempts
from router_state.attempts.verifier import Declared, Verifier
from router_state.changes import Changes, Outcome
from router_state.config import ModelConfig, Price, RouterConfig
from router_state.engine import Engine
from router_state.events import Aged, Asked, Charged, Event, Judged, Redeclared, Verified, Waited
from router_state.periods.spending import PeriodBudget, Spending
from router_state.profiles import knobs_for
from router_state.runs.run_budget import RunBudget
from router_state.runs.runs import Runs
from router_state.state import invariants, record_bytes, state_pieces
from studies.audit.findings import Findings
from studies.audit.periods import check_periods
from tests.router_state.core_reference import context, freeze, having, named, thaw

PRICES = {"small": Price(0.1, 0.2), "middle": Price(0.5, 2.0), "large": Price(3.0, 12.0)}
VERIFIERS = {
    "tests": {"tests": Verifier(exact=True)},
    "judge": {"judge": Verifier(4e-5, bins=3)},
    "both": {"tests": Verifier(), "judge": Verifier(4e-5, bins=3)},
    "none": {},
}
TTL = 50.0
entries = st.integers(-20, 20).map(lambda n: n / 10.0)
places = st.integers(0, 6)


class Attempted(RuleBasedStateMachine):
    """What holds whatever is tried, billed and said, in any order."""

    @initialize(
        verifiers=st.sampled_from(["tests", "judge", "both"]),
        budget=st.sampled_from([None, 1e-4, 1e-3, 1e-2]),
        sure=st.booleans(),
    )
    def start(self, verifiers: str, budget: float | None, sure: bool) -> None:
        self.now, self.budget, self.verifiers = 0.0, budget, verifiers
        self.models = dict(PRICES)
        self.contexts: dict[str, Any] = {}
        self.written: dict[str, bytes] = {}
        self.engine = Engine.start(self.config())
        self.write(self.engine.started())
        if sure:
            self.believe()

    def config(self) -> RouterConfig:
        day = PeriodBudget(100.0, "day")
        declared: dict[str, Any] = {"runs": RunBudget(100.0), "spending": Spending((day,))}
        if VERIFIERS[self.verifiers]:
            declared["attempts"] = Declared(VERIFIERS[self.verifiers])
        return RouterConfig(
            {name: ModelConfig(price) for name, price in self.models.items()},
            self.budget,
            4,
            "live",
            knobs_for("live", {"commitment_ttl_seconds": TTL}),
            capabilities=declared,
        )

    def believe(self) -> None:
        """Let verdicts tell much from the beginning: otherwise few plans are made."""
        one = having(self.engine.state, Attempts)
        for table in one.tables.tables.values():
            J = table.J
            numbers = table.array.copy()
            numbers[:J] = [3.0 * (2.0 * (j + 0.5) / J - 1.0) for j in range(J)]
            numbers[J : 2 * J] = 0.01
            table.restore(numbers)
        one.tables.keep(one.arms.names)
        one.journal.pieces.add("\x1fattempts")
        self.write(one.journal.collect())

    def apply(self, event: Event) -> Changes:
        changes = self.engine.apply(event, self.now)
        self.write(changes)
        return changes

    def write(self, changes: Changes) -> None:
        state = self.engine.state
        found = {named(piece): state_pieces.pack_piece(state, piece) for piece in changes.pieces}
        found |= {
            f"request {request_id}": None if record is None else record_bytes.pack_record(record)
            for request_id, record in changes.records.items()
        }
        for name, packed in found.items():
            if packed is None:
                self.written.pop(name, None)
            else:
                self.written[name] = packed

    @rule(seconds=st.floats(0.0, 20.0))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds

    @rule(
        features=st.tuples(entries, entries, entries),
        has=st.none() | st.sets(st.sampled_from(["tests", "judge"])),
        session=st.sampled_from(["s", "t"]),
    )
    def decide(self, features: Any, has: set[str] | None, session: str) -> None:
        request_id, x = str(len(self.contexts)), context(*features)
        said = None if has is None else {"attempts": sorted(has)}
        record = self.apply(Asked(request_id, x, session_id=session, fields=said)).decision
        assert record is not None
        assert 0.0 < record.propensity <= 1.0
        self.contexts[request_id] = x
        plan = record.plan
        if plan is None:
            return
        assert plan.steps[0].model == record.model
        assert {step.model for step in plan.steps} <= self.models.keys()
        assert plan.steps[0].verify in VERIFIERS[self.verifiers]
        assert has is None or plan.steps[0].verify in has
        assert record.expected_cost_usd == plan.awaited_usd
        assert record.propensity <= plan.first_propensity <= 1.0

    def at(self, place: int) -> str:
        known = list(self.contexts)
        return known[-1 - place % len(known)] if known else "nobody's"

    @rule(
        place=places,
        attempt=st.integers(0, 2),
        cost=st.floats(0.0, 0.05),
        revision=st.integers(0, 2),
        status=st.sampled_from([None, None, "ok", "error", "rate_limited"]),
    )
    def bill(
        self, place: int, attempt: int, cost: float, revision: int, status: str | None
    ) -> None:
        request_id = self.at(place)
        record = self.engine.records.get(request_id)
        before = freeze(self.engine)
        steps = 1 if record is None or record.plan is None else len(record.plan.steps)
        event = Charged(request_id, cost, attempt=attempt, revision=revision, status=status)
        changes = self.apply(event)
        if record is None:
            assert isinstance(changes.refusal, errors.UnknownRequest)
        elif attempt >= steps:
            assert isinstance(changes.refusal, errors.AttemptBeyondPlan)
            calls = "0 alone" if steps == 1 else f"0 to {steps - 1}"
            assert f"none of the request's calls, {calls}" in str(changes.refusal)
        if changes.outcome in (Outcome.REFUSED, Outcome.DUPLICATE):
            assert freeze(self.engine) == before
        elif steps > 1 and record is not None and record.plan is not None:
            assert record.plan.made[attempt].cost_usd == cost
        # The same once more changes nothing.
        after = freeze(self.engine)
        assert self.apply(event).outcome in (Outcome.REFUSED, Outcome.DUPLICATE)
        assert freeze(self.engine) == after

    @rule(
        place=places,
        attempt=st.integers(0, 2),
        verifier=st.sampled_from(["tests", "judge", "nobody"]),
        verdict=st.sampled_from([0.0, 0.3, 0.5, 1.0, 1.5, math.nan]),
        revision=st.integers(0, 1),
    )
    def verdict(
        self, place: int, attempt: int, verifier: str, verdict: float, revision: int
    ) -> None:
        request_id, before = self.at(place), freeze(self.engine)
        event = Verified(request_id, verifier, verdict, attempt, revision)
        changes = self.apply(event)
        if changes.refusal is not None:
            assert changes.refusal.reason in (
                "unknown_request",
                "unknown_verifier",
                "attempt_beyond_plan",
                "verdict_out_of_range",
            )
        else:
            assert verifier in VERIFIERS[self.verifiers]
            assert 0.0 <= verdict <= 1.0
        if changes.outcome in (Outcome.REFUSED, Outcome.DUPLICATE):
            assert freeze(self.engine) == before

    @rule(
        place=places,
        reward=st.sampled_from([0.0, 0.4, 1.0]),
        attempt=st.none() | st.integers(0, 2),
        revision=st.integers(0, 1),
    )
    def reward(self, place: int, reward: float, attempt: int | None, revision: int) -> None:
        request_id, before = self.at(place), freeze(self.engine)
        changes = self.apply(Judged(request_id, reward, attempt=attempt, revision=revision))
        if changes.outcome in (Outcome.REFUSED, Outcome.DUPLICATE):
            assert freeze(self.engine) == before

    @rule()
    def expire(self) -> None:
        self.apply(Waited())
        assert all(
            not record.is_awaited or record.decided_at > self.now - TTL
            for record in self.engine.records.values()
        )

    @rule(seconds=st.sampled_from([0.0, 10.0, 2.0 * TTL]))
    def forget(self, seconds: float) -> None:
        self.apply(Aged(self.now - seconds))

    @rule(
        verifiers=st.sampled_from(list(VERIFIERS)),
        models=st.sets(st.sampled_from(list(PRICES)), min_size=1),
        budget=st.sampled_from([None, 1e-4, 1e-3]),
    )
    def declare(self, verifiers: str, models: set[str], budget: float | None) -> None:
        self.verifiers, self.budget = verifiers, budget
        self.models = {name: PRICES[name] for name in sorted(models)}
        assert self.apply(Redeclared(self.config())).refusal is None

    @rule()
    def stop_and_start(self) -> None:
        before = freeze(self.engine)
        self.engine = thaw(self.written, self.contexts)
        assert freeze(self.engine) == before

    @invariant()
    def all_is_written_and_the_books_agree(self) -> None:
        if not hasattr(self, "engine"):
            return
        assert self.written == freeze(self.engine)
        state, records = self.engine.state, self.engine.records
        invariants.check(state, records)
        findings = Findings()
        check_periods("router", self.engine, findings)
        assert not findings.violations
        for name in ("s", "t"):
            run = having(state, Runs).known.find(name)
            mine = [
                record
                for record in records.values()
                if record.call is not None and record.call.session_id == name
            ]
            if run is not None and state.forgotten.requests == 0:
                charged = [
                    (0.0 if one.bill is None else one.bill.cost_usd)
                    + (one.awaited_usd if one.is_awaited else 0.0)
                    + (one.expected_cost_usd if one.expired and one.bill is None else 0.0)
                    for one in mine
                ]
                assert math.isclose(run.charged_usd, math.fsum(charged), abs_tol=1e-12) or any(
                    one.plan is not None and one.bill is None for one in mine
                )


TestAttempted = Attempted.TestCase
